"""A step-level run: three rounds of questions, and the folder that holds the replies."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ice_eval.errors import CapabilityError, ConfigError, ModelError
from ice_eval.models import PART_SIZE, Model
from ice_eval.pipeline import Reporter, Silent
from ice_eval.records import Answer, PerUnit, Span
from ice_eval.results import (
    InputRow,
    LedgerRow,
    Manifest,
    RunFolder,
    config_hash,
    content_hash,
    now,
    slug,
    stored_run,
    versions_of,
)
from ice_eval.results.ledger import Ledger, Names
from ice_eval.results.records import ChainInfo, DataInfo, Scalar, TokenCount
from ice_eval.seeding import rng_for
from ice_eval.servers import RESPONSES, Request, RequestPlan, RequestProgress, Response, ResponseStore, addresses
from ice_eval.subjects.chain.answers import FinalAnswer, Unreadable
from ice_eval.subjects.chain.attributions import RATE, StepLens, StepProbe, Unexplained
from ice_eval.subjects.chain.levels import write_levels
from ice_eval.subjects.chain.local import AnswerScorer, summed_over_steps
from ice_eval.subjects.chain.problems import (
    Case,
    GivenChain,
    Problem,
    evaluated,
    given_case,
    reading_of,
    written_case,
)
from ice_eval.subjects.chain.rows import (
    ASK,
    CONCLUDE,
    CotConfig,
    StepRow,
    chain_request,
    expected_requests,
    first_rows,
    probe_request,
    probe_rows,
    rationale_rows,
    row_request,
    step_fills,
)
from ice_eval.subjects.chain.summary import (
    ANSWER,
    CHAIN,
    CHANGED,
    GOLD,
    LABELS,
    QUESTION,
    SAME,
    UNREAD,
    rescore_chains,
)


class Asker(Protocol):
    """Answers requests, each once, and keeps every response on disk (`Chat`, `LocalChat`)."""

    def plan(self, requests: Iterable[Request]) -> RequestPlan:
        """Estimate the greatest cost of some requests; asks nothing."""
        ...

    def ask(
        self, requests: Iterable[Request], *, progress: Callable[[RequestProgress], None] | None = None
    ) -> dict[str, Response]:
        """Return the response to every request, by its key."""
        ...


@dataclass(frozen=True)
class ProblemSource:
    """Problems to be put to the model, or user-supplied chains."""

    problems: Sequence[Problem | GivenChain]
    origin: str
    """Where they come from, in words."""

    def hash(self) -> str:
        """Return a hash of the content."""
        return content_hash([asdict(problem) for problem in self.problems])


@dataclass(frozen=True)
class ChatBackend:
    """The model that answers, behind a server or on this machine."""

    make: Callable[[ResponseStore], Asker]
    about: ChainInfo
    """The address, or the device and weights."""
    model: Model | None = None
    """The model on this machine, which attributions may look into."""


@dataclass(frozen=True, kw_only=True)
class ChainPlan(RequestPlan):
    """The plan of the requests, with what is known beforehand of the problems."""

    n_problems: int
    skipped: dict[str, int]
    """User-supplied chains that cannot be evaluated, by reason; nothing is asked about them."""

    def __str__(self) -> str:
        if not self.skipped:
            return super().__str__()
        reasons = "; ".join(f"{reason} ({count})" for reason, count in self.skipped.items())
        return (
            f"{sum(self.skipped.values()):,} of {self.n_problems:,} chains take no part: {reasons}\n{super().__str__()}"
        )


def skipped_chains(problems: Sequence[Problem | GivenChain], config: CotConfig) -> dict[str, int]:
    """Count the user-supplied chains that are skipped, by reason, the most frequent first."""
    cases = [given_case(each, policy=config.answer_step) for each in problems if isinstance(each, GivenChain)]
    return dict(Counter(case.skip_reason for case in cases if case.skip_reason is not None).most_common())


def execute_chains(
    config: CotConfig,
    source: ProblemSource,
    backend: ChatBackend,
    *,
    out: Path | None = None,
    reporter: Reporter | None = None,
) -> RunFolder:
    """Run, or continue, a step-level evaluation and return its folder.

    Every reply is on disk the moment it arrives, and parts are built from the replies when all are there: a kill loses
    only requests that are under way, and the same call again asks for nothing twice.

    Args:
        config: Configuration of the run.
        source: Problems, or chains.
        backend: The model that answers.
        out: The run folder; by default one under `ice-runs/` whose name identifies the configuration.
        reporter: Gets progress and messages.

    Raises:
        ConfigError: The configuration is wrong, or the server refuses.
        BudgetError: The limit is reached before all is answered.
        ModelError: No problem could be evaluated, or the server stopped answering.
    """
    reporter = reporter or Silent()
    _check(config, source, backend)
    identity = _identity(config, source, backend)
    name = f"cot-{slug(config.task)}-{slug(config.model)}-{config_hash(identity)[:8]}"
    folder = RunFolder(out or Path("ice-runs") / name)
    stored = stored_run(folder, identity)
    if stored is not None:
        config = config.extended_by(stored.config)
        before, here = None if stored.chains is None else stored.chains.base_url, backend.about.base_url
        if before != here:
            reporter.say(f"{before} has answered so far; what is missing is asked of {here}.")
    if backend.model is not None:
        reporter.say(f"{config.model} writes its replies here, on {backend.model.devices}: the first may take minutes.")
    manifest = _manifest(config, source, backend, identity, stored)
    with folder.opened():
        folder.write_manifest(manifest)
        with ResponseStore(folder.path / RESPONSES) as store:
            rounds = Rounds(config, backend.model, backend.make(store), reporter)
            try:
                cases = rounds.evaluate(source.problems)
            finally:
                reporter.stop()
            manifest = replace(manifest, chains=rounds.account(store, backend.about))
        rounds.write_parts(folder, cases)
        used = evaluated(cases)
        if config.levels and backend.model is not None:
            write_levels(folder, used, backend.model, config, reporter)
        folder.write_manifest(manifest)
        rescore_chains(folder)
        folder.write_manifest(replace(manifest, status="complete", finished=now()))
    if not used:
        reasons = Counter(case.skip_reason for case in cases).most_common(3)
        told = "; ".join(f"{reason} ({count})" for reason, count in reasons)
        raise ModelError(f"no problem could be evaluated: {told}; see {folder.path}.")
    return folder


def _check(config: CotConfig, source: ProblemSource, backend: ChatBackend) -> None:
    """Refuse what cannot be done before anything is paid for."""
    inner = [name for name, method in config.methods().items() if method.needs_model]
    if backend.model is None and (inner or config.levels):
        what = f"the step attribution '{inner[0]}' looks" if inner else "tokens and steps side by side need a look"
        raise CapabilityError(f"{what} into the model, which a server does not show; load it here, without a server.")
    needing = config.needing_fills()
    if needing and len(source.problems) < 2:
        raise ConfigError(
            f"the operator '{needing[0]}' takes steps of other problems, and there is one problem only; evaluate more, "
            "or leave it out."
        )


def _identity(config: CotConfig, source: ProblemSource, backend: ChatBackend) -> dict[str, Scalar]:
    """Return what makes two runs the same: the words of the prompts count, the address does not."""
    found = {**config.identity(), "data": source.hash(), "prompts": content_hash([ASK, CONCLUDE, RATE])}
    return found if backend.about.weights is None else {**found, "weights": backend.about.weights}


def _manifest(
    config: CotConfig,
    source: ProblemSource,
    backend: ChatBackend,
    identity: Mapping[str, Scalar],
    stored: Manifest | None,
) -> Manifest:
    before = ChainInfo() if stored is None or stored.chains is None else stored.chains
    here = {name: value for name, value in vars(backend.about).items() if value}
    return Manifest(
        status="running",
        config=config.settings(),
        attributions={name: {"method": method.name, **asdict(method)} for name, method in config.methods().items()},
        config_hash=config_hash(identity),
        identity=dict(identity),
        labels=LABELS,
        label_ids=(),
        label_scoring="answer",
        data=DataInfo(origin=source.origin, examples=len(source.problems)),
        prompt=CONCLUDE,
        device=backend.about.device or "server",
        threads=None,
        token_budget=None,
        part_size=PART_SIZE,
        flags=(),
        versions=versions_of(("openai", "torch", "transformers", "numpy", "scipy")),
        started=stored.started if stored is not None else now(),
        messages=(),
        chains=replace(before, **here),
    )


class CaseAttributions(NamedTuple):
    """The attributions of one case."""

    vectors: Mapping[str, PerUnit]
    answers: Mapping[str, Answer]
    """Texts that the model wrote where it was asked, and why there are no numbers where there are none."""


class Rounds:
    """Three rounds of questions: the chains; rows and probes; the rows of what the attributions chose."""

    def __init__(self, config: CotConfig, model: Model | None, asker: Asker, reporter: Reporter) -> None:
        self._config, self._asker, self._reporter = config, asker, reporter
        self._scorer = None if model is None else AnswerScorer(model)
        self._replies: dict[str, Response] = {}
        self._read: Counter[str] = Counter()
        self._explained: dict[str, CaseAttributions] = {}
        self._rows: dict[str, list[LedgerRow]] = {}

    def evaluate(self, problems: Sequence[Problem | GivenChain]) -> list[Case]:
        """Ask all questions about some problems, and return the case of each."""
        config = self._config
        cases = self._cases(problems)
        used = evaluated(cases)
        fills = step_fills(used, seed=config.seed) if config.needing_fills() else {case.id: () for case in used}
        rows = {case.id: list(first_rows(case, config, fills[case.id])) for case in used}
        probes = {case.id: {name: method.probes(case) for name, method in config.methods().items()} for case in used}
        about = [
            request
            for case in used
            for request in (
                *(row_request(case, row, config) for row in rows[case.id]),
                *(probe_request(case, probe, config) for asked in probes[case.id].values() for probe in asked),
            )
        ]
        self._ask(about, "about the chains", rest=2 * len(used) * len(config.attributions) * len(config.k))
        for case in used:
            self._explained[case.id] = self._explain(case, probes[case.id])
            rows[case.id] += rationale_rows(case, config, fills[case.id], self._explained[case.id].vectors)
            rows[case.id] += probe_rows(case, probes[case.id])
        chosen = [row_request(case, row, config) for case in used for row in rows[case.id]]
        self._ask(chosen, "about what explanations chose", rest=0)
        self._rows = {case.id: [self._scored(case, row) for row in rows[case.id]] for case in used}
        return cases

    def account(self, store: ResponseStore, about: ChainInfo) -> ChainInfo:
        """Return `about` with the counts and the addresses of the replies."""
        replies = [store.responses[key] for key in self._replies]
        served = addresses(replies)
        return replace(
            about,
            base_url=served.get("base_url", about.base_url),
            base_urls=tuple(served.get("base_urls", ())),
            responses=dict(Counter(str(reply.status) for reply in replies)),
            rows_read=dict(self._read),
            served_models=tuple(sorted({reply.model for reply in replies if reply.model})),
            fingerprints=tuple(sorted({reply.fingerprint for reply in replies if reply.fingerprint})),
            tokens=TokenCount(**store.billed._asdict()),
            n_charged=store.n_charged,
        )

    def write_parts(self, folder: RunFolder, cases: Sequence[Case]) -> None:
        """Build all parts anew from the replies."""
        folder.clear_parts()
        nothing = CaseAttributions({}, {})
        for index, start in enumerate(range(0, len(cases), PART_SIZE)):
            part = cases[start : start + PART_SIZE]
            inputs = [_input_row(case, self._explained.get(case.id, nothing)) for case in part]
            rows = [row for case in part for row in self._rows.get(case.id, ())]
            used = ({getattr(row.key, name) for row in rows} - {None} for name in ("attribution", "null", "operator"))
            names = Names(tuple(case.id for case in part), *(tuple(sorted(each)) for each in used))
            kinds = Counter(row.key.kind.label for row in rows)
            ledger = Ledger.of_records(rows, names)
            folder.write_part(index, inputs, ledger, {"rows": len(rows), "rows_by_kind": dict(kinds)})

    def _cases(self, problems: Sequence[Problem | GivenChain]) -> list[Case]:
        policy = self._config.answer_step
        asked = [problem for problem in problems if isinstance(problem, Problem)]
        requests = {problem.id: chain_request(problem, self._config) for problem in asked}
        expected = expected_requests(problems, self._config)
        if self._asker.plan(requests.values()).n_to_ask:  # else the rows are known, and reported exactly
            self._reporter.say(f"plan, for chains of six steps: {self._asker.plan(expected)}")
        self._reporter.start(len(expected))
        self._ask(list(requests.values()), None, rest=len(expected) - len(requests))
        return [
            given_case(problem, policy=policy)
            if isinstance(problem, GivenChain)
            else written_case(problem, self._replies[requests[problem.id].key], policy=policy)
            for problem in problems
        ]

    def _ask(self, requests: Sequence[Request], what: str | None, *, rest: int) -> None:
        """Ask what is missing.

        Args:
            requests: All of a round.
            what: Name of the round in the plan; None where the plan is known already.
            rest: Expected number of requests in later rounds.
        """
        new = {request.key: request for request in requests if request.key not in self._replies}
        if not new:
            return
        plan = self._asker.plan(new.values())
        if what is not None:
            self._reporter.say(f"{what}: {plan}")
        self._reporter.correct(len(self._replies) + len(new) + rest)
        n_reported = plan.n_answered
        self._reporter.advance(n_reported, scored=False)

        def advance(progress: RequestProgress) -> None:
            nonlocal n_reported
            self._reporter.advance(progress.n_done - n_reported)
            n_reported = progress.n_done

        self._replies.update(self._asker.ask(new.values(), progress=advance))

    def _explain(self, case: Case, probes: Mapping[str, Sequence[StepProbe]]) -> CaseAttributions:
        vectors, answers = {}, {}
        inside = None
        if self._scorer is not None:
            inside = partial(summed_over_steps, self._scorer, case, seed=self._config.seed)
        for name, method in self._config.methods().items():
            replies = [self._replies[probe_request(case, probe, self._config).key] for probe in probes[name]]
            lens = StepLens(replies, rng_for(self._config.seed, case.id, f"attribution:{name}"), inside)
            problem = None
            try:
                vectors[name] = method.attribute(case, lens)
            except Unexplained as exc:
                problem = str(exc)
            texts = [reply.text for probe, reply in zip(probes[name], replies, strict=True) if probe.prompt]
            if texts or problem:
                n_tokens = sum(sum(reply.usage) for reply in replies if reply.usage is not None)
                answers[name] = Answer("\n".join(texts) or None, n_tokens, problem=problem)
        return CaseAttributions(vectors, answers)

    def _scored(self, case: Case, row: StepRow) -> LedgerRow:
        """Return a row with the score of its reply."""
        response = self._replies[row_request(case, row, self._config).key]
        reading = reading_of(response, case.problem.kind)
        self._read[reading.reason if isinstance(reading, Unreadable) else "read"] += 1
        scores = UNREAD
        if isinstance(reading, FinalAnswer):
            scores = SAME if case.problem.kind.same(reading, case.own) else CHANGED
        return LedgerRow(row.key, row.kept, scores, text=response.text)


def _input_row(case: Case, explained: CaseAttributions) -> InputRow:
    """Return a case as the folder stores it: the spans of its steps refer to the field `chain`."""
    fields = {QUESTION: case.problem.question, CHAIN: case.chain.response}
    if isinstance(case.answer, FinalAnswer):
        fields[ANSWER] = case.answer.value
    if case.problem.gold is not None:
        fields[GOLD] = case.problem.gold.value
    return InputRow(
        case.id,
        fields,
        spans=tuple(Span(CHAIN, step.start, step.end) for step in case.steps),
        gold=None if case.is_right is None else int(not case.is_right),
        target=None if case.skip_reason is not None else 0,
        skip_reason=case.skip_reason,
        attributions={name: tuple(values.tolist()) for name, values in explained.vectors.items()},
        answers=dict(explained.answers),
    )
