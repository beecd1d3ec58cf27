"""Replicas of a model on the devices that compute, and the run data they need."""

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
from ice_eval.encoding import common_start, shared_prefix
from ice_eval.errors import CapabilityError, ConfigError, IceError, ModelError
from ice_eval.executors import Executor, Local, LocalWorkers, Workers
from ice_eval.models import LoadSettings, Model, ModelRef, Served, load_model, load_reader
from ice_eval.pipeline.engine import Engine, prepare
from ice_eval.pipeline.subject import Subject
from ice_eval.records import Example, Inputs, Kind
from ice_eval.results import Manifest, RunFolder
from ice_eval.results.examples import InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.results.records import Adaptation, NoiseGuard
from ice_eval.scoring import Reporter, Scorer, Silent, depends_on_batch
from ice_eval.seeding import rng_for
from ice_eval.settings import RunConfig

_CHECKED_EXAMPLES = 2
_NOISE_ROWS = 8
_TRIED_EXAMPLES = 16
"""Attributions are tried on the shortest of this many examples."""


class ModelInfo(NamedTuple):
    """Facts about the model for the manifest."""

    name: str
    fingerprint: str
    dtype: str
    load_in: str | None
    commit: str | None
    devices: str
    budget: int
    """Tokens per batch that suit the device."""
    part_size: int

    @property
    def identity(self) -> dict[str, str | None]:
        """Fields of the model that define rows."""
        return {"id": self.name, "fingerprint": self.fingerprint, "dtype": self.dtype, "load_in": self.load_in}


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The run as a replica needs it, in any process."""

    config: RunConfig
    subject: Subject
    examples: Sequence[Example] = field(repr=False)
    """Examples to evaluate, and those that fill the pool of infill."""
    attributions: Mapping[str, Attribution] = field(repr=False)
    budget: int
    part_size: int
    """Examples per part; does not change when a run is continued."""
    lowered: Mapping[int, int]
    """Length of row -> smaller token budget."""
    threads: int | None
    targets: Mapping[str, int] | None = field(repr=False)
    """Example id -> label to explain, if the run of another model defined them."""
    weights: str
    """Fingerprint of the run's weights."""
    checked: tuple[str, ...] | None = None
    """Result of the model check, after one replica ran it."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Unique id of this run."""


@dataclass(frozen=True)
class RunPart:
    """Consecutive examples and their stored rows."""

    index: int
    config: RunConfig
    """Configuration of this part: a pilot uses fewer sets than its run."""
    examples: Sequence[Example]
    inputs: Sequence[InputRow]
    ledger: Ledger


class Replica:
    """A loaded model and the engine of its current run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._info: ModelInfo | None = None
        self._engine: tuple[str, Engine] | None = None
        self._checked: tuple[str, tuple[str, ...]] | None = None

    def info(self) -> ModelInfo:
        """Return facts about the model; reads all weights once."""
        if self._info is None:
            model = self.model
            self._info = ModelInfo(
                name=model.name,
                fingerprint=model.fingerprint,
                dtype=model.dtype,
                load_in=model.load_in,
                commit=model.commit,
                devices=model.devices,
                budget=model.default_budget(),
                part_size=model.part_size,
            )
        return self._info

    def engine(self, spec: RunSpec) -> Engine:
        """Return the engine of a run, built once."""
        if self._engine is None or self._engine[0] != spec.key:
            engine = prepare(spec.config, self.model, spec.subject, spec.attributions, spec.examples)
            scorer = Scorer(self.model, engine.scorer.labels, budget=spec.budget, lowered=spec.lowered)
            self._engine = spec.key, replace(engine, scorer=scorer, targets=spec.targets)
        return self._engine[1]

    def checked(self, spec: RunSpec) -> tuple[str, ...]:
        """Compare fast and plain scores on a few rows, once; raise ModelError if the weights or the result differ."""
        if self._checked is None or self._checked[0] != spec.key:
            if self.info().fingerprint != spec.weights:
                raise ModelError(
                    f"a worker has other weights of '{self.model.name}' than the run; give all of them the same files."
                )
            self.model.use_threads(spec.threads)
            engine = self.engine(spec)
            rows, prefix = _checked_rows(engine, spec.examples[: spec.config.n])
            notes = [] if rows is None else self.model.check(rows, engine.scorer.labels, prefix=prefix)
            self._checked = spec.key, tuple(notes)
        found = self._checked[1]
        if spec.checked is not None and found != spec.checked:
            raise ModelError(
                f"workers compute '{self.model.name}' in different ways (one says: {' '.join(found) or 'nothing'}; "
                f"another: {' '.join(spec.checked) or 'nothing'}); use machines of one kind."
            )
        return found

    def doubts(self, spec: RunSpec) -> tuple[str, ...]:
        """Return reasons to doubt the scores, from a few rows that are scored together and each alone."""
        engine = self.engine(spec)
        rows, prefix = _checked_rows(engine, spec.examples[: spec.config.n])
        if rows is None or spec.subject.repeats_inputs or self.model.server is not None:
            return ()
        labels = engine.scorer.labels
        noise = depends_on_batch(self.model, rows, labels, prefix=prefix)
        return (*self.model.doubts(rows, labels), *([] if noise is None else [noise]))

    def try_attributions(self, spec: RunSpec, done: Collection[str]) -> None:
        """Run every attribution on one short example, so that incompatible ones stop the run before its first row."""
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
            except Exception as exc:  # models raise any error for unsupported requests
                told = str(exc).strip().partition("\n")[0]
                raise _unable(name, engine.model, f"{type(exc).__name__}: {told}") from exc

    def notes(self) -> list[str]:
        """Return messages about how the model is used."""
        return list(self.model.notes)

    def peak_memory(self) -> int | None:
        return self.model.peak_memory()

    def noise(self, spec: RunSpec, ledger: Ledger) -> NoiseGuard | None:
        """Score a sample of rows again, each alone; return the number of rows and the largest differences."""
        compared = ~np.isin(ledger.head["kind"], (Kind.PROBE, Kind.ERASER, Kind.LEAVE_ONE_OUT))
        finite = np.flatnonzero(np.isfinite(ledger.scores).all(axis=1) & compared)
        if spec.subject.repeats_inputs or not finite.size:
            return None
        chosen = finite[rng_for(spec.config.seed, "noise-guard").permutation(len(finite))[:_NOISE_ROWS]]
        batched, inputs = ledger.scores[chosen], ledger.inputs.take(chosen)
        prefix = common_start([inputs.row(row) for row in range(len(inputs))])
        alone = self.model.again(inputs, self.engine(spec).scorer.labels, prefix=prefix)
        scored = np.isfinite(alone).all(axis=1)
        before, now = batched[scored], alone[scored]
        return NoiseGuard(
            rows=len(chosen),
            unscored=int(np.count_nonzero(~scored)),
            log_score=float(np.abs(now - before).max()) if scored.any() else None,
            probability=float(np.abs(np.exp(now) - np.exp(before)).max()) if scored.any() else None,
        )


def _checked_rows(engine: Engine, examples: Sequence[Example]) -> tuple[Inputs | None, int]:
    """Return the full and the empty input of a few examples, and the length of their prefix; None without any."""
    evaluated = (item for item in map(engine.encode, examples) if item.n_units > 1)
    items = list(itertools.islice(evaluated, _CHECKED_EXAMPLES))
    if not items:
        return None, 0
    rows = Inputs.join([row for item in items for row in (item.full(), item.empty())])
    return rows, shared_prefix(items)


def _unable(name: str, model: Model, why: str) -> CapabilityError:
    probing = [known for known, method in attribution_registry.items() if "values" in method.needs]
    return CapabilityError(
        f"the attribution '{name}' does not work with the model '{model.name}' ({why.rstrip('.')}). Those that need "
        f"nothing but scores work with every model: {', '.join(probing)}."
    )


@dataclass(frozen=True)
class Replicas:
    """A model of a run: a local reader of texts, and workers that compute, locally or remotely."""

    reader: Replica
    """Encodes texts and names labels; needs no weights if replicas compute elsewhere."""
    workers: Workers[Replica]
    owned: bool = True
    """True if the model was loaded for this run; False if it belongs to the caller."""

    @classmethod
    def here(cls, model: Model, *, owned: bool = False) -> "Replicas":
        """Return the replicas of a model in this process."""
        replica = Replica(model)
        return cls(replica, LocalWorkers(replica), owned)

    def release(self) -> None:
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
    """Load a model where an executor computes; `loading` are arguments of `load_model` for that machine.

    Raises:
        ConfigError: The model does not exist, cannot be read, or computes behind a server.
        ModelError: The model failed to load.
    """
    owned = not isinstance(ref, Model)
    if isinstance(executor, Local):
        return Replicas.here(_named(load_model(ref, **loading), name), owned=owned)
    if isinstance(ref, Served):
        raise ConfigError(
            f"'{ref.name}' is served, so there is nothing to distribute; use --executor local, and "
            "--concurrency for more requests at once."
        )
    LoadSettings(**loading)  # validated before weights are loaded
    reader = _named(load_reader(ref), name)
    make = partial(_replica, ref, name, os.getcwd(), loading)
    workers = executor.workers(make, threads=reader.use_threads(None), say=(reporter or Silent()).say)
    return Replicas(Replica(reader), workers, owned)


def _replica(ref: ModelRef, name: str | None, folder: str, loading: Mapping[str, Any]) -> Replica:
    """Return a replica in a worker process; paths are relative to `folder`."""
    with contextlib.chdir(folder) if os.path.isdir(folder) else contextlib.nullcontext():
        return Replica(_named(load_model(ref, **loading), name))


def _named(model: Model, name: str | None) -> Model:
    if name is not None:
        model.name = name
    return model


@dataclass(frozen=True, kw_only=True)
class Job:
    """Data shared by all stages of a run."""

    folder: RunFolder
    workers: Workers[Replica]
    spec: RunSpec
    engine: Engine
    stored: Manifest | None
    """The manifest of the run to continue; None for a new run."""
    reporter: Reporter

    @property
    def evaluated(self) -> Sequence[Example]:
        """The examples to evaluate, without those that only fill the pool of infill."""
        return self.spec.examples[: self.engine.config.n]


@dataclass(frozen=True)
class Adapted:
    """Adaptation of a model from the deployed one; the explained labels are the deployed model's predictions."""

    how: str
    """Part of the run's identity, which distinguishes it from runs of the deployed model and of other copies."""
    targets: Mapping[str, int] = field(repr=False)
    """Example id -> label; examples without one are skipped."""
    record: Adaptation = field(repr=False)
