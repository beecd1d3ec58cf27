"""Correlations of pairs, with intervals, p-values and power."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata, t

from ice_eval.errors import DataError
from ice_eval.stats._values import (
    ROUND_OFF,
    Groups,
    Rng,
    Values,
    check_level,
    grouping_of,
    is_constant,
    paired_vectors,
    resampled_means,
)
from ice_eval.stats.intervals import Interval

Coefficient = Literal["pearson", "spearman"]
FEWEST_PAIRS = 4
"""Fisher's z has the variance 1 / (n - 3)."""


@dataclass(frozen=True)
class Correlation:
    """Correlation of two numbers per example; all fields but `n` are None if it is undefined."""

    n: int
    r: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    """Two-sided test of no correlation; None for grouped pairs."""
    detectable: float | None = None
    """Smallest correlation that this number of pairs, or groups, detects with power 80 %."""


def correlate(
    x: Values, y: Values, *, rng: Rng, coefficient: Coefficient = "pearson", level: float = 0.95, groups: Groups = None
) -> Correlation:
    """Return Pearson's r or Spearman's rho of the pairs, with its interval and p-value.

    The interval is Fisher's, `tanh(atanh(r) ± z * se)`, with the variance `1 / (n - 3)`, or for ranks `(1 + r² / 2) /
    (n - 3)` (Bonett & Wright, 2000). With groups, whole groups are resampled (percentiles) and there is no p-value;
    only then is `rng` used. Pairs on a line have no interval; their p-value is the share of pairings that are as
    extreme. The correlation is undefined if a side is constant or there are fewer than four pairs or groups.
    """
    first, second = paired_vectors(x, y)
    check_level(level)
    grouping = grouping_of(groups, n=first.size)
    if grouping.n < FEWEST_PAIRS or is_constant(first) or is_constant(second):
        return Correlation(first.size)
    if coefficient == "spearman":
        first, second = rankdata(first), rankdata(second)
    # Means of these columns are all that r is made of, so that resampled means give resampled coefficients.
    first, second = first - first.mean(), second - second.mean()
    moments = np.column_stack([first, second, first**2, second**2, first * second])
    r = float(_from_moments(moments.mean(axis=0)))
    detectable = detectable_correlation(grouping.n)
    if grouping.order is not None:
        resampled = _from_moments(resampled_means(moments, rng=rng, groups=groups))
        low, high = np.nanquantile(resampled, [(1 - level) / 2, (1 + level) / 2])
        return Correlation(first.size, r, Interval(float(low), float(high)), None, detectable)
    if abs(r) >= 1 - ROUND_OFF:
        # Fisher's z is infinite, and an interval without width would claim too much.
        return Correlation(first.size, r, None, _perfect_pvalue(first), detectable)
    error = math.sqrt((1 if coefficient == "pearson" else 1 + r**2 / 2) / (first.size - 3))
    reach = float(ndtri((1 + level) / 2)) * error
    interval = Interval(math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach))
    return Correlation(first.size, r, interval, correlation_pvalue(r, first.size), detectable)


def _from_moments(means: Values) -> Values:
    """Return Pearson's r from the means of x, y, x², y² and xy in the last axis; NaN without spread."""
    x, y, xx, yy, xy = np.moveaxis(means, -1, 0)
    spread = np.sqrt(np.maximum(xx - x**2, 0) * np.maximum(yy - y**2, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, np.clip((xy - x * y) / spread, -1, 1), np.nan)


def _perfect_pvalue(values: Values) -> float:
    """Return the p-value of pairs on a line, where Student's t is infinite: at most two pairings are as extreme."""
    _, ties = np.unique(values, return_counts=True)
    log_ways = math.lgamma(values.size + 1) - sum(math.lgamma(count + 1) for count in ties.tolist())
    return max(min(1.0, 2 * math.exp(-log_ways)), float(np.finfo(np.float64).tiny))


def correlation_pvalue(r: float, n: int) -> float:
    """Return the two-sided p-value of Pearson's r over n >= 3 pairs, by Student's t with n - 2 degrees of freedom."""
    _check_pairs(n, least=3)
    if not -1 < r < 1:
        raise DataError(f"a correlation lies between -1 and 1, got {r}")
    p_value = float(2 * t.sf(abs(r) * math.sqrt((n - 2) / (1 - r**2)), n - 2))
    return max(p_value, float(np.finfo(np.float64).tiny))  # a strong one of many pairs is below what a float holds


def detectable_correlation(n: int, *, power: float = 0.8, level: float = 0.05) -> float:
    """Return the smallest Pearson correlation that n >= 4 pairs detect in a two-sided test, by Fisher's z."""
    _check_pairs(n, least=FEWEST_PAIRS)
    return math.tanh(float(ndtri(1 - level / 2) + ndtri(power)) / math.sqrt(n - 3))


def _check_pairs(n: int, *, least: int) -> None:
    if n < least:
        raise DataError(f"need at least {least} pairs, got {n}")
