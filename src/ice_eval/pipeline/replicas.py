"""A model where it computes, and what a run asks of it there. A run has one, or several that are alike."""

import contextlib
import itertools
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ice_eval.attributions import OF_EVERY_MODEL, Attribution, Lens, Observer
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.encoding import shared_prefix
from ice_eval.errors import CapabilityError, ConfigError, IceError, ModelError
from ice_eval.executors import Executor, Local, LocalWorkers, Workers
from ice_eval.models import Labels, LoadSettings, Model, ModelRef, Served, load_model, load_reader
from ice_eval.pipeline.engine import Engine, prepare
from ice_eval.pipeline.progress import Reporter, Silent
from ice_eval.records import Example, Inputs, Kind
from ice_eval.results import Manifest, RunFolder
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.results.records import Adaptation
from ice_eval.scoring import Scorer
from ice_eval.seeding import rng_for
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task

_CHECKED_EXAMPLES = 2
_TRIED_EXAMPLES = 16
"""The shortest of these is tried."""


class ModelInfo(NamedTuple):
    """What a run notes of its model."""

    name: str
    fingerprint: str
    dtype: str
    load_in: str | None
    devices: str
    budget: int
    """Tokens per batch that suit the device."""
    part_size: int
    """Examples of a part."""

    @property
    def identity(self) -> dict[str, str | None]:
        """What of the model defines rows."""
        return {"id": self.name, "fingerprint": self.fingerprint, "dtype": self.dtype, "load_in": self.load_in}


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A run as a replica must know it, whatever process it lives in."""

    config: RunConfig
    task: Task
    examples: Sequence[Example] = field(repr=False)
    """Those to evaluate, and those that fill the pool of infill."""
    attributions: Mapping[str, Attribution] = field(repr=False)
    budget: int
    """Tokens per batch."""
    part_size: int
    """Examples of a part; a run that is continued keeps it."""
    lowered: Mapping[int, int]
    """Smaller budgets for rows of some lengths."""
    threads: int | None
    targets: Mapping[str, int] | None = field(repr=False)
    """Labels to explain, by example id, where the run of another model decided them."""
    weights: str
    """Fingerprint of the weights that the run is of."""
    checked: tuple[str, ...] | None = None
    """What the check of the model said, once one replica did it."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Distinguishes this run from others."""


@dataclass(frozen=True)
class Part:
    """Consecutive examples, and what the folder holds of them."""

    index: int
    config: RunConfig
    """What is asked for: a pilot asks for fewer sets than its run."""
    examples: Sequence[Example]
    inputs: Sequence[InputRow]
    ledger: Ledger


class Replica:
    """A model, and what it needs for the run at hand."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._info: ModelInfo | None = None
        self._engine: tuple[str, Engine] | None = None
        self._checked: tuple[str, tuple[str, ...]] | None = None

    def info(self) -> ModelInfo:
        """What the model is; the weights are read through once."""
        if self._info is None:
            model = self.model
            self._info = ModelInfo(
                name=model.name,
                fingerprint=model.fingerprint,
                dtype=model.dtype,
                load_in=model.load_in,
                devices=model.devices,
                budget=model.default_budget(),
                part_size=model.part_size,
            )
        return self._info

    def engine(self, spec: RunSpec) -> Engine:
        """All that a run names, put together once."""
        if self._engine is None or self._engine[0] != spec.key:
            engine = prepare(spec.config, self.model, spec.task, spec.attributions, spec.examples)
            scorer = Scorer(self.model, engine.scorer.labels, budget=spec.budget, lowered=spec.lowered)
            self._engine = spec.key, replace(engine, scorer=scorer, targets=spec.targets)
        return self._engine[1]

    def checked(self, spec: RunSpec) -> tuple[str, ...]:
        """Compare fast and plain scores on a few rows, once, before anything depends on them, and say what was found.

        Raises:
            ModelError: The weights are not those of the run, or another replica found otherwise.
        """
        if self._checked is None or self._checked[0] != spec.key:
            if self.info().fingerprint != spec.weights:
                raise ModelError(
                    f"a worker has other weights of '{self.model.name}' than the run; give all of them the same files."
                )
            self.model.use_threads(spec.threads)
            self._checked = spec.key, tuple(_check_model(self.engine(spec), spec.examples[: spec.config.n]))
        found = self._checked[1]
        if spec.checked is not None and found != spec.checked:
            raise ModelError(
                f"workers compute '{self.model.name}' in different ways (one says: {' '.join(found) or 'nothing'}; "
                f"another: {' '.join(spec.checked) or 'nothing'}); use machines of one kind."
            )
        return found

    def try_attributions(self, spec: RunSpec, done: Collection[str]) -> None:
        """Every attribution looks at one short example: what it cannot do with this model stops the run here.

        Raises:
            CapabilityError: The model does not show what an attribution needs.
            ConfigError: An option is out of the model's range.
        """
        engine = self.engine(spec)
        first = spec.examples[: spec.config.n][:_TRIED_EXAMPLES]
        items = [item for item in map(engine.encode, first) if item.n_units > 1]
        if not items:
            return
        item = min(items, key=lambda each: len(each.ids))
        for name, method in engine.attributions.items():
            if name in done:
                continue
            needs, targets = method.needs - OF_EVERY_MODEL, {item.example_id: 0}
            observer = Observer(engine.model, engine.scorer.labels, targets, needs, chat=engine.in_turns)
            try:
                method.check(Lens(observer, method.needs, engine.config.seed, name, engine.data), item)
            except IceError as exc:
                if not isinstance(exc, CapabilityError):
                    raise
                raise _unable(name, engine.model, str(exc)) from exc
            except Exception as exc:  # models fail in their own ways when they are asked for what they do not foresee
                told = str(exc).strip().partition("\n")[0]
                raise _unable(name, engine.model, f"{type(exc).__name__}: {told}") from exc

    def notes(self) -> list[str]:
        """What a user should know of how the model is used."""
        return list(self.model.notes)

    def peak_memory(self) -> int | None:
        return self.model.peak_memory()

    def noise(self, spec: RunSpec, ledger: Ledger) -> dict[str, Any] | None:
        """Return how far scores move when their rows are scored alone."""
        return noise_guard(self.model, self.engine(spec).scorer.labels, ledger, seed=spec.config.seed)


def _check_model(engine: Engine, examples: Sequence[Example]) -> list[str]:
    evaluated = (item for item in map(engine.encode, examples) if item.n_units > 1)
    items = list(itertools.islice(evaluated, _CHECKED_EXAMPLES))
    if not items:
        return []
    rows = Inputs.join([row for item in items for row in (item.full(), item.empty())])
    return engine.model.check(rows, engine.scorer.labels, prefix=shared_prefix(items))


def _unable(name: str, model: Model, why: str) -> CapabilityError:
    probing = [known for known, method in attribution_registry.items() if "values" in method.needs]
    return CapabilityError(
        f"the attribution '{name}' does not work with the model '{model.name}' ({why.rstrip('.')}). Those that need "
        f"nothing but scores work with every model: {', '.join(probing)}."
    )


@dataclass(frozen=True)
class Replicas:
    """A model as a run sees it: something that reads texts here, and workers that compute, here or elsewhere."""

    reader: Replica
    """Encodes texts and names labels; where replicas compute elsewhere it needs no weights."""
    workers: Workers[Replica]
    owned: bool = True
    """Whether the model was loaded for them, and does not belong to a caller who goes on with it."""

    @classmethod
    def here(cls, model: Model, *, owned: bool = False) -> "Replicas":
        """A model of this process, which reads and computes."""
        replica = Replica(model)
        return cls(replica, LocalWorkers(replica), owned)

    def release(self) -> None:
        """Let go of all of them."""
        self.workers.release()
        if self.owned:
            self.reader.model.release()


def load_replicas(
    ref: ModelRef,
    executor: Executor,
    *,
    name: str | None = None,
    reporter: Reporter | None = None,
    **loading: Any,
) -> Replicas:
    """Load a model where an executor computes.

    Args:
        ref: What a user calls the model.
        executor: Where it is to compute.
        name: What to call it, in place of its own name.
        reporter: Gets messages.
        **loading: What `load_model` takes: `device`, `dtype` and others, of the machine that computes.

    Raises:
        ConfigError: There is no such model, it is of a kind that cannot be read, or it computes behind a server.
        ModelError: It is there but failed to load.
    """
    owned = not isinstance(ref, Model)
    if isinstance(executor, Local):
        return Replicas.here(_named(load_model(ref, **loading), name), owned=owned)
    if isinstance(ref, Served):
        raise ConfigError(
            f"'{ref.name}' computes behind a server, so there is nothing to spread; use --executor local, and "
            "--concurrency for more requests at once."
        )
    LoadSettings(**loading)  # what cannot be is told before anybody loads
    reader = _named(load_reader(ref), name)
    make = partial(_replica, ref, name, os.getcwd(), loading)
    workers = executor.workers(make, threads=reader.use_threads(None), say=(reporter or Silent()).say)
    return Replicas(Replica(reader), workers, owned)


def _replica(ref: ModelRef, name: str | None, folder: str, loading: Mapping[str, Any]) -> Replica:
    """A replica in the process of a worker; paths are meant from the folder where the command was given."""
    with contextlib.chdir(folder) if os.path.isdir(folder) else contextlib.nullcontext():
        return Replica(_named(load_model(ref, **loading), name))


def _named(model: Model, name: str | None) -> Model:
    if name is not None:
        model.name = name
    return model


_ROWS = 8


def noise_guard(model: Model, labels: Labels, ledger: Ledger, *, seed: int) -> dict[str, Any] | None:
    """Score a sample of rows again, each alone, and compare.

    Returns:
        The number of rows, and the largest difference of a log-score and of a probability; None without a finite row.
    """
    compared = ~np.isin(ledger.head["kind"], (Kind.PROBE, Kind.ERASER, Kind.LEAVE_ONE_OUT))
    finite = np.flatnonzero(np.isfinite(ledger.scores).all(axis=1) & compared)
    if not finite.size:
        return None
    chosen = finite[rng_for(seed, "noise-guard").permutation(len(finite))[:_ROWS]]
    batched, inputs = ledger.scores[chosen], ledger.inputs.take(chosen)
    alone = model.again(inputs, labels, prefix=_common(inputs))
    return {
        "rows": len(chosen),
        "log_score": float(np.abs(alone - batched).max()),
        "probability": float(np.abs(np.exp(alone) - np.exp(batched)).max()),
    }


def _common(inputs: Inputs) -> int:
    """Return how many ids all rows begin with."""
    shortest = int(inputs.lengths.min())
    heads = np.stack([inputs.row(row)[:shortest] for row in range(len(inputs))])
    differ = np.flatnonzero((heads != heads[:1]).any(axis=0))
    return int(differ[0]) if differ.size else shortest


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all stages of a run share."""

    folder: RunFolder
    workers: Workers[Replica]
    """Computes the scores."""
    spec: RunSpec
    """The run as the workers know it."""
    engine: Engine
    """The run as this process knows it."""
    stored: Manifest | None
    """The manifest of the run that is continued; None for a new one."""
    reporter: Reporter

    @property
    def evaluated(self) -> Sequence[Example]:
        """The examples to evaluate, without those that only fill the pool of infill."""
        return self.spec.examples[: self.engine.config.n]


@dataclass(frozen=True)
class Adapted:
    """How a model came from the deployed one, and the labels that the deployed one's run explains.

    The copy may answer otherwise than the deployed model; what is explained is the deployed model's answer.
    """

    how: str
    """Part of the run's identity, so that it is never taken for a run of the deployed model, or of another copy."""
    targets: Mapping[str, int] = field(repr=False)
    """By example id; examples without one are skipped."""
    record: Adaptation = field(repr=False)
    """For the manifest."""
