"""Agreement of operators about an attribution, on the same examples and over configurations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import spearmanr

from ice_eval.errors import DataError
from ice_eval.stats._values import Groups, Mask, Values, is_constant, paired_vectors
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
    first: Values,
    second: Values,
    *,
    threshold: float = WEAKLY_FAITHFUL,
    groups: Groups = None,
    anytime: bool = False,
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
    return RobustnessResult(_robustness_word(sides), float(np.ptp(rates.mean(axis=0))), sides)


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
    Spearman-Brown formula `2 r / (1 + r)`: the share of the variance between examples that is not sampling noise of the
    null. A share is never negative, so r <= 0 gives 0. None if a side is constant.
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


def _robustness_word(sides: tuple[Side, ...]) -> Robustness:
    if "above" in sides and "below" in sides:
        return "operator-dependent"
    if "unclear" in sides:
        return "inconclusive"
    return "robust" if "above" in sides else "weak under all operators"


def _rank_correlation(first: Values, second: Values) -> float | None:
    if is_constant(first) or is_constant(second):  # a single example is constant too
        return None
    return float(spearmanr(first, second).statistic)
