"""A step-level run: chains, rows and probes, the rows of the explanations, and the folder that holds them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ice_eval.cot.asking import Asker
from ice_eval.cot.cases import Case, evaluated
from ice_eval.cot.config import CotConfig
from ice_eval.cot.given import Given
from ice_eval.cot.ledger import LABELS, Explained, input_row, ledger_row
from ice_eval.cot.levels import write_levels
from ice_eval.cot.prompts import ASK, CONCLUDE, RATE
from ice_eval.cot.rounds import Outcome, Rounds
from ice_eval.cot.summary import rescore_chains
from ice_eval.cot.tasks import Problem
from ice_eval.errors import CapabilityError, ConfigError, ModelError
from ice_eval.models import Model
from ice_eval.pipeline import Reporter, Silent
from ice_eval.pipeline.part import PART_SIZE
from ice_eval.results import RunFolder, config_hash, content_hash, now, slug, stored_run, versions_of
from ice_eval.servers import RESPONSES, ResponseStore


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
    identity = _identity(config, source, backend)
    name = f"cot-{slug(config.task)}-{slug(config.model)}-{config_hash(identity)[:8]}"
    folder = RunFolder(out or Path("ice-runs") / name)
    stored = stored_run(folder, identity)
    if stored is not None:
        config = config.extended_by(stored["config"])
        _tell_of_another_server(stored, backend, reporter)
    if backend.model is not None:
        reporter.say(f"{config.model} writes its replies here, on {backend.model.places}: the first may take minutes.")
    manifest = _manifest(config, source, backend, identity, stored)
    with folder.opened():
        folder.write_manifest(manifest)
        with ResponseStore(folder.path / RESPONSES) as store:
            rounds = Rounds(config, backend.model, backend.make(store), reporter)
            try:
                outcome = rounds.evaluate(source.problems)
            finally:
                reporter.stop()
            manifest |= {"cot": {**backend.about, **rounds.account(store)}}
        _write_parts(folder, outcome)
        if config.levels and backend.model is not None:
            write_levels(folder, evaluated(outcome.cases), backend.model, config, reporter)
        folder.write_manifest(manifest)
        rescore_chains(folder)
        folder.write_manifest({**manifest, "status": "complete", "finished": now()})
    if not evaluated(outcome.cases):
        raise _nothing_evaluated(outcome.cases, folder)
    return folder


def _refuse_looking_into_servers(config: CotConfig, backend: Backend) -> None:
    if backend.model is not None:
        return
    inner = [name for name, method in config.methods().items() if method.needs_model]
    if inner or config.levels:
        what = f"the step attribution '{inner[0]}' looks" if inner else "tokens and steps side by side need a look"
        raise CapabilityError(f"{what} into the model, which a server does not show; load it here, without a server.")


def _refuse_replacing_in_one(config: CotConfig, source: Source) -> None:
    """Before anything is paid for; that others turn out to have no steps shows only later."""
    needing = [name for name, operator in config.removals().items() if operator.needs_fills]
    if needing and len(source.problems) < 2:
        raise ConfigError(
            f"the operator '{needing[0]}' takes steps of other problems, and there is one problem only; evaluate more, "
            "or leave it out."
        )


def _identity(config: CotConfig, source: Source, backend: Backend) -> dict[str, Any]:
    """What makes the run the run it is. Other words of the prompts make another one; another address does not."""
    weights = {"weights": backend.about["weights"]} if "weights" in backend.about else {}
    return {
        **config.identity(),
        "data": source.hash(),
        "prompts": content_hash([ASK, CONCLUDE, RATE]),
        **weights,
    }


def _tell_of_another_server(stored: Mapping[str, Any], backend: Backend, reporter: Reporter) -> None:
    before, here = stored["cot"].get("base_url"), backend.about.get("base_url")
    if before != here:
        reporter.say(f"{before} has answered so far; what is missing is asked of {here}.")


def _nothing_evaluated(cases: Sequence[Case], folder: RunFolder) -> ModelError:
    reasons = Counter(case.skip_reason for case in cases)
    told = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
    return ModelError(f"no problem could be evaluated: {told}; see {folder.path}.")


def _manifest(
    config: CotConfig,
    source: Source,
    backend: Backend,
    identity: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "status": "running",
        "config": config.plain(),
        "attributions": {name: {"method": method.name, **asdict(method)} for name, method in config.methods().items()},
        "config_hash": config_hash(identity),
        "identity": dict(identity),
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
        "cot": {**(stored or {}).get("cot", {}), **backend.about},
    }


def _write_parts(folder: RunFolder, outcome: Outcome) -> None:
    """Build all parts anew from the replies."""
    folder.clear_parts()
    nothing = Explained({}, {})
    for index, start in enumerate(range(0, len(outcome.cases), PART_SIZE)):
        part = outcome.cases[start : start + PART_SIZE]
        inputs = [input_row(case, outcome.explained.get(case.id, nothing)) for case in part]
        rows = [ledger_row(case, replied) for case in part for replied in outcome.replies.get(case.id, ())]
        kinds = Counter(row.key.kind for row in rows)
        folder.write_part(index, inputs, rows, {"rows": len(rows), "rows_by_kind": dict(kinds)})
