"""Win rates of nulls whose sets are distributed over several fills: noise between fills, and members of families.

Every set is scored under one fill, and compared with the rationale's score under the same fill. Arguments: `observed`
and `null` are scores, (examples, sets), padded with NaN at the end; `fills` is the fill of each set, from 0 on; `n` is
the number of sets of each example.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from ice_eval.stats.randomization import (
    Counts,
    Draws,
    Matrix,
    all_member_win_rates,
    effect_sizes_of,
    null_means,
    won_and_lost,
)

FillNumbers = NDArray[np.int64]  # (examples, sets)

_LEVEL = 0.975  # of the intervals of single examples, which are two-sided 95 %


@dataclass(frozen=True, eq=False)
class FillNoise:
    """Noise of the win rates of many examples, as arrays of shape (examples,)."""

    n_fills: Counts
    """Number of fills that some set was scored under."""
    error: Draws
    """Variance of the win rate over fills and sets, from win rates per fill; NaN for one fill."""
    within: Draws
    """Variance added by one set under a given fill; NaN if no fill has two sets."""
    n_effective: Draws
    """Number of independent sets with the same noise: between 1, as for one fill, and the number of sets."""


def fill_noise(observed: Matrix, null: Matrix, fills: FillNumbers, n: Counts) -> FillNoise:
    """Return the noise of win rates over fills and random sets.

    With g_f sets under fill f and win rates w_f there, the variance of the mean w is `F / (F - 1) * sum (g_f / M)^2
    (w_f - w)^2`. The design effect is that variance over the one of M independent sets, widened by the ratio of
    Student's to the normal quantile because F is small; it is at least 1.
    """
    beaten, better = won_and_lost(observed, null)
    won = np.where(np.isnan(null), np.nan, 0.5 + (beaten.astype(np.float64) - better) / 2)
    rate = null_means(won, n)
    counts, means = _per_fill(won, fills)
    n_fills = np.count_nonzero(counts, axis=1)
    squares = ((counts * (means - rate[:, None])) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(n_fills > 1, n_fills / (n_fills - 1) * squares / n**2, np.nan)
        within = np.where(n > n_fills, _squares_within(won, fills, means) / (n - n_fills), np.nan)
        independent = null_means((won - rate[:, None]) ** 2, n) / n
        wider = (stdtrit(np.maximum(n_fills - 1, 1), _LEVEL) / ndtri(_LEVEL)) ** 2
        worth = np.where(error > 0, independent / (error * wider), 1.0) * n
    return FillNoise(n_fills, error, within, np.where(n_fills > 1, np.clip(worth, 1, n), 1.0))


def effect_sizes_by_fill(observed: Matrix, null: Matrix, fills: FillNumbers, n: Counts) -> Draws:
    """Return the mean difference to the sets in standard deviations of sets under the same fill.

    The variance is `S / (M - F) * (M - 1) / M` with S the squares within fills, which is that of `effect_sizes` for one
    fill. With fewer than two sets per fill it is the variance of all sets.
    """
    mean = null_means(null, n)
    counts, means = _per_fill(null, fills)
    n_fills = np.count_nonzero(counts, axis=1)
    within = _squares_within(null, fills, means) / np.maximum(n - n_fills, 1) * (n - 1) / n
    variances = np.where(n >= 2 * n_fills, within, null_means((null - mean[:, None]) ** 2, n))
    return effect_sizes_of(null_means(np.where(np.isnan(null), np.nan, observed), n) - mean, variances, null)


def member_win_rates_by_fill(observed: Matrix, null: Matrix, n: Counts) -> Matrix:
    """Return win rates of the rationale and of each set, (examples, 1 + sets), against each other, for `mean_test`.

    Sets are compared by their difference to the rationale under the same fill, so that an offset of a fill does not
    matter. The first win rate is that over all fills.
    """
    # Ties are decided relative to the magnitude of scores, not of their differences.
    level = np.nanmax(np.abs(np.concatenate([observed, null], axis=1)), axis=1, keepdims=True)
    return all_member_win_rates(np.concatenate([level, level + (null - observed)], axis=1), n + 1)


def _per_fill(values: Matrix, fills: FillNumbers) -> tuple[NDArray[np.int64], Matrix]:
    """Return the number of sets under each fill and their mean, (examples, fills); 0 without a set."""
    shape, inside = (len(values), int(fills.max(initial=0)) + 1), ~np.isnan(values)
    cells = (np.arange(shape[0])[:, None] * shape[1] + fills)[inside]
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    sums = np.bincount(cells, values[inside], math.prod(shape)).reshape(shape)
    return counts, sums / np.maximum(counts, 1)


def _squares_within(values: Matrix, fills: FillNumbers, means: Matrix) -> Draws:
    """Return the sum of squared deviations from the mean of the fill."""
    deviations = values - np.take_along_axis(means, fills, axis=1)
    squares: Draws = np.where(np.isnan(values), 0.0, deviations**2).sum(axis=1)
    return squares
