"""Bootstrap of means: the paper's percentile interval, and BCa limits of functions of several means."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ice_eval.errors import DataError
from ice_eval.stats import _values
from ice_eval.stats._values import ROUND_OFF, Grouping, Groups, Rng, Values, finite_vector, grouping_of
from ice_eval.stats.intervals import Interval


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


def percentile_interval(values: Values, *, rng: Rng, n_resamples: int = 200, groups: Groups = None) -> Interval:
    """Return the 95 % percentile interval of a mean, as in the paper; groups are resampled whole."""
    means = resampled_means(finite_vector(values, what="value"), rng=rng, n_resamples=n_resamples, groups=groups)
    low, high = np.quantile(means, (0.025, 0.975))
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
