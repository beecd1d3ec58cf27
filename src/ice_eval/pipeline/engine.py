"""The objects and data that every part of a run needs."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ice_eval.attributions import OF_EVERY_MODEL, Attribution, DataView
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import PART_SIZE, Model
from ice_eval.nulls import SIZE, nulls, unit_counts
from ice_eval.operators import POOL_EXAMPLES, Operator, operators
from ice_eval.pipeline.subject import Pool, Subject
from ice_eval.rationales import DYNAMIC, ERASER_FILLS, ERASER_SHARES
from ice_eval.records import Encoded, Example
from ice_eval.results.records import RunSettings
from ice_eval.scoring import Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task


@dataclass(frozen=True)
class Engine:
    """A configuration and the objects that it names."""

    config: RunConfig
    subject: Subject
    model: Model
    scorer: Scorer
    operators: Mapping[str, Operator]
    attributions: Mapping[str, Attribution]
    pool: Pool | None
    """None if no operator writes fills."""
    unit_counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Frequency of units in the data; empty if no null needs it."""
    data: DataView = field(default_factory=DataView, repr=False)
    """Data statistics for attributions; empty if none needs them."""
    probing: Mapping[str, Operator] = field(default_factory=dict)
    """Attribution -> operator that its probes use."""
    targets: Mapping[str, int] | None = field(default=None, repr=False)
    """Example id -> label to explain, if the run of another model defined them."""
    longest: int = 0
    """Number of random sets that the order of each example is drawn for; a pilot scores fewer."""
    spelled: dict[bytes, str] = field(default_factory=dict, repr=False)
    """Cache: token ids that operators write -> their text."""
    _encoded: dict[str, Encoded] = field(default_factory=dict, repr=False)

    @property
    def in_turns(self) -> bool:
        """True if the model is prompted with chat turns."""
        task = self.subject.task
        return (isinstance(task, Task) and task.chat) or self.model.writes_in_turns

    @property
    def operator_names(self) -> tuple[str, ...]:
        """Operators of all rows, in the order of their codes."""
        probed = (self.attributions[name].operator for name in self.probing)
        return tuple(dict.fromkeys([*self.config.operators, *probed, *self.subject.arrangements]))

    @property
    def own_size(self) -> list[str]:
        """Attributions that set the sizes of their rationales, whatever k."""
        return [name for name, method in self.attributions.items() if method.sized]

    @property
    def by_magnitude(self) -> list[str]:
        """Attributions that rank units by absolute value."""
        return [
            name
            for name, method in self.attributions.items()
            if self.config.sign == "abs" and not method.sized and method.has_signs
        ]

    @property
    def versus(self) -> int | None:
        """Index of the label that scores set the explained one against; None: all others."""
        return None if self.config.versus is None else self.scorer.labels.names.index(self.config.versus)

    def settings(self, *, model: str) -> RunSettings:
        """Return the settings for the manifest."""
        return RunSettings(
            model=model,
            task=self.subject.task.name,
            subject=self.subject.task.subject,
            **vars(self.config),
            own_size=tuple(self.own_size),
            by_magnitude=tuple(self.by_magnitude),
            versus_label=self.versus,
            **self.subject.settings(),
        )

    def encode(self, example: Example) -> Encoded:
        """Return an example as this run's model reads it; those of the pool are cached, since they are needed twice."""
        if example.id in self._encoded:
            return self._encoded[example.id]
        found = self.subject.encode(self.model, self.config, example, reserve=self.scorer.labels.reserve)
        if len(self._encoded) < POOL_EXAMPLES and found.n_units:
            self._encoded[example.id] = found
        return found


_USUAL_SEQUENTIAL = 85
"""Mean number of sets of a sequential test if the rationale is no better than random."""


def estimated_rows(engine: Engine, examples: Sequence[Example]) -> int:
    """Return the approximate number of rows of some examples."""
    return len(examples) * (_rows_per_example(engine) + _probes_per_example(engine, examples[:PART_SIZE]))


def _rows_per_example(engine: Engine) -> int:
    """Return the number of rows of an example with enough sets; short texts have fewer."""
    config, n_own = engine.config, len(engine.own_size)
    by_share = len(config.attributions) - n_own
    rationales = by_share * len(config.k) + n_own
    dynamic = DYNAMIC in config.k
    sizes = (len(config.k) - dynamic) * (by_share > 0) + by_share * dynamic + n_own
    m = min(config.m, _USUAL_SEQUENTIAL) if config.adaptive == "examples" else config.m
    matched = m * rationales * len([null for null in config.nulls if null != SIZE])
    null = (m * rationales if config.choices.own_null else (m + 1) * sizes * (SIZE in config.nulls)) + matched
    of_eraser = 2 * (by_share * len({*ERASER_SHARES, *config.k}) + n_own) if config.eraser else 0
    n_rows = 2
    for name in config.operators:
        n_fills = min(config.n_fills, config.m) if operators.get(name).needs_fills else 1
        n_rows += (null + n_fills * rationales) * len(config.directions) + of_eraser * min(n_fills, ERASER_FILLS)
    return n_rows


def _probes_per_example(engine: Engine, examples: Sequence[Example]) -> int:
    """Return the approximate number of probes per example, from the lengths of some examples."""
    asking = [engine.attributions[name] for name in engine.probing]
    lengths = [engine.encode(example).n_units for example in examples] if asking else []
    return sum(method.n_probes(n) for method in asking for n in lengths) // max(len(lengths), 1)


def prepare(
    config: RunConfig,
    model: Model,
    subject: Subject,
    attributions: Mapping[str, Attribution],
    examples: Sequence[Example],
) -> Engine:
    """Return the objects that a configuration names, or raise ConfigError if it does not fit the model or the data."""
    chosen = _attributions(config, attributions, model)
    if config.unit not in model.units:
        raise CapabilityError(
            f"the model '{model.name}' can be explained by {' or '.join(model.units)} only: its tokens are not seen "
            f"here; use --unit {model.units[0]}."
        )
    labels = subject.labels(model, config)
    acts = {name: operators.get(name)() for name in config.operators}
    probing = {name: operators.get(method.operator)() for name, method in chosen.items() if "values" in method.needs}
    for act in (*acts.values(), *probing.values()):
        try:
            act.prepare(model.codec.special)
        except CapabilityError as exc:
            working = ", ".join(_working_operators(model, config))
            raise CapabilityError(f"{exc} Operators that work with '{model.name}': {working}.") from exc
    engine = Engine(
        config,
        subject,
        model,
        Scorer(model, labels, budget=1),
        acts,
        chosen,
        pool=None,
        probing=probing,
        longest=config.m,
    )
    if any(act.needs_fills for act in (*acts.values(), *probing.values())):
        engine = replace(engine, pool=subject.pool(engine, examples[:POOL_EXAMPLES]))
    if any(nulls.get(name).needs_counts for name in config.nulls):
        engine = replace(engine, unit_counts=counts_in(engine, examples))
    return replace(engine, data=subject.data(engine, examples))


def _attributions(config: RunConfig, given: Mapping[str, Attribution], model: Model) -> dict[str, Attribution]:
    """Return the attributions of a run, or raise if the model cannot support one."""
    for name in config.attributions:
        if name not in given:
            raise ConfigError(
                f"the folder holds the attribution '{name}', which is not given now; give it again to continue."
            )
        if config.unit not in given[name].units:
            known = ", ".join(_supported(model, config))
            raise CapabilityError(
                f"the attribution '{name}' gives no numbers to {config.unit}s; those that do: {known}."
            )
        lacking = given[name].needs - model.offers - OF_EVERY_MODEL
        if lacking:
            raise CapabilityError(
                f"the attribution '{name}' needs {' and '.join(sorted(lacking))}, which the model '{model.name}' "
                f"does not offer. Attributions that work with it: {', '.join(_supported(model, config))}, or your own."
            )
    return {name: given[name] for name in config.attributions}


def _working_operators(model: Model, config: RunConfig) -> Iterator[str]:
    for name, each in operators.items():
        if config.unit in each.units:
            with contextlib.suppress(CapabilityError):
                each().prepare(model.codec.special)
                yield name


def _supported(model: Model, config: RunConfig) -> list[str]:
    known = attribution_registry.items()
    offered = model.offers | OF_EVERY_MODEL
    return [name for name, method in known if method.needs <= offered and config.unit in method.units]


def examples_read(n: int) -> int:
    """Return the number of examples that a run of `n` reads, including those that fill the pool of infill."""
    return max(n, POOL_EXAMPLES)


def counts_in(engine: Engine, examples: Sequence[Example]) -> dict[str, int]:
    """Return the frequency of units in the first examples."""
    return unit_counts(engine.encode(example).texts for example in examples[:POOL_EXAMPLES])
