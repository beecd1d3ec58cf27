"""What a run takes from its data beside the examples: the pool of infill, and what attributions may know of them."""

from collections.abc import Sequence

from ice_eval.attributions import DataView
from ice_eval.blacklist import blacklist_of, label_words
from ice_eval.errors import CapabilityError
from ice_eval.nulls import unit_counts
from ice_eval.operators import POOL_EXAMPLES, Blacklist, FillPool, PooledUnits, label_indicative
from ice_eval.pipeline.engine import Engine
from ice_eval.records import Example


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
