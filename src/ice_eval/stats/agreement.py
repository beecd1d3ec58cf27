"""Agreement of operators about an attribution, and correlations of pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata, spearmanr, t

from ice_eval.errors import DataError
from ice_eval.stats._values import (
    ROUND_OFF,
    Groups,
    Mask,
    Rng,
    Values,
    check_level,
    grouping_of,
    is_constant,
    paired_vectors,
    resampled_means,
)
from ice_eval.stats.intervals import Interval, mean_interval, paired_difference
from ice_eval.stats.randomization import CHANCE
from ice_eval.stats.verdict import TAXONOMY, WEAKLY_FAITHFUL, reaches, taxonomy

Crossing = Literal["yes", "no", "unclear"]
Side = Literal["above", "below", "unclear"]
Robustness = Literal["robust", "weak under all operators", "operator-dependent", "inconclusive"]

_WILSON_ERRORS = float(ndtri(0.975))


@dataclass(frozen=True)
class Agreement:
    """Comparison of the same examples' win rates under two operators."""

    gap: float
    """Mean win rate under the first operator minus that under the second."""
    gap_ci: Interval
    """Paired 95 % interval."""
    crosses_threshold: Crossing
    """Yes: the 95 % intervals are on opposite sides of the threshold. No: they are on the same side."""
    same_taxonomy: bool
    rank_correlation: float | None
    """Spearman, over examples; None if a side is constant."""


@dataclass(frozen=True)
class RobustnessResult:
    """Agreement of all operators about one attribution."""

    word: Robustness
    """Robust: all operators are above the threshold. Operator-dependent: two are on opposite sides."""
    spread: float
    """Largest minus smallest mean win rate."""
    sides: tuple[Side, ...]
    """Above or below for each operator whose 95 % interval excludes the other side."""


def agreement(
    first: Values, second: Values, *, threshold: float = WEAKLY_FAITHFUL, groups: Groups = None, anytime: bool = False
) -> Agreement:
    """Compare the win rates of the same examples under two operators; the threshold belongs to the upper side."""
    left, right = paired_vectors(first, second, what="win rate")
    gap = paired_difference(right, left, groups=groups, anytime=anytime)
    sides = {_side(rates, threshold, groups, anytime) for rates in (left, right)}
    crosses: Crossing = "unclear" if "unclear" in sides else "yes" if len(sides) > 1 else "no"
    assert gap.interval is not None, "rates are on a scale"
    return Agreement(
        gap=gap.difference,
        gap_ci=gap.interval,
        crosses_threshold=crosses,
        same_taxonomy=taxonomy(float(left.mean())) == taxonomy(float(right.mean())),
        rank_correlation=_rank_correlation(left, right),
    )


def robustness(
    win_rates: Values, *, threshold: float = WEAKLY_FAITHFUL, groups: Groups = None, anytime: bool = False
) -> RobustnessResult:
    """Test if all operators put an attribution on the same side of the threshold; `win_rates` is (examples, operators).

    An operator is above if its 95 % interval reaches down to the threshold at most, and below if it does not reach up
    to it. Intervals are not widened for the number of operators.
    """
    rates = np.asarray(win_rates, dtype=np.float64)
    if rates.ndim != 2 or rates.shape[1] < 2:
        raise DataError(f"need one column of win rates per operator, two at least, got an array of shape {rates.shape}")
    sides = tuple(_side(column, threshold, groups, anytime) for column in rates.T)
    word: Robustness = "robust" if "above" in sides else "weak under all operators"
    if "unclear" in sides:
        word = "inconclusive"
    if {"above", "below"} <= {*sides}:
        word = "operator-dependent"
    return RobustnessResult(word, float(np.ptp(rates.mean(axis=0))), sides)


def kappa(first: Sequence[str], second: Sequence[str], *, categories: Sequence[str] = TAXONOMY) -> float | None:
    """Return Cohen's kappa with linear weights of two operators' words for the same configurations.

    1 is full agreement, 0 agreement by chance; None without configurations or if all have the same word. `categories`
    are the possible words in order: neighbours disagree least.
    """
    if len(first) != len(second):
        raise DataError(f"need the same configurations on both sides, got {len(first)} and {len(second)} words")
    left, right = _places(first, categories), _places(second, categories)
    steps = np.abs(np.subtract.outer(np.arange(len(categories)), np.arange(len(categories))))
    by_chance = np.bincount(left, minlength=len(steps)) @ steps @ np.bincount(right, minlength=len(steps))
    if by_chance == 0:
        return None
    return 1 - len(first) * int(np.abs(left - right).sum()) / int(by_chance)


def reliability(first_half: Values, second_half: Values) -> float | None:
    """Return the expected rank correlation of win rates with those against a second draw of the null.

    This is Spearman's correlation r of the win rates against two halves of the null, extended to the whole null by the
    Spearman-Brown formula `2 r / (1 + r)`. It estimates the share of the variance between examples that is not sampling
    noise of the null. A share is never negative, so r <= 0 gives 0. None if a side is constant.
    """
    correlation = _rank_correlation(*paired_vectors(first_half, second_half, what="win rate"))
    if correlation is None:
        return None
    return 2 * correlation / (1 + correlation) if correlation > 0 else 0.0


def ceiling(first: float | None, second: float | None) -> float | None:
    """Return the largest expected rank correlation between the win rates of two operators, from their `reliability`.

    Even operators that agree fully are compared through the sampling noise of their nulls: `sqrt(first * second)`
    (Spearman, 1904). This assumes independent noise; operators that score the same random sets may exceed it slightly.
    None if a reliability is undefined.
    """
    if first is None or second is None:
        return None
    if not (0 <= first <= 1 and 0 <= second <= 1):  # NaN fails this too
        raise DataError(f"a reliability lies in [0, 1], got {first} and {second}")
    return math.sqrt(first * second)


def sides_differ(win_rate_a: Values, win_rate_b: Values, m_a: ArrayLike, m_b: ArrayLike) -> Mask:
    """Return a mask of examples that two operators put on opposite sides of chance, beyond sampling noise.

    An example disagrees if the 95 % Wilson interval of its win rate, over m random sets, is above one half under one
    operator and below under the other. The interval covers the sampling of the null and nothing else.
    """
    first, second = paired_vectors(win_rate_a, win_rate_b, what="win rate")
    return np.asarray(_clear_signs(first, m_a) * _clear_signs(second, m_b) < 0)


def _clear_signs(rates: Values, m: ArrayLike) -> Values:
    """Return 1 if the Wilson interval is above one half, -1 if below, else 0."""
    counts = np.asarray(m)
    if counts.shape not in ((), rates.shape):
        raise DataError(f"need one number of random sets per example, got {counts.size} for {rates.size} win rates")
    if counts.min() < 1:
        raise DataError(f"need at least one random set behind a win rate, got {counts.min()}")
    # Wilson's limits invert the score test, whose error is taken at the value tested: 1 / (2 sqrt(m)) at one half.
    errors = (rates - CHANCE) * 2 * np.sqrt(counts)
    return np.where(np.abs(errors) > _WILSON_ERRORS, np.sign(errors), 0.0)


def _places(words: Sequence[str], categories: Sequence[str]) -> NDArray[np.int64]:
    unknown = sorted(set(words) - set(categories))
    if unknown:
        raise DataError(f"no word {unknown[0]!r} among the categories; known: {', '.join(categories)}")
    return np.array([categories.index(word) for word in words], dtype=np.int64)


def _side(rates: Values, threshold: float, groups: Groups, anytime: bool) -> Side:
    low, high = mean_interval(rates, groups=groups, anytime=anytime)
    if reaches(low, threshold):
        return "above"
    return "unclear" if reaches(high, threshold) else "below"


def _rank_correlation(first: Values, second: Values) -> float | None:
    if is_constant(first) or is_constant(second):  # a single example is constant too
        return None
    return float(spearmanr(first, second).statistic)


# --- correlations ---------------------------------------------------------------------------------------------------

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
