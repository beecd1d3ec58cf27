"""Two mean win rates, and whether they differ: over the same examples, or over different ones."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ice_eval.stats._values import ROUND_OFF, Groups, Values, batches, finite_vector, grouping_of, slack_of
from ice_eval.stats.bootstrap import Interval, difference_interval, paired_differences

_TAILS = (0.025, 0.975)


@dataclass(frozen=True)
class Difference:
    """`mean(second) - mean(first)`, and how sure it is."""

    difference: float
    interval: Interval | None
    """95 %; None where it is undefined: a single example or group, or no spread."""
    p_value: float | None
    """Two-sided test of no difference; None where it is undefined."""


def paired_difference(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    n_draws: int = 9999,
    groups: Groups | None = None,
) -> Difference:
    """How far the same examples changed: a paired BCa interval, and a sign-flip test.

    If nothing has changed, either of an example's two values could have come first. So in each draw the sign of every
    example's difference is chosen by a coin, and the mean difference is compared with those of the draws, the observed
    one among them: the test holds its level at every number of examples. Examples of one group flip together.

    Args:
        first: One value per example.
        second: The other value of each example, in the same order.
        rng: Source of the draws, of the interval and of the test.
        n_draws: Draws of each.
        groups: One label per example; None where all are independent.

    Raises:
        DataError: If the two differ in length, are empty, hold a NaN or an infinity, or a label is missing.
    """
    differences = paired_differences(second, first)
    return Difference(
        difference=float(differences.mean()),
        interval=difference_interval(second, first, rng=rng, n_resamples=n_draws, groups=groups),
        p_value=_sign_flip_pvalue(grouping_of(groups, n=differences.size).sums(differences), rng=rng, n_draws=n_draws),
    )


def unpaired_difference(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    first_groups: Groups | None = None,
    second_groups: Groups | None = None,
) -> Difference:
    """How far the means of different examples lie apart: Welch's interval and t-test, of unequal variances.

    With groups, standard errors are cluster-robust and degrees of freedom count groups.

    Args:
        first: One value per example.
        second: One value per example, of other examples.
        first_groups: One label per example of `first`; None where all are independent.
        second_groups: The same of `second`.

    Raises:
        DataError: If one is empty, holds a NaN or an infinity, or a label is missing.
    """
    sides = [
        (finite_vector(values, what="value"), groups)
        for values, groups in ((first, first_groups), (second, second_groups))
    ]
    difference = float(sides[1][0].mean() - sides[0][0].mean())
    counts, squares = [], []
    for values, groups in sides:
        grouping = grouping_of(groups, n=values.size)
        counts.append(grouping.n)
        squares.append(float(grouping.standard_errors((values - values.mean())[None])[0]) ** 2)
    error = math.sqrt(sum(squares))
    if min(counts) < 2 or error <= ROUND_OFF:
        return Difference(difference, None, None)
    freedom = sum(squares) ** 2 / sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    low, high = (difference + error * float(student.ppf(tail, freedom)) for tail in _TAILS)
    return Difference(difference, Interval(low, high), float(2 * student.sf(abs(difference) / error, freedom)))


def _sign_flip_pvalue(sums: Values, *, rng: np.random.Generator, n_draws: int) -> float:
    """Share of draws, the observed one included, whose sum is at least as far from 0."""
    flipped = np.concatenate(
        [
            (2.0 * rng.integers(0, 2, size=(n, sums.size)) - 1.0) @ sums
            for n in batches(n_draws, width=sums.size, batch=None)
        ]
    )
    # Round-off of a sum is as large as that of its terms: draws that tie with the observed one must count.
    slack = slack_of(sums) * sums.size
    return float((1 + np.count_nonzero(np.abs(flipped) >= abs(sums.sum()) - slack)) / (n_draws + 1))
