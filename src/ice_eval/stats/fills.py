"""Win rates of nulls whose sets are distributed over several fills: noise between fills, and members of families.

Every set is scored under one fill, and compared with the rationale's score under the same fill. Arguments: `observed`
and `null` are scores, (examples, sets), padded with NaN at the end; `fills` is the fill of each set, from 0 on; `n` is
the number of sets of each example.
"""

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
    parts = _per_fill(won, fills)
    n_fills = _n_fills(parts)
    squares = np.sum([(counts * (means - rate)) ** 2 for counts, means in parts], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(n_fills > 1, n_fills / (n_fills - 1) * squares / n**2, np.nan)
        within = np.where(n > n_fills, _squares_within(won, fills) / (n - n_fills), np.nan)
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
    n_fills = _n_fills(_per_fill(null, fills))
    within = _squares_within(null, fills) / np.maximum(n - n_fills, 1) * (n - 1) / n
    variances = np.where(n >= 2 * n_fills, within, null_means((null - mean[:, None]) ** 2, n))
    return effect_sizes_of(null_means(np.where(np.isnan(null), np.nan, observed), n) - mean, variances, null)


def member_win_rates_by_fill(observed: Matrix, null: Matrix, fills: FillNumbers, n: Counts) -> tuple[Matrix, Counts]:
    """Return win rates of the members of each family, (examples, members), and the number of members, for `mean_test`.

    The first member is the rationale with its win rate over all fills. Then follows, for every fill, the win rate of
    each set and of the rationale against the others under this fill: their mean is one half.
    """
    won, lost = won_and_lost(observed, null)
    own = (np.count_nonzero(won, axis=1) + (n - np.count_nonzero(won, axis=1) - np.count_nonzero(lost, axis=1)) / 2) / n
    columns = [own[:, None]]
    for fill in range(int(fills.max(initial=0)) + 1):
        under = (fills == fill) & ~np.isnan(null)
        counts = np.count_nonzero(under, axis=1)
        some = np.flatnonzero(counts)
        if not some.size:
            continue
        first = under[some].argmax(axis=1)
        group = _compact(np.where(under[some], null[some], np.nan))[:, : counts.max()]
        rates = np.full((len(n), 1 + group.shape[1]), np.nan)
        members = np.concatenate([observed[some, first][:, None], group], axis=1)
        rates[some] = all_member_win_rates(members, counts[some] + 1)
        columns.append(rates)
    found = _compact(np.concatenate(columns, axis=1))
    return found, np.count_nonzero(~np.isnan(found), axis=1)


def _compact(values: Matrix) -> Matrix:
    """Return the matrix with the NaN of each row at the end."""
    return np.take_along_axis(values, np.argsort(np.isnan(values), axis=1, kind="stable"), axis=1)


def _per_fill(values: Matrix, fills: FillNumbers) -> list[tuple[Counts, Draws]]:
    """Return the number of sets under each fill and their mean, 0 without a set."""
    found = []
    for fill in range(int(fills.max(initial=0)) + 1):
        under = (fills == fill) & ~np.isnan(values)
        counts = np.count_nonzero(under, axis=1)
        found.append((counts, np.where(under, values, 0.0).sum(axis=1) / np.maximum(counts, 1)))
    return found


def _n_fills(parts: list[tuple[Counts, Draws]]) -> Counts:
    n_fills: Counts = np.count_nonzero(np.array([counts for counts, _ in parts]), axis=0)
    return n_fills


def _squares_within(values: Matrix, fills: FillNumbers) -> Draws:
    """Return the sum of squared deviations from the mean of the fill."""
    centres = np.zeros(values.shape)
    for fill, (_, means) in enumerate(_per_fill(values, fills)):
        centres = np.where(fills == fill, means[:, None], centres)
    squares: Draws = np.where(np.isnan(values), 0.0, (values - centres) ** 2).sum(axis=1)
    return squares
