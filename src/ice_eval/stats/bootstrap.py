"""Means over examples and differences of two means: bootstrap intervals, and tests of no difference."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from ice_eval.errors import DataError
from ice_eval.stats import _values
from ice_eval.stats._values import ROUND_OFF, Grouping, Groups, Rng, Values, finite_vector, grouping_of, is_constant

Method = Literal["bca", "percentile"]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def resampled_means(
    values: Values, *, rng: Rng, n_resamples: int = 9999, batch: int | None = None, groups: Groups = None
) -> Values:
    """Return the means of resamples of `values`, (N,) or (N, c), drawn with replacement: (B,) or (B, c).

    Rows are drawn whole, so columns stay paired. The draws equal those of `scipy.stats.bootstrap` with the same
    generator; `batch` bounds the memory and changes no number.

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
    sizes = list(_values.batches(n_resamples, width=grouping.n, batch=batch))
    numbers = _values.IntegersBelow(rng, np.full(grouping.n, grouping.n), most_rows=sizes[0])
    means = np.concatenate([_means_of_rows(sums, grouping, rows=numbers.draw(n)) for n in sizes])
    return means.reshape(n_resamples, *sample.shape[1:])


def _means_of_rows(sums: Values, grouping: Grouping, *, rows: NDArray[np.int64]) -> Values:
    """Return the mean over the groups drawn by each row of indices, (b, G), from sums (c, G); overwrites `rows`."""
    # The number of draws of each group, (b, G), serves all columns.
    n_rows, n_groups = rows.shape
    rows += np.arange(n_rows)[:, None] * n_groups
    drawn = np.bincount(rows.ravel(), minlength=rows.size).reshape(rows.shape).astype(np.float64)
    n_examples = np.full(n_rows, n_groups) if grouping.order is None else drawn @ grouping.counts
    # Sum by sum: a product of matrices would round by how many rows and columns there are.
    return np.stack([np.einsum("bg,g->b", drawn, column) / n_examples for column in sums], axis=1)


class JointMeans:
    """Resampled means of many columns, each equal to `resampled_means` with its own generator.

    Columns with the same number of examples and the same groups are resampled together, on first use. `rng` must return
    a new generator in the same state at every call.
    """

    def __init__(self, rng: Callable[[], Rng], *, n_resamples: int = 9999) -> None:
        self._rng, self._n_resamples = rng, n_resamples
        self._columns: dict[int, Values] = {}
        self._alike: dict[tuple[int, tuple[Hashable, ...] | None], list[int]] = {}
        self._means: dict[int, Values] = {}

    def add(self, values: Values, groups: Groups) -> int:
        """Register a column and return its number; the same array gets the same number."""
        number = id(values)
        if number not in self._columns:
            self._columns[number] = values  # held, so that no other array gets its identity
            labels = None if groups is None else tuple(groups)
            self._alike.setdefault((len(values), labels), []).append(number)
        return number

    def means(self, number: int) -> Values:
        """Return the resampled means of a column, (B,)."""
        if number not in self._means:
            (_, labels), together = next(item for item in self._alike.items() if number in item[1])
            new = [each for each in together if each not in self._means]
            columns = np.stack([self._columns[each] for each in new], axis=1)
            found = resampled_means(columns, rng=self._rng(), n_resamples=self._n_resamples, groups=labels)
            self._means.update(zip(new, found.T, strict=True))
        return self._means[number]


def mean_interval(
    values: Values,
    *,
    rng: Rng,
    n_resamples: int = 9999,
    level: float = 0.95,
    method: Method = "bca",
    groups: Groups = None,
) -> Interval | None:
    """Return a confidence interval of the mean of rates in [0, 1], one per example.

    If all rates equal 1, no resample differs from the data; the lower limit is then the exact one of N successes out of
    N, `((1 - level) / 2) ** (1 / N)`, and its mirror image if all equal 0. With `groups` (see `resampled_means`), N is
    the number of groups, and the acceleration leaves out whole groups.

    `level` is two-sided: each limit alone holds with confidence `(1 + level) / 2`. None for one example or group, or if
    all rates (or group means) are equal and neither 0 nor 1.
    """
    means = resampled_means(finite_vector(values, what="value"), rng=rng, n_resamples=n_resamples, groups=groups)
    return interval_from_means(values, means, level=level, method=method, groups=groups)


def interval_from_means(
    values: Values, means: Values, *, level: float = 0.95, method: Method = "bca", groups: Groups = None
) -> Interval | None:
    """Return `mean_interval` from existing resampled means, drawn with the same groups."""
    sample = finite_vector(values, what="value")
    _values.check_level(level)
    grouping = grouping_of(groups, n=sample.size)
    if grouping.n > 1 and is_constant(sample):
        limit = ((1 - level) / 2) ** (1 / grouping.n)  # Clopper-Pearson
        if abs(sample[0] - 1) <= ROUND_OFF:
            return Interval(limit, 1.0)
        return Interval(0.0, 1 - limit) if abs(sample[0]) <= ROUND_OFF else None
    return _limits(sample, means, grouping, level=level, method=method)


def difference_interval(
    first: Values,
    second: Values,
    *,
    rng: Rng,
    n_resamples: int = 9999,
    level: float = 0.95,
    method: Method = "bca",
    groups: Groups = None,
) -> Interval | None:
    """Return a paired confidence interval of `mean(first) - mean(second)`, as `mean_interval`; None without spread."""
    differences: Values = np.subtract(*_values.paired_vectors(first, second))
    means = resampled_means(differences, rng=rng, n_resamples=n_resamples, groups=groups)
    return difference_interval_from_means(differences, means, level=level, method=method, groups=groups)


def difference_interval_from_means(
    differences: Values, means: Values, *, level: float = 0.95, method: Method = "bca", groups: Groups = None
) -> Interval | None:
    """Return `difference_interval` from existing resampled mean differences, drawn with the same groups."""
    # No rule for data at the end of a scale here: a difference of 0 everywhere is the middle of its scale.
    _values.check_level(level)
    return _limits(differences, means, grouping_of(groups, n=differences.size), level=level, method=method)


def _limits(sample: Values, means: Values, grouping: Grouping, *, level: float, method: Method) -> Interval | None:
    # Groups with the same mean have no spread between them, whatever is within: every resample has that mean too.
    if grouping.n < 2 or is_constant(grouping.sums(sample) / grouping.counts):
        return None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        deviations = sample - sample.mean()
        if grouping.order is not None:
            left_out = (sample.sum() - grouping.sums(sample)) / (sample.size - grouping.counts)
            deviations = left_out.mean() - left_out
        tails = bca_shares(float(sample.mean()), means, deviations, tails=tails)
    low, high = np.quantile(means, tails)
    return Interval(float(low), float(high))


def bca_shares(estimate: float, resampled: Values, deviations: Values, *, tails: Values) -> Values:
    """Return the quantiles of resampled estimates that are BCa limits (Efron & Tibshirani, 1993, eq. 14.9 to 14.15).

    `deviations` are the mean of the leave-one-out estimates minus each of them, at any scale but not all 0; `tails` are
    the plain percentiles to correct.
    """
    # Ties count one half, as in scipy; with slack, because win rates are discrete and many resamples share the mean.
    slack = max(_values.slack_of(resampled), ROUND_OFF * abs(estimate))
    below, above = np.count_nonzero(resampled < estimate - slack), np.count_nonzero(resampled > estimate + slack)
    share_below = (below + (resampled.size - below - above) / 2) / resampled.size
    margin = 0.5 / resampled.size  # with few resamples all may be on one side, and the correction would be infinite
    bias = float(ndtri(np.clip(share_below, margin, 1 - margin)))
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    shifted = bias + ndtri(tails)
    return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)), dtype=np.float64)


@dataclass(frozen=True)
class Difference:
    """`mean(second) - mean(first)`, with interval and test."""

    difference: float
    interval: Interval | None
    """95 %; None if undefined: a single example or group, or no spread."""
    p_value: float | None
    """Two-sided test of no difference; None if undefined."""


def paired_difference(
    first: Values, second: Values, *, rng: Rng, n_draws: int = 9999, groups: Groups = None
) -> Difference:
    """Return the mean difference over the same examples, with a paired BCa interval and a sign-flip test.

    Under the null, either of an example's two values could have come first. Each draw therefore flips the sign of every
    example's difference at random. The observed mean difference counts as one draw, so the test holds its level at
    every number of examples. Examples of one group flip together.
    """
    interval = difference_interval(second, first, rng=rng, n_resamples=n_draws, groups=groups)
    differences = np.asarray(second, dtype=np.float64) - first
    sums = grouping_of(groups, n=differences.size).sums(differences)
    sizes = _values.batches(n_draws, width=sums.size, batch=None)
    flipped = np.concatenate([(2.0 * rng.integers(0, 2, size=(n, sums.size)) - 1.0) @ sums for n in sizes])
    # Round-off of a sum is as large as that of its terms: draws that tie with the observed one must count.
    slack = _values.slack_of(sums) * sums.size
    n_extreme = np.count_nonzero(np.abs(flipped) >= abs(sums.sum()) - slack)
    return Difference(float(differences.mean()), interval, float((1 + n_extreme) / (n_draws + 1)))


def unpaired_difference(
    first: Values, second: Values, *, first_groups: Groups = None, second_groups: Groups = None
) -> Difference:
    """Return the difference of the means of different examples, with Welch's interval and t-test.

    With groups, standard errors are cluster-robust and degrees of freedom count groups.
    """
    means, counts, squares = [], [], []
    for side, groups in ((first, first_groups), (second, second_groups)):
        values = finite_vector(side, what="value")
        grouping = grouping_of(groups, n=values.size)
        means.append(values.mean())
        counts.append(grouping.n)
        squares.append(float(grouping.standard_errors((values - values.mean())[None])[0]) ** 2)
    difference, error = float(means[1] - means[0]), math.sqrt(sum(squares))
    if min(counts) < 2 or error <= ROUND_OFF:
        return Difference(difference, None, None)
    freedom = sum(squares) ** 2 / sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    low, high = (difference + error * float(student.ppf(tail, freedom)) for tail in (0.025, 0.975))
    return Difference(difference, Interval(low, high), float(2 * student.sf(abs(difference) / error, freedom)))
