"""A step-level run: chains, rows and probes, the rows of the explanations, and the folder that holds them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ice_eval._seeding import rng_for
from ice_eval.cot.asking import Asker
from ice_eval.cot.attributions import Probe, StepLens, Unexplained
from ice_eval.cot.cases import Case, evaluated, given_case, reading_of, written_case
from ice_eval.cot.config import CotConfig
from ice_eval.cot.given import Given
from ice_eval.cot.inside import Inside
from ice_eval.cot.ledger import LABELS, Explained, input_row, ledger_row
from ice_eval.cot.levels import write_levels
from ice_eval.cot.prompts import ASK, CONCLUDE, RATE
from ice_eval.cot.requests import (
    chain_request,
    expected_requests,
    fills_of,
    first_rows,
    probe_request,
    probes_of,
    requests_of,
    row_request,
)
from ice_eval.cot.rows import StepRow, rationale_rows
from ice_eval.cot.summary import rescore_chains
from ice_eval.cot.tasks import Problem
from ice_eval.errors import CapabilityError, ConfigError, ModelError
from ice_eval.models import Model
from ice_eval.pipeline import Reporter, Silent
from ice_eval.records import Answer as Said
from ice_eval.results import RowKey, RunFolder, config_hash, content_hash, now, slug, stored_run, versions_of
from ice_eval.results.schema import probe_kind
from ice_eval.servers import Progress, Request, Response, ResponseStore

PART_SIZE = 16
RESPONSES = "responses.jsonl"


@dataclass(frozen=True)
class Source:
    """What is evaluated: problems to be put to the model, or chains that are there already."""

    problems: Sequence[Problem | Given]
    origin: str
    """Where they come from, in words."""

    def hash(self) -> str:
        """Tells these from others."""
        return content_hash([repr(problem) for problem in self.problems])


@dataclass(frozen=True)
class Backend:
    """Who answers."""

    make: Callable[[ResponseStore], Asker]
    about: Mapping[str, Any]
    """For the manifest: the address, or the weights."""
    model: Model | None = None
    """Where it runs on this machine: what attributions may look into."""


def execute_chains(
    config: CotConfig,
    source: Source,
    backend: Backend,
    *,
    out: Path | None = None,
    reporter: Reporter | None = None,
) -> RunFolder:
    """Run, or continue, a step-level evaluation and return its folder.

    Every reply is on disk the moment it arrives, and parts are built from the replies when all are there: a kill loses
    what is in the air, and the same call again asks for nothing twice.

    Args:
        config: What to evaluate.
        source: Problems, or chains.
        backend: Who answers.
        out: The run folder; by default one under `ice-runs/` whose name tells the configuration.
        reporter: Gets progress and messages.

    Raises:
        ConfigError: Something is wrong with what was asked, or the server refuses.
        BudgetError: The limit is reached before all is answered.
        ModelError: No problem could be evaluated, or the server stopped answering.
    """
    reporter = reporter or Silent()
    _refuse_looking_into_servers(config, backend)
    _refuse_replacing_in_one(config, source)
    asked = {**config.identity(), "data": source.hash(), "prompts": _prompts_hash()}
    asked |= {"weights": backend.about["weights"]} if "weights" in backend.about else {}
    name = f"cot-{slug(config.task)}-{slug(config.model)}-{config_hash(asked)[:8]}"
    folder = RunFolder(out or Path("ice-runs") / name)
    stored = stored_run(folder, asked)
    if stored is not None:
        config = config.extended_by(stored["config"])
    manifest = _manifest(config, source, backend, asked, stored)
    before, here = (stored or {}).get("cot", {}).get("base_url"), backend.about.get("base_url")
    if before is not None and before != here:
        reporter.say(f"the run was begun with {before} and goes on with {here or 'a model on this machine'}.")
    with folder.opened():
        folder.write_manifest(manifest)
        with ResponseStore(folder.path / RESPONSES) as store:
            run = _Run(config, backend, backend.make(store), reporter)
            try:
                cases, ledger, explained = run.evaluate(source.problems)
            finally:
                reporter.stop()
            manifest |= {"cot": {**dict(backend.about), **run.account(store)}}
        _write(folder, cases, ledger, explained)
        if config.levels and backend.model is not None:
            write_levels(folder, evaluated(cases), backend.model, config, reporter)
        folder.write_manifest(manifest)
        rescore_chains(folder)
        folder.write_manifest({**manifest, "status": "complete", "finished": now()})
    if not evaluated(cases):
        reasons = Counter(case.skip_reason for case in cases)
        told = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        raise ModelError(f"no problem could be evaluated: {told}; see {folder.path}.")
    return folder


class _Run:
    """Three rounds of questions: the chains; rows and probes; the rows of what the attributions chose."""

    def __init__(self, config: CotConfig, backend: Backend, asker: Asker, reporter: Reporter) -> None:
        self._config, self._asker, self._reporter = config, asker, reporter
        self._inside = None if backend.model is None else Inside(backend.model, seed=config.seed)
        self._replies: dict[str, Response] = {}
        self._read: Counter[str] = Counter()

    def evaluate(
        self, problems: Sequence[Problem | Given]
    ) -> tuple[list[Case], dict[str, list[tuple[StepRow, Response]]], dict[str, Explained]]:
        """All cases; the rows of those that take part, with their replies; and what attributions said of them."""
        config = self._config
        cases = self._cases(problems)
        used = evaluated(cases)
        fills = fills_of(used, config)
        rows = {case.id: list(first_rows(case, config, fills[case.id])) for case in used}
        probes = {case.id: probes_of(case, config) for case in used}
        self._ask(self._requests(used, rows, probes), rest=2 * len(used) * len(config.attributions) * len(config.k))
        explained = {case.id: self._explain(case, probes[case.id]) for case in used}
        for case in used:
            rows[case.id] += rationale_rows(case, config, fills[case.id], explained[case.id].vectors)
            rows[case.id] += _probe_rows(case, probes[case.id])
        self._ask(self._requests(used, rows, {}), rest=0)
        ledger = {
            case.id: [(row, self._replies[row_request(case, row, config).key]) for row in rows[case.id]]
            for case in used
        }
        for case in used:
            self._read.update(
                getattr(reading_of(reply, case.problem.kind), "reason", "read") for _, reply in ledger[case.id]
            )
        return cases, ledger, explained

    def _requests(
        self,
        cases: Sequence[Case],
        rows: Mapping[str, Sequence[StepRow]],
        probes: Mapping[str, Mapping[str, Sequence[Probe]]],
    ) -> list[Request]:
        return [
            request
            for case in cases
            for request in requests_of(case, rows[case.id], probes.get(case.id, {}), self._config)
        ]

    def account(self, store: ResponseStore) -> dict[str, Any]:
        """What the answers were, for the manifest."""
        replies = [store.responses[key] for key in self._replies]
        return {
            "responses": dict(Counter(reply.status for reply in replies)),
            "rows_read": dict(self._read),
            "served_models": sorted({reply.model for reply in replies if reply.model}),
            "fingerprints": sorted({reply.fingerprint for reply in replies if reply.fingerprint}),
            "tokens": store.billed._asdict(),
            "n_charged": store.n_charged,
        }

    def _cases(self, problems: Sequence[Problem | Given]) -> list[Case]:
        policy = self._config.answer_step
        asked = [problem for problem in problems if isinstance(problem, Problem)]
        requests = {problem.id: chain_request(problem, self._config) for problem in asked}
        expected = expected_requests(problems, self._config)
        if self._asker.plan(requests.values()).n_to_ask:  # else the rows are known, and told exactly
            self._reporter.say(f"plan, for chains of six steps: {self._asker.plan(expected)}")
        self._reporter.start(len(expected))
        self._ask(list(requests.values()), rest=len(expected) - len(requests), planned=False)
        return [
            given_case(problem, policy=policy)
            if isinstance(problem, Given)
            else written_case(problem, self._replies[requests[problem.id].key], policy=policy)
            for problem in problems
        ]

    def _ask(self, requests: Sequence[Request], *, rest: int, planned: bool = True) -> None:
        """Ask what is missing; `rest` is about what comes after."""
        new = {request.key: request for request in requests if request.key not in self._replies}
        if not new:
            return
        if planned:
            self._reporter.say(f"rows: {self._asker.plan(new.values())}")
        done = len(self._replies)
        self._reporter.correct(done + len(new) + rest)
        told = 0

        def advance(progress: Progress) -> None:
            nonlocal told
            self._reporter.advance(progress.n_done - told)
            told = progress.n_done

        self._replies.update(self._asker.ask(new.values(), progress=advance))
        if len(new) > told:
            self._reporter.advance(len(new) - told, scored=False)

    def _explain(self, case: Case, probes: Mapping[str, Sequence[Probe]]) -> Explained:
        vectors, said = {}, {}
        for name, method in self._config.methods().items():
            replies = [self._replies[probe_request(case, probe, self._config).key] for probe in probes[name]]
            texts = [reply.text for probe, reply in zip(probes[name], replies, strict=True) if probe.prompt]
            problem = None
            try:
                rng = rng_for(self._config.seed, case.id, f"attribution:{name}")
                lens = StepLens(replies, rng, None if self._inside is None else self._inside.of(case))
                vectors[name] = method.attribute(case, lens)
            except Unexplained as exc:
                problem = str(exc)
            if texts or problem:
                said[name] = Said("\n".join(texts) or None, sum(_tokens(reply) for reply in replies), problem=problem)
        return Explained(vectors, said)


def _refuse_looking_into_servers(config: CotConfig, backend: Backend) -> None:
    if backend.model is not None:
        return
    inner = [name for name, method in config.methods().items() if method.needs_model]
    if inner or config.levels:
        what = f"the step attribution '{inner[0]}' looks" if inner else "tokens and steps side by side need a look"
        raise CapabilityError(f"{what} into the model, which a server does not show; load it here, without a server.")


def _refuse_replacing_in_one(config: CotConfig, source: Source) -> None:
    """Before anything is paid for; that others turn out to have no steps shows only later."""
    needing = [name for name, operator in config.chosen_operators().items() if getattr(operator, "needs_fills", False)]
    if needing and len(source.problems) < 2:
        raise ConfigError(
            f"the operator '{needing[0]}' takes steps of other problems, and there is one problem only; evaluate more, "
            "or leave it out."
        )


def _probe_rows(case: Case, probes: Mapping[str, Sequence[Probe]]) -> list[StepRow]:
    """The probes that are rows."""
    return [
        StepRow(
            RowKey(case.id, probe_kind(name), "delete", "necessity", 1, index),
            probe.kept,
            tuple(case.texts[step] for step in probe.kept),
            probe.repeat,
        )
        for name, asked in probes.items()
        for index, probe in enumerate(asked)
        if probe.kept is not None
    ]


def _tokens(reply: Response) -> int:
    return 0 if reply.usage is None else sum(reply.usage)


def _prompts_hash() -> str:
    """Other words of the prompts make another run."""
    return content_hash([ASK, CONCLUDE, RATE])


def _manifest(
    config: CotConfig,
    source: Source,
    backend: Backend,
    asked: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "status": "running",
        "config": config.plain(),
        "attributions": {name: {"method": method.name, **asdict(method)} for name, method in config.methods().items()},
        "config_hash": config_hash(asked),
        "identity": dict(asked),
        "labels": list(LABELS),
        "label_ids": [],
        "label_scoring": "answer",
        "data": {"origin": source.origin, "examples": len(source.problems)},
        "prompt": CONCLUDE,
        "device": str(backend.about.get("device", "server")),
        "threads": None,
        "token_budget": None,
        "flags": [],
        "versions": versions_of(("openai", "torch", "transformers", "numpy", "scipy")),
        "started": stored["started"] if stored is not None else now(),
        "messages": [],
        "cot": dict(backend.about),
    }


def _write(
    folder: RunFolder,
    cases: Sequence[Case],
    ledger: Mapping[str, Sequence[tuple[StepRow, Response]]],
    explained: Mapping[str, Explained],
) -> None:
    """Build all parts anew from the replies."""
    folder.clear_parts()
    nothing = Explained({}, {})
    for index, start in enumerate(range(0, len(cases), PART_SIZE)):
        part = cases[start : start + PART_SIZE]
        inputs = [input_row(case, explained.get(case.id, nothing)) for case in part]
        rows = [ledger_row(case, row, reply) for case in part for row, reply in ledger.get(case.id, ())]
        kinds = Counter(row.key.kind for row in rows)
        folder.write_part(index, inputs, rows, {"rows": len(rows), "rows_by_kind": dict(kinds)})
