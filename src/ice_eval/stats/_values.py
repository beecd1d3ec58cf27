"""Input checks, tie slack, groups of examples, and resampled means."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.errors import DataError

Values = NDArray[np.float64]  # (n,) unless stated otherwise
Mask = NDArray[np.bool_]
Rng = np.random.Generator
Groups = Sequence[Hashable] | NDArray[Any] | None
"""One label per example, or None. Examples of one group may depend on each other; groups must be independent."""

ROUND_OFF = 100 * float(np.finfo(np.float64).eps)
"""Relative distance within which two numbers are equal."""
_CELLS_PER_BATCH = 2**16  # 512 KiB of float64: larger arrays leave the cache


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
    if not 0 < level < 1:  # NaN fails this too
        raise DataError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")


def slack_of(values: Values) -> float:
    """Return the distance within which two of `values` are tied, relative to the largest magnitude.

    Round-off of a difference near 0 is as large as that of its terms, so a slack relative to the observed value alone
    would vanish exactly where it is needed.
    """
    return ROUND_OFF * float(np.abs(values).max())


def is_constant(values: Values) -> bool:
    """Return True if all values are equal up to round-off."""
    return bool(np.ptp(values) <= slack_of(values))


def batches(total: int, *, width: int) -> Iterator[int]:
    """Yield batch sizes that add up to `total` rows of `width` numbers; they bound the memory and change no number.

    A generator must give the same stream for every size: 64-bit `Generator.integers` does, but 8- and 16-bit outputs
    drop the rest of a word at the end of each call.
    """
    # An even number of rows is an even number of words, of which two are drawn at once.
    size = max(2, 2 * (_CELLS_PER_BATCH // width // 2))
    for start in range(0, total, size):
        yield min(size, total - start)


@dataclass(frozen=True)
class Grouping:
    """Groups of examples: groups are drawn whole, and standard errors are those of group sums."""

    counts: NDArray[np.int64]
    """(G,): number of examples in each group."""
    order: NDArray[np.int64] | None
    """The examples sorted by group; None if each is its own group."""

    @property
    def n(self) -> int:
        return self.counts.size

    def sums(self, values: Values) -> Values:
        """Return the sum of each group along the last axis, (..., N) -> (..., G)."""
        if self.order is None:
            return values
        totals: Values = np.add.reduceat(values[..., self.order], np.cumsum(self.counts) - self.counts, axis=-1)
        return totals

    def standard_errors(self, deviations: Values) -> Values:
        """Return the standard error of each row's mean, given deviations from it, (b, N) -> (b,); 0 for a single group.

        With groups it is cluster-robust: `sqrt(G / (G - 1) * sum_g (sum of deviations in g)^2) / N`.
        """
        n, sums = deviations.shape[-1], self.sums(deviations)
        squares = np.einsum("bn,bn->b", sums, sums)
        if self.order is None:
            errors: Values = np.sqrt(squares / max(n - 1, 1) / n)
        else:
            errors = np.sqrt(squares * self.n / max(self.n - 1, 1)) / n
        return errors


def grouping_of(groups: Groups, *, n: int) -> Grouping:
    """Return the groups of `n` examples in the order of first appearance, or raise DataError if a label is missing."""
    alone = Grouping(np.ones(n, dtype=np.int64), None)
    if groups is None:
        return alone
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
    return alone if len(seen) == n else Grouping(np.bincount(numbers), np.argsort(numbers, kind="stable"))


def resampled_means(values: Values, *, rng: Rng, n_resamples: int = 9999, groups: Groups = None) -> Values:
    """Return the means of resamples of `values`, (N,) or (N, c), drawn with replacement: (B,) or (B, c).

    Rows are drawn whole, so columns stay paired. The draws equal those of `scipy.stats.bootstrap` with the same
    generator.

    With `groups`, G whole groups are drawn with replacement, and the mean of a resample is its sum over its number of
    examples (the cluster bootstrap). Groups must be independent and alike, sizes included; with a dozen groups or
    fewer, intervals are too short.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim not in (1, 2):
        raise DataError(f"need one value or one row per example, got an array of shape {sample.shape}")
    finite_vector(sample.ravel(), what="value")
    if n_resamples < 1:
        raise DataError(f"need at least one resample, got n_resamples={n_resamples}")
    grouping = grouping_of(groups, n=len(sample))
    sums = grouping.sums(np.ascontiguousarray(sample.reshape(len(sample), -1).T))
    means = []
    for n in batches(n_resamples, width=grouping.n):
        # The number of draws of each group, (n, G), serves all columns.
        rows = rng.integers(0, grouping.n, size=(n, grouping.n))
        rows += np.arange(n)[:, None] * grouping.n
        drawn = np.bincount(rows.ravel(), minlength=rows.size).reshape(rows.shape).astype(np.float64)
        n_examples = np.full(n, grouping.n) if grouping.order is None else drawn @ grouping.counts
        # Sum by sum: a product of matrices would round by how many rows and columns there are.
        means.append(np.stack([np.einsum("bg,g->b", drawn, column) / n_examples for column in sums], axis=1))
    return np.concatenate(means).reshape(n_resamples, *sample.shape[1:])
