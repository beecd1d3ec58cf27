"""Difference of two mean win rates, over the same or different examples."""

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
    """`mean(second) - mean(first)`, with interval and test."""

    difference: float
    interval: Interval | None
    """95 %; None if undefined: a single example or group, or no spread."""
    p_value: float | None
    """Two-sided test of no difference; None if undefined."""


def paired_difference(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    n_draws: int = 9999,
    groups: Groups | None = None,
) -> Difference:
    """Return the mean difference over the same examples, with a paired BCa interval and a sign-flip test.

    Under the null, either of an example's two values could have come first. Each draw therefore flips the sign of every
    example's difference at random. The observed mean difference counts as one draw, so the test holds its level at
    every number of examples. Examples of one group flip together.
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
    """Return the difference of the means of different examples, with Welch's interval and t-test.

    With groups, standard errors are cluster-robust and degrees of freedom count groups.
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
    """Return the share of draws, the observed one included, whose sum is at least as far from 0."""
    flipped = np.concatenate(
        [
            (2.0 * rng.integers(0, 2, size=(n, sums.size)) - 1.0) @ sums
            for n in batches(n_draws, width=sums.size, batch=None)
        ]
    )
    # Round-off of a sum is as large as that of its terms: draws that tie with the observed one must count.
    slack = slack_of(sums) * sums.size
    return float((1 + np.count_nonzero(np.abs(flipped) >= abs(sums.sum()) - slack)) / (n_draws + 1))
