"""What every part of a run needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ice_eval.attributions import OF_EVERY_MODEL, Attribution, DataView
from ice_eval.attributions import attributions as attribution_registry
from ice_eval.blacklist import blacklist_of, label_words
from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import PART_SIZE, Model
from ice_eval.nulls import SIZE, nulls, unit_counts
from ice_eval.operators import POOL_EXAMPLES, Blacklist, FillPool, Operator, PooledUnits, label_indicative, operators
from ice_eval.rationales import DYNAMIC, ERASER_SHARES
from ice_eval.records import Encoded, Example
from ice_eval.results.records import RunSettings
from ice_eval.scoring import Scorer
from ice_eval.settings import RunConfig
from ice_eval.tasks import Task


@dataclass(frozen=True)
class Engine:
    """A configuration, and all that it names."""

    config: RunConfig
    task: Task
    model: Model
    scorer: Scorer
    operators: Mapping[str, Operator]
    attributions: Mapping[str, Attribution]
    pool: FillPool | None
    """None where no operator writes fills."""
    unit_counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    """How often units occur in the data; empty where no null asks."""
    data: DataView = field(default_factory=DataView, repr=False)
    """What attributions may know of the data; empty where none asks."""
    probing: Mapping[str, Operator] = field(default_factory=dict)
    """Attribution -> what happens to the units that its probes do not keep."""
    targets: Mapping[str, int] | None = field(default=None, repr=False)
    """Labels to explain, by example id, where the run of another model decided them."""
    longest: int = 0
    """Random sets that the orders of examples are drawn for; a pilot scores fewer of them."""
    spelled: dict[bytes, str] = field(default_factory=dict, repr=False)
    """Token ids -> the text they spell, of those that operators write."""
    _encoded: dict[str, Encoded] = field(default_factory=dict, repr=False)

    @property
    def in_turns(self) -> bool:
        """Whether the model is asked for words in turns of a chat."""
        return self.task.chat or self.model.writes_in_turns

    @property
    def own_size(self) -> list[str]:
        """Attributions whose rationales have sizes of their own, whatever k."""
        return [name for name, method in self.attributions.items() if method.sized]

    @property
    def by_magnitude(self) -> list[str]:
        """Attributions that rank units by the size of their numbers, whatever the sign."""
        return [
            name
            for name, method in self.attributions.items()
            if self.config.sign == "abs" and not method.sized and method.has_signs
        ]

    def settings(self, *, model: str) -> RunSettings:
        """Return the settings as the manifest holds them."""
        return RunSettings(
            model=model,
            task=self.task.name,
            **vars(self.config),
            own_size=tuple(self.own_size),
            by_magnitude=tuple(self.by_magnitude),
        )

    def encode(self, example: Example) -> Encoded:
        """An example as this run's model sees it; those of the pool are kept, for they are needed twice."""
        if example.id in self._encoded:
            return self._encoded[example.id]
        found = encode(
            self.model.codec,
            self.task,
            example,
            unit=self.config.unit,
            scope=self.config.scope or "content",
            reserve=self.scorer.labels.reserve,
        )
        if len(self._encoded) < POOL_EXAMPLES:
            self._encoded[example.id] = found
        return found


_USUAL_SEQUENTIAL = 85
"""Sets that a sequential test takes on average where the rationale is no better than random."""


def estimated_rows(engine: Engine, examples: Sequence[Example]) -> int:
    """Rows that some examples will take, about."""
    return len(examples) * (_rows_per_example(engine) + _probes_per_example(engine, examples[:PART_SIZE]))


def _rows_per_example(engine: Engine) -> int:
    """Rows of an example that has more sets than it needs; short texts have fewer."""
    config, n_own = engine.config, len(engine.own_size)
    by_share = len(config.attributions) - n_own
    rationales = by_share * len(config.k) + n_own
    dynamic = DYNAMIC in config.k
    sizes = (len(config.k) - dynamic) * (by_share > 0) + by_share * dynamic + n_own
    m = min(config.m, _USUAL_SEQUENTIAL) if config.adaptive == "examples" else config.m
    matched = m * rationales * len([null for null in config.nulls if null != SIZE])
    null = (m * rationales if config.choices.own_null else (m + 1) * sizes * (SIZE in config.nulls)) + matched
    per_operator = (null + rationales) * len(config.directions)
    draws = sum(config.n_fills if operators.get(name).needs_fills else 1 for name in config.operators)
    of_eraser = 2 * (by_share * len({*ERASER_SHARES, *config.k}) + n_own) if config.eraser else 0
    return 2 + (per_operator + of_eraser) * draws


def _probes_per_example(engine: Engine, examples: Sequence[Example]) -> int:
    """Rows that attributions ask for, about, from the lengths of some examples."""
    asking = [engine.attributions[name] for name in engine.probing]
    lengths = [engine.encode(example).n_units for example in examples] if asking else []
    return sum(method.n_probes(n) for method in asking for n in lengths) // max(len(lengths), 1)


def prepare(
    config: RunConfig,
    model: Model,
    task: Task,
    attributions: Mapping[str, Attribution],
    examples: Sequence[Example],
) -> Engine:
    """All that a configuration names, as `execute` takes it.

    Raises:
        ConfigError: It does not fit the model or the data.
    """
    chosen = _attributions(config, attributions, model)
    if config.unit not in model.units:
        raise CapabilityError(
            f"the model '{model.name}' can be explained by {' or '.join(model.units)} only: its tokens are not seen "
            f"here; use --unit {model.units[0]}."
        )
    labels = model.labels(task, scoring=config.label_scoring)
    acts = {name: operators.get(name)() for name in config.operators}
    probing = {name: operators.get(method.operator)() for name, method in chosen.items() if "values" in method.needs}
    for act in (*acts.values(), *probing.values()):
        act.prepare(model.codec.special)
    engine = Engine(
        config, task, model, Scorer(model, labels, budget=1), acts, chosen, pool=None, probing=probing, longest=config.m
    )
    if any(act.needs_fills for act in (*acts.values(), *probing.values())):
        engine = replace(engine, pool=fill_pool(engine, examples[:POOL_EXAMPLES]))
    if any(nulls.get(name).needs_counts for name in config.nulls):
        engine = replace(engine, unit_counts=counts_in(engine, examples))
    return replace(engine, data=data_view(engine, examples))


def _attributions(config: RunConfig, given: Mapping[str, Attribution], model: Model) -> dict[str, Attribution]:
    """The attributions of a run; one that the model cannot support stops it here, not after an hour."""
    for name in config.attributions:
        if name not in given:
            raise ConfigError(
                f"the folder holds the attribution '{name}', which is not given now; give it again to continue."
            )
        lacking = given[name].needs - model.offers - OF_EVERY_MODEL
        if lacking:
            raise CapabilityError(
                f"the attribution '{name}' needs {' and '.join(sorted(lacking))}, which the model '{model.name}' "
                f"does not offer. Attributions that work with it: {', '.join(_supported(model))}, or your own."
            )
    return {name: given[name] for name in config.attributions}


def _supported(model: Model) -> list[str]:
    return [name for name, method in attribution_registry.items() if method.needs <= model.offers | OF_EVERY_MODEL]


def examples_read(n: int) -> int:
    """How many examples a run of `n` reads: those to evaluate, and those that fill the pool of infill."""
    return max(n, POOL_EXAMPLES)


def fill_pool(engine: Engine, examples: Sequence[Example]) -> FillPool:
    """What infill may write: units of the data, without those that give the label away."""
    units = _units(engine, examples)
    alone = engine.config.choices.label_words_only
    blacklist = blacklist_of(engine.model.codec, engine.task, units, label_words_only=alone)
    return FillPool(units, blacklist=blacklist)


def counts_in(engine: Engine, examples: Sequence[Example]) -> dict[str, int]:
    """How often units occur in the first examples."""
    return unit_counts(engine.encode(example).texts for example in examples[:POOL_EXAMPLES])


def data_view(engine: Engine, examples: Sequence[Example]) -> DataView:
    """What the attributions of a run need to know of the data.

    Raises:
        CapabilityError: The data do not say it.
    """
    names = {need: name for name, method in engine.attributions.items() for need in method.needs}
    view = DataView(
        counts=(engine.unit_counts or counts_in(engine, examples)) if "counts" in names else {},
        lexicon=_giveaways(engine, examples[:POOL_EXAMPLES]) if "lexicon" in names else None,
        human={e.id: e.human for e in examples if e.human} if "human" in names else {},
    )
    if view.lexicon is not None and not (view.lexicon.lexicon or view.lexicon.tokens):
        raise CapabilityError(
            f"the attribution '{names['lexicon']}' needs words that give a label away: the task '{engine.task.name}' "
            "has no lexicon, and gold labels of the data show none."
        )
    if "human" in names:
        _check_human(names["human"], engine, examples)
    return view


def _check_human(name: str, engine: Engine, examples: Sequence[Example]) -> None:
    if not any(example.human for example in examples[: engine.config.n]):
        raise CapabilityError(
            f"the attribution '{name}' needs human rationales, and no example of the data has one; give them as "
            "`rationale`: [[start, end], …], in characters of the text."
        )
    if engine.config.scope == "prompt":
        raise CapabilityError(
            f"the attribution '{name}' marks the text, and with scope 'prompt' the template is explained too; use "
            "scope 'content'."
        )


def _giveaways(engine: Engine, examples: Sequence[Example]) -> Blacklist:
    """The units that give a label away."""
    lexicon = frozenset(word.casefold() for word in engine.task.lexicon)
    return Blacklist(label_words(engine.task), lexicon, label_indicative(_units(engine, examples)))


def _units(engine: Engine, examples: Sequence[Example]) -> list[PooledUnits]:
    return [PooledUnits.of(engine.encode(example), example.gold) for example in examples]
