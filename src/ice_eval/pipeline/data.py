"""What a run takes from its data beside the examples: the pool of infill, and what attributions may know of them."""

from collections.abc import Collection, Sequence

import numpy as np

from ice_eval.attributions import DataView
from ice_eval.encoding import Codec
from ice_eval.errors import CapabilityError
from ice_eval.nulls import unit_counts
from ice_eval.operators import POOL_EXAMPLES, Blacklist, FillPool, PooledUnits, label_indicative
from ice_eval.pipeline.engine import Engine
from ice_eval.records import Example
from ice_eval.tasks import Task

_MIN_PIECE = 3
"""Characters from which on a piece of a label word is kept out of infill: 'neg' is, 'N' is not."""


def examples_read(n: int) -> int:
    """How many examples a run of `n` reads: those to evaluate, and those that fill the pool of infill."""
    return max(n, POOL_EXAMPLES)


def fill_pool(engine: Engine, examples: Sequence[Example]) -> FillPool:
    """What infill may write: units of the data, without those that give the label away."""
    task, codec = engine.task, engine.model.codec
    units = _units(engine, examples)
    words = _label_words(task)
    alone = engine.config.choices.label_words_only
    lexicon = frozenset(word.casefold() for word in task.lexicon if not alone)
    tokens = frozenset[int]() if alone else label_indicative(units)
    tokens |= codec.special.every | _forms(codec, words)
    return FillPool(units, blacklist=Blacklist(words, lexicon, tokens))


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
    return Blacklist(_label_words(engine.task), lexicon, label_indicative(_units(engine, examples)))


def _units(engine: Engine, examples: Sequence[Example]) -> list[PooledUnits]:
    return [PooledUnits.of(engine.encode(example), example.gold) for example in examples]


def _label_words(task: Task) -> frozenset[str]:
    return frozenset(part.casefold() for word in (*task.label_words.values(), *task.labels) for part in word.split())


def _forms(codec: Codec, words: Collection[str]) -> frozenset[int]:
    """Tokens of the label words in every casing, with and without a space before; short pieces say too little."""
    casings = {form for word in words for form in (word, word.upper(), word.capitalize())}
    found = [codec.tokenize(space + form) for form in casings for space in ("", " ")]
    ids = {int(i) for tokens in found for i in tokens.ids[tokens.sequence >= 0]}
    pieces = dict(zip(sorted(ids), codec.decode([np.array([i]) for i in sorted(ids)]), strict=True))
    return frozenset(i for i, piece in pieces.items() if len(piece.strip().strip("#")) >= _MIN_PIECE)
