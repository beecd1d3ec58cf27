"""Input checks, tie slack, and groups of examples."""

import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.errors import DataError

Values = NDArray[np.float64]  # (n,) unless stated otherwise

ROUND_OFF = 100 * float(np.finfo(np.float64).eps)
"""Relative distance within which two numbers are equal."""

_CELLS_PER_BATCH = 2**14  # 128 KiB of float64: larger arrays leave the cache, and are made anew page by page


_LOWER_HALF = np.uint64(2**32 - 1)


class RankCounts(NamedTuple):
    """Number of values below, at and above an observed one."""

    below: int
    tied: int
    above: int


def finite_vector(values: ArrayLike, *, what: str) -> Values:
    """Return `values` as a non-empty finite float vector, or raise DataError."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise DataError(f"need a vector with at least one {what}, got an array of shape {vector.shape}")
    n_bad = vector.size - np.count_nonzero(np.isfinite(vector))
    if n_bad:
        raise DataError(f"need finite values, got {n_bad} of {vector.size} {what}s that are NaN or infinite")
    return vector


def rates_vector(values: ArrayLike, *, what: str, hint: str = "") -> Values:
    """Return `values` as a vector of numbers in [0, 1], or raise DataError with `hint`."""
    rates = finite_vector(values, what=what)
    if rates.min() < 0 or rates.max() > 1:
        raise DataError(f"{what}s lie in [0, 1], got values from {rates.min()} to {rates.max()}{hint}")
    return rates


def paired_vectors(first: ArrayLike, second: ArrayLike, *, what: str = "value") -> tuple[Values, Values]:
    """Return two finite vectors of the same length, or raise DataError."""
    left, right = finite_vector(first, what=what), finite_vector(second, what=what)
    if left.size != right.size:
        raise DataError(f"need the same examples on both sides, got {left.size} and {right.size} values")
    return left, right


def check_level(level: float) -> None:
    """Raise DataError unless `level` is between 0 and 1."""
    if not 0 < level < 1:  # NaN fails this too
        raise DataError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")


def slack_of(values: Values) -> float:
    """Return the distance within which two of `values` are tied, relative to the largest magnitude.

    Round-off of a difference near 0 is as large as that of its terms, so a slack relative to the observed value alone
    would vanish exactly where it is needed.
    """
    return ROUND_OFF * float(np.abs(values).max())


def count_against(observed: float, values: Values) -> RankCounts:
    """Count the `values` below, at and above `observed`; ties are decided with slack."""
    slack = max(slack_of(values), ROUND_OFF * abs(observed))
    below = int(np.count_nonzero(values < observed - slack))
    above = int(np.count_nonzero(values > observed + slack))
    return RankCounts(below, values.size - below - above, above)


def mid_rank(counts: RankCounts) -> float:
    """Return the share of values below, counting ties as one half."""
    # One division of exact numbers: equal shares of families of different size are equal floats.
    return (counts.below + counts.tied / 2) / sum(counts)


def is_constant(values: Values) -> bool:
    """Return True if all values are equal up to round-off."""
    return bool(np.ptp(values) <= slack_of(values))


def batches(total: int, *, width: int, batch: int | None) -> Iterator[int]:
    """Yield batch sizes that add up to `total` rows of `width` numbers.

    A generator must give the same stream for every `batch`: 64-bit `Generator.integers` does, but 8- and 16-bit outputs
    drop the rest of a word at the end of each call.
    """
    # An even number of rows is an even number of words, of which two are drawn at once.
    size = max(2, 2 * (_CELLS_PER_BATCH // width // 2)) if batch is None else batch
    for start in range(0, total, size):
        yield min(size, total - start)


class IntegersBelow:
    """Fast equivalent of `rng.integers(0, bounds, size=(n_rows, len(bounds)))` that draws the same numbers.

    numpy draws a word of 32 bits for each number and takes the upper half of `word * bound` (Lemire, 2019). It rejects
    a few words in 2**32, and a bound of 1 takes none; in these cases numpy itself is called. `rng` must use PCG64.
    """

    def __init__(self, rng: np.random.Generator, bounds: NDArray[np.int64], *, most_rows: int) -> None:
        self._rng, self._bounds, self._wide = rng, bounds, bounds.astype(np.uint64)
        self._limits = (np.uint64(2**32) - self._wide) % self._wide
        self._products = np.empty((most_rows, len(bounds)), dtype=np.uint64)
        self._lower = np.empty_like(self._products)
        self._refused = np.empty(self._products.shape, dtype=bool)

    def draw(self, n_rows: int) -> NDArray[np.int64]:
        """Return (n_rows, columns) numbers; the array is overwritten by the next call."""
        state = self._rng.bit_generator.state
        words = self._words(n_rows * len(self._bounds)).reshape(n_rows, -1)
        products = np.multiply(words, self._wide, out=self._products[:n_rows])
        lower = np.bitwise_and(products, _LOWER_HALF, out=self._lower[:n_rows])
        refused = np.less(lower, self._limits, out=self._refused[:n_rows])
        if self._bounds.min() < 2 or refused.any():
            self._rng.bit_generator.state = state
            return self._rng.integers(0, self._bounds, size=(n_rows, len(self._bounds)))
        products >>= np.uint64(32)
        return products.view(np.int64)

    def _words(self, n: int) -> NDArray[np.uint32]:
        """Draw `rng.integers(0, 2**32, size=n, dtype=np.uint32)` as halves of 64-bit words, the lower half first."""
        generator = self._rng.bit_generator
        state: Any = generator.state
        if sys.byteorder == "big" or state["bit_generator"] != "PCG64" or state["has_uint32"] or n % 2:
            return self._rng.integers(0, 2**32, size=n, dtype=np.uint32)
        words: NDArray[np.uint64] = generator.random_raw(n // 2)
        return words.view(np.uint32)


Groups = Sequence[Hashable] | NDArray[Any]
"""One label per example. Examples of one group may depend on each other; groups must be independent."""


@dataclass(frozen=True)
class Grouping:
    """Groups of examples: groups are drawn whole, and standard errors are those of group sums."""

    counts: NDArray[np.int64]
    """(G,): number of examples in each group."""
    order: NDArray[np.int64] | None
    """The examples sorted by group; None if each is its own group."""

    @property
    def n(self) -> int:
        """Number of groups, G."""
        return self.counts.size

    def sums(self, values: Values) -> Values:
        """Return the sum of each group along the last axis, (..., N) -> (..., G)."""
        if self.order is None:
            return values
        totals: Values = np.add.reduceat(values[..., self.order], np.cumsum(self.counts) - self.counts, axis=-1)
        return totals

    def means(self, values: Values) -> Values:
        """Return the mean of each group along the last axis, (..., N) -> (..., G)."""
        return values if self.order is None else self.sums(values) / self.counts

    def standard_errors(self, deviations: Values) -> Values:
        """Return the standard error of each row's mean, given deviations from it, (b, N) -> (b,); 0 for a single group.

        With groups it is cluster-robust: `sqrt(G / (G - 1) * sum_g (sum of deviations in g)^2) / N`.
        """
        n = deviations.shape[-1]
        sums = self.sums(deviations)
        squares = np.einsum("bn,bn->b", sums, sums)
        if self.order is None:
            errors: Values = np.sqrt(squares / max(n - 1, 1) / n)
        else:
            errors = np.sqrt(squares * self.n / max(self.n - 1, 1)) / n
        return errors


def grouping_of(groups: Groups | None, *, n: int) -> Grouping:
    """Return the groups of `n` examples in the order of first appearance, or raise DataError if a label is missing."""
    if groups is None:
        return _alone(n)
    labels: list[Any] = list(groups)
    if len(labels) != n:
        raise DataError(f"need one group label per example, got {len(labels)} for {n} examples")
    n_missing = sum(label is None or label != label for label in labels)
    if n_missing:
        raise DataError(
            f"need a group label for every example, got {n_missing} of {n} that are None or NaN; "
            "give an example that belongs to no group a label of its own"
        )
    seen: dict[Hashable, int] = {}
    numbers = np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)
    if len(seen) == n:
        return _alone(n)
    return Grouping(np.bincount(numbers), np.argsort(numbers, kind="stable"))


def _alone(n: int) -> Grouping:
    return Grouping(np.ones(n, dtype=np.int64), None)
