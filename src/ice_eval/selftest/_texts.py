"""Texts for models whose truth is known: decisive words among words that weigh nothing."""

from collections.abc import Mapping, Sequence

import numpy as np

from ice_eval.rationales import set_size
from ice_eval.seeding import rng_for

SHARE = 0.2
"""Share of units in a rationale, as in a default run."""
NEUTRAL: tuple[str, ...] = (
    "actor", "ballad", "camera", "chair", "city", "corner", "desk", "door", "evening", "film", "floor", "garden",
    "hall", "hour", "island", "kitchen", "ladder", "letter", "light", "lunch", "map", "market", "minute", "month",
    "mountain", "office", "paper", "pencil", "piano", "plot", "queue", "river", "road", "room", "scene", "script",
    "shop", "station", "street", "table", "ticket", "town", "train", "tree", "village", "wall", "window", "year",
)  # fmt: skip
"""Words that contribute nothing to any model."""
_LONG, _SHORT = (10, 20), (4, 9)
"""Words in a text. A rationale of a short one holds a single word, so that all sets are enumerated."""
_SHORT_RATE = 0.15
_MARGIN = 0.3


def texts(
    n: int,
    decisive: Mapping[str, float],
    fillers: Mapping[str, float],
    *,
    bias: float,
    sparse: float,
    seed: int,
    purpose: str,
) -> list[str]:
    """Texts in which words for one side outweigh those for the other.

    Decisive words stand in the first half of a text, so that a sampler that prefers some places is caught. There are
    enough of them to fill a rationale, except in a share `sparse` of texts, which have a single one. All other words
    are fillers, which contribute little or nothing.
    """
    rng = rng_for(seed, "selftest-texts", purpose)
    sides = [[word for word, value in decisive.items() if sign * value > 0] for sign in (1, -1)]
    every = {**decisive, **fillers}
    found: list[str] = []
    while len(found) < n:
        low, high = _SHORT if rng.random() < _SHORT_RATE else _LONG
        length, side = int(rng.integers(low, high + 1)), int(rng.integers(2))
        words = _decisive(sides[side], sides[1 - side], set_size(length, SHARE), alone=rng.random() < sparse, rng=rng)
        text = _placed(words, list(fillers), length, rng)
        total = bias + sum(every[word] for word in text)
        if (total if side == 0 else -total) > _MARGIN:  # the side that was meant to win does so
            found.append(" ".join(text))
    return found


def _decisive(
    main: Sequence[str], other: Sequence[str], size: int, *, alone: bool, rng: np.random.Generator
) -> list[str]:
    if alone:
        return [str(rng.choice(main))]
    for_it = rng.choice(main, size + int(rng.integers(0, 2)), replace=False)
    against = rng.choice(other, int(rng.integers(0, 2)), replace=False)
    return [str(word) for word in (*for_it, *against)]


def _placed(words: Sequence[str], fillers: Sequence[str], length: int, rng: np.random.Generator) -> list[str]:
    """The words at random places of the first half (or as far as they need), fillers everywhere else."""
    places = rng.permutation(max(length // 2, len(words)))[: len(words)]
    text = [str(word) for word in rng.choice(fillers, length, replace=False)]
    for place, word in zip(places, words, strict=True):
        text[place] = word
    return text
