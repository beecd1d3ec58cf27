"""Which tokens give a gold label away, by how often each label uses them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ice_eval.operators._pool import PooledUnits
from ice_eval.records import Ids

MIN_COUNT = 5
"""A token seen less often is too rare to be called label-indicative."""
Z_LIMIT = 1.96
"""Tokens whose log-odds between labels lie further from 0, in standard errors, are label-indicative."""


@dataclass(frozen=True)
class TokenCounts:
    """The tokens of examples whose gold label is known, ready to be counted under these labels or any others."""

    golds: Ids
    """(examples,)"""
    example_of: Ids
    """(tokens,): the example that each token stands in."""
    type_of: Ids
    """(tokens,): where each stands in the vocabulary."""
    vocabulary: Ids

    @classmethod
    def of(cls, pool: Sequence[PooledUnits]) -> "TokenCounts":
        """Of the examples that have a gold label."""
        known = [(entry.gold, [i for ids, _ in entry.units for i in ids]) for entry in pool if entry.gold is not None]
        tokens = np.array([i for _, ids in known for i in ids], dtype=np.int64)
        vocabulary, type_of = np.unique(tokens, return_inverse=True)
        return cls(
            golds=np.array([gold for gold, _ in known], dtype=np.int64),
            example_of=np.repeat(np.arange(len(known)), [len(ids) for _, ids in known]),
            type_of=type_of,
            vocabulary=vocabulary,
        )

    def indicative(
        self, golds: Ids | None = None, *, min_count: int = MIN_COUNT, z_limit: float = Z_LIMIT
    ) -> frozenset[int]:
        """Tokens that are used more, or less, under one label than under the others.

        Smoothed log-odds of each token between a label and the rest (Monroe et al., 2008, with a flat prior of one
        half), over its standard error: indicative beyond `z_limit` if the token occurs at least `min_count` times.

        Args:
            golds: A label per example, in place of its own.
            min_count: Rarer tokens are never indicative.
            z_limit: In standard errors.
        """
        labels, label_of = np.unique(self.golds if golds is None else golds, return_inverse=True)
        if len(labels) < 2:
            return frozenset()
        cells = label_of[self.example_of] * len(self.vocabulary) + self.type_of
        counts = np.bincount(cells, minlength=len(labels) * len(self.vocabulary)).reshape(len(labels), -1)
        called = (counts.sum(axis=0) >= min_count) & (np.abs(_z(counts)) > z_limit).any(axis=0)
        return frozenset(int(i) for i in self.vocabulary[called])


def label_indicative(pool: Sequence[PooledUnits]) -> frozenset[int]:
    """Tokens that are used more, or less, under one gold label than under the others; see `TokenCounts.indicative`."""
    return TokenCounts.of(pool).indicative()


def _z(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log-odds over their standard errors, for a (labels, tokens) table of counts."""
    inside, rest = counts + 0.5, counts.sum(axis=0) - counts + 0.5
    inside_other, rest_other = inside.sum(axis=1, keepdims=True) - inside, rest.sum(axis=1, keepdims=True) - rest
    log_odds = np.log(inside / inside_other) - np.log(rest / rest_other)
    z: NDArray[np.float64] = log_odds / np.sqrt(1 / inside + 1 / rest)
    return z
