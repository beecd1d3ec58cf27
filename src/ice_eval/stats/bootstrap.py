"""Bootstrap intervals of a mean over examples."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Values, batches, count_against, finite_vector, is_constant, mid_rank

Method = Literal["bca", "percentile"]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def resampled_means(
    values: NDArray[np.float64], *, rng: np.random.Generator, n_resamples: int = 9999, batch: int | None = None
) -> NDArray[np.float64]:
    """Means of resamples of `values` drawn with replacement.

    The draws are those of `scipy.stats.bootstrap` with the same generator, in bounded memory: the work is cut into
    batches, which changes no number.

    Args:
        values: One value per example, (N,), or one row, (N, c); a row is drawn whole, so that columns stay paired.
        rng: Source of the resamples.
        n_resamples: Number of resamples, B.
        batch: Resamples held in memory at once.

    Returns:
        The means, (B,) or (B, c).

    Raises:
        DataError: If there are no values, more than two axes, or a NaN or an infinity.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim not in (1, 2):
        raise DataError(f"need one value or one row per example, got an array of shape {sample.shape}")
    finite_vector(sample.ravel(), what="value")
    if n_resamples < 1:
        raise DataError(f"need at least one resample, got n_resamples={n_resamples}")
    columns = np.ascontiguousarray(sample.reshape(len(sample), -1).T)
    means = np.concatenate(
        [
            _means_of_rows(columns, rows=rng.integers(0, len(sample), size=(n, len(sample))))
            for n in batches(n_resamples, width=len(sample), batch=batch)
        ]
    )
    return means.reshape(n_resamples, *sample.shape[1:])


def mean_interval(
    values: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    n_resamples: int = 9999,
    level: float = 0.95,
    method: Method = "bca",
) -> Interval | None:
    """Confidence interval of the mean of rates in [0, 1], one per example.

    Where all rates equal 1 no resample differs from the data and a bootstrap interval has no width; the lower limit is
    then the exact one of N successes out of N, `((1 - level) / 2) ** (1 / N)`, and the mirror of it where all equal 0.

    Args:
        values: One rate per example.
        rng: Source of the resamples.
        n_resamples: Number of resamples.
        level: Two-sided confidence level; each limit alone holds with confidence `(1 + level) / 2`.
        method: Bias-corrected and accelerated, or plain percentiles.

    Returns:
        The interval, or None where it is undefined: one example, or all rates equal to something other than 0 and 1.

    Raises:
        DataError: If there are no values, or one is NaN or infinite.
    """
    means = resampled_means(finite_vector(values, what="value"), rng=rng, n_resamples=n_resamples)
    return interval_from_means(values, means, level=level, method=method)


def interval_from_means(
    values: NDArray[np.float64], means: NDArray[np.float64], *, level: float = 0.95, method: Method = "bca"
) -> Interval | None:
    """`mean_interval` from resampled means already at hand."""
    sample = finite_vector(values, what="value")
    _check_level(level)
    if sample.size > 1 and is_constant(sample):
        return _exact_limits(float(sample[0]), n=sample.size, level=level)
    return _limits(sample, means, level=level, method=method)


def difference_interval(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    n_resamples: int = 9999,
    level: float = 0.95,
    method: Method = "bca",
) -> Interval | None:
    """Paired confidence interval of `mean(first) - mean(second)` over the same examples.

    Returns:
        The interval, or None where it is undefined: one example, or a difference that is the same for all.

    Raises:
        DataError: If the two differ in length, are empty, or hold a NaN or an infinity.
    """
    differences = paired_differences(first, second)
    means = resampled_means(differences, rng=rng, n_resamples=n_resamples)
    return difference_interval_from_means(differences, means, level=level, method=method)


def difference_interval_from_means(
    differences: NDArray[np.float64], means: NDArray[np.float64], *, level: float = 0.95, method: Method = "bca"
) -> Interval | None:
    """`difference_interval` from resampled mean differences already at hand."""
    # No rule for data at the end of a scale here: a difference of 0 everywhere is the middle of its scale.
    _check_level(level)
    return _limits(differences, means, level=level, method=method)


def paired_differences(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """`first - second`, example by example.

    Raises:
        DataError: If the two differ in length, are empty, or hold a NaN or an infinity.
    """
    left, right = finite_vector(first, what="value"), finite_vector(second, what="value")
    if left.size != right.size:
        raise DataError(f"need the same examples on both sides, got {left.size} and {right.size} values")
    return left - right


def _means_of_rows(columns: Values, *, rows: NDArray[np.int64]) -> Values:
    """Mean of each column, (c, N), over each row of indices, (b, N) -> (b, c)."""
    return np.stack([column[rows].mean(axis=1) for column in columns], axis=1)


def _exact_limits(rate: float, *, n: int, level: float) -> Interval | None:
    """Clopper-Pearson limits of n successes, or none, out of n."""
    limit = ((1 - level) / 2) ** (1 / n)
    if abs(rate - 1) <= ROUND_OFF:
        return Interval(limit, 1.0)
    return Interval(0.0, 1 - limit) if abs(rate) <= ROUND_OFF else None


def _limits(sample: Values, means: Values, *, level: float, method: Method) -> Interval | None:
    if sample.size < 2 or is_constant(sample):
        return None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    shares = tails if method == "percentile" else _bca_shares(sample, means, tails=tails)
    low, high = np.quantile(means, shares)
    return Interval(float(low), float(high))


def _bca_shares(sample: Values, means: Values, *, tails: Values) -> Values:
    """Which quantiles of the resampled means are the BCa limits (Efron & Tibshirani, 1993, equations 14.9-14.15)."""
    # Ties count one half, as in scipy; with slack, because win rates are discrete and many resamples share the mean.
    share_below = mid_rank(count_against(float(sample.mean()), means))
    margin = 0.5 / means.size  # with very few resamples all may lie on one side, and the correction would be infinite
    bias = float(ndtri(np.clip(share_below, margin, 1 - margin)))
    shifted = bias + ndtri(tails)
    return np.asarray(ndtr(bias + shifted / (1 - _acceleration(sample) * shifted)), dtype=np.float64)


def _acceleration(sample: Values) -> float:
    """Jackknife acceleration: leaving out example i moves the mean by its deviation, so no jackknife loop is needed."""
    deviations = sample - sample.mean()
    return float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")
