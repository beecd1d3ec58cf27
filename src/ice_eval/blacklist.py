"""The blacklist of infill, for a task and a tokenizer."""

from collections.abc import Collection, Sequence

import numpy as np

from ice_eval.encoding import Codec
from ice_eval.operators import Blacklist, PooledUnits, label_indicative
from ice_eval.tasks import Task

_MIN_PIECE = 3
"""Length from which a piece of a label word is excluded from infill: 'neg' is, 'N' is not."""


def blacklist_of(
    codec: Codec, task: Task, units: Sequence[PooledUnits], *, label_words_only: bool = False
) -> Blacklist:
    """Return label words in all forms, the task's lexicon, special tokens, and tokens that gold labels use differently.

    With `label_words_only`, only label words and special tokens.
    """
    words = label_words(task)
    lexicon = frozenset(word.casefold() for word in task.lexicon if not label_words_only)
    tokens = frozenset[int]() if label_words_only else label_indicative(units)
    return Blacklist(words, lexicon, tokens | codec.special.every | _forms(codec, words))


def label_words(task: Task) -> frozenset[str]:
    """Return the words of all labels, casefolded."""
    return frozenset(part.casefold() for word in (*task.label_words.values(), *task.labels) for part in word.split())


def _forms(codec: Codec, words: Collection[str]) -> frozenset[int]:
    """Return tokens of the label words in every casing, with and without a leading space, except short pieces."""
    casings = {form for word in words for form in (word, word.upper(), word.capitalize())}
    found = [codec.tokenize(space + form) for form in casings for space in ("", " ")]
    ids = {int(i) for tokens in found for i in tokens.ids[tokens.sequence >= 0]}
    pieces = dict(zip(sorted(ids), codec.decode([np.array([i]) for i in sorted(ids)]), strict=True))
    return frozenset(i for i, piece in pieces.items() if len(piece.strip().strip("#")) >= _MIN_PIECE)
