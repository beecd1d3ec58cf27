"""Whether two operators say the same about an attribution, on the same examples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from ice_eval.stats._groups import Groups
from ice_eval.stats._values import ROUND_OFF, Values, finite_vector, is_constant
from ice_eval.stats.bootstrap import (
    Interval,
    difference_interval_from_means,
    interval_from_means,
    paired_differences,
    resampled_means,
)
from ice_eval.stats.verdict import reaches, taxonomy

Crossing = Literal["confirmed", "possible", "no"]

_ONE_SIDED_LEVEL = 0.90  # each limit of a two-sided 90 % interval is a one-sided 95 % bound
_POSSIBLE = 0.05


@dataclass(frozen=True)
class Agreement:
    """Win rates of the same examples under two operators, compared."""

    gap: float
    """Mean win rate under the first operator less that under the second."""
    gap_ci: Interval | None
    """Paired 95 % interval; None where the gap is the same for every example, or there is one example or group."""
    p_crosses: float
    """Share of paired resamples with the two means on opposite sides of the threshold."""
    crosses_threshold: Crossing
    """Confirmed: the one-sided 95 % bounds lie on opposite sides. Possible: the means do, or 5 % of the resamples."""
    same_taxonomy: bool
    rank_correlation: float | None
    """Spearman, over examples; None where a side is constant."""


def agreement(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    threshold: float = 0.55,
    n_resamples: int = 9999,
    groups: Groups | None = None,
) -> Agreement:
    """Compare the win rates of the same examples under two operators.

    Every number comes from one set of paired resamples: an example is drawn with both its win rates.

    Args:
        first: Win rate of each example under the first operator.
        second: Win rate of each example under the second one, in the same order.
        rng: Source of the resamples.
        threshold: Win rate that divides the two sides; the threshold itself belongs to the upper one.
        n_resamples: Number of resamples.
        groups: One label per example, for resamples of whole groups; None where all are independent.

    Raises:
        DataError: If the two differ in length, are empty, hold a NaN or an infinity, or a label is missing.
    """
    differences = paired_differences(first, second)
    left, right = finite_vector(first, what="win rate"), finite_vector(second, what="win rate")
    means = resampled_means(np.stack([left, right], axis=1), rng=rng, n_resamples=n_resamples, groups=groups)
    p_crosses = _share_crossing(means, threshold=threshold)
    mean_left, mean_right = float(left.mean()), float(right.mean())
    return Agreement(
        gap=mean_left - mean_right,
        gap_ci=difference_interval_from_means(differences, means[:, 0] - means[:, 1], groups=groups),
        p_crosses=p_crosses,
        crosses_threshold=_crossing(
            bounds=(
                interval_from_means(left, means[:, 0], level=_ONE_SIDED_LEVEL, groups=groups),
                interval_from_means(right, means[:, 1], level=_ONE_SIDED_LEVEL, groups=groups),
            ),
            points_cross=reaches(mean_left, threshold) != reaches(mean_right, threshold),
            p_crosses=p_crosses,
            threshold=threshold,
        ),
        same_taxonomy=taxonomy(mean_left) == taxonomy(mean_right),
        rank_correlation=_rank_correlation(left, right),
    )


def _share_crossing(means: Values, *, threshold: float) -> float:
    above = means >= threshold - ROUND_OFF
    return float(np.mean(above[:, 0] != above[:, 1]))


def _crossing(
    *, bounds: tuple[Interval | None, Interval | None], points_cross: bool, p_crosses: float, threshold: float
) -> Crossing:
    first, second = bounds
    # Without spread there are no bounds, and a mean alone confirms nothing.
    if first is not None and second is not None and _apart(first, second, threshold=threshold):
        return "confirmed"
    return "possible" if points_cross or p_crosses >= _POSSIBLE else "no"


def _apart(first: Interval, second: Interval, *, threshold: float) -> bool:
    lower, upper = sorted((first, second))
    return reaches(upper.low, threshold) and not reaches(lower.high, threshold)


def _rank_correlation(first: Values, second: Values) -> float | None:
    if is_constant(first) or is_constant(second):  # a single example is constant too
        return None
    return float(spearmanr(first, second).statistic)
