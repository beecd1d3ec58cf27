"""A step-level run: chains, rows and probes, the rows of the explanations, and the folder that holds them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

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
from ice_eval.models import PART_SIZE, Model
from ice_eval.pipeline import Reporter, Silent
from ice_eval.results import (
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
from ice_eval.results.records import ChainInfo, DataInfo, Scalar
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
    about: ChainInfo
    """The address, or the device and weights."""
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
        config = config.extended_by(stored.config)
        _tell_of_another_server(stored, backend, reporter)
    if backend.model is not None:
        reporter.say(f"{config.model} writes its replies here, on {backend.model.devices}: the first may take minutes.")
    manifest = _manifest(config, source, backend, identity, stored)
    with folder.opened():
        folder.write_manifest(manifest)
        with ResponseStore(folder.path / RESPONSES) as store:
            rounds = Rounds(config, backend.model, backend.make(store), reporter)
            try:
                outcome = rounds.evaluate(source.problems)
            finally:
                reporter.stop()
            manifest = replace(manifest, chains=rounds.account(store, backend.about))
        _write_parts(folder, outcome)
        if config.levels and backend.model is not None:
            write_levels(folder, evaluated(outcome.cases), backend.model, config, reporter)
        folder.write_manifest(manifest)
        rescore_chains(folder)
        folder.write_manifest(replace(manifest, status="complete", finished=now()))
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


def _identity(config: CotConfig, source: Source, backend: Backend) -> dict[str, Scalar]:
    """What makes the run the run it is. Other words of the prompts make another one; another address does not."""
    found = {**config.identity(), "data": source.hash(), "prompts": content_hash([ASK, CONCLUDE, RATE])}
    return found if backend.about.weights is None else {**found, "weights": backend.about.weights}


def _tell_of_another_server(stored: Manifest, backend: Backend, reporter: Reporter) -> None:
    before, here = None if stored.chains is None else stored.chains.base_url, backend.about.base_url
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


def _write_parts(folder: RunFolder, outcome: Outcome) -> None:
    """Build all parts anew from the replies."""
    folder.clear_parts()
    nothing = Explained({}, {})
    for index, start in enumerate(range(0, len(outcome.cases), PART_SIZE)):
        part = outcome.cases[start : start + PART_SIZE]
        inputs = [input_row(case, outcome.explained.get(case.id, nothing)) for case in part]
        rows = [ledger_row(case, replied) for case in part for replied in outcome.replies.get(case.id, ())]
        kinds = Counter(row.key.kind.label for row in rows)
        ledger = Ledger.of_records(rows, _names(part, rows))
        folder.write_part(index, inputs, ledger, {"rows": len(rows), "rows_by_kind": dict(kinds)})


def _names(cases: Sequence[Case], rows: Sequence[LedgerRow]) -> Names:
    """Return the names that the rows of some cases use."""
    used = ({getattr(row.key, name) for row in rows} - {None} for name in ("attribution", "null", "operator"))
    return Names(tuple(case.id for case in cases), *(tuple(sorted(each)) for each in used))
