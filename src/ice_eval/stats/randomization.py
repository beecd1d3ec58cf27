"""Randomization tests: a rationale against random sets of the same size, for one example and for a data set."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.stats._groups import Grouping, Groups, grouping_of
from ice_eval.stats._values import ROUND_OFF, batches, count_against, finite_vector, mid_rank, rates_vector, slack_of

Draws = NDArray[np.float64]  # (M,): one score per random set

CHANCE = 0.5
"""Mean win rate of a rationale that is no better than a random set."""


@dataclass(frozen=True)
class Comparison:
    """A rationale's score against its null."""

    observed: float
    null: Draws = field(repr=False, compare=False)
    """The scores it was compared with."""
    win_rate: float
    """Share of the null that `observed` beats, ties one half."""
    win_rate_strict: float
    """Share of the null that `observed` beats, ties lost."""
    tie_rate: float
    p_value: float
    """Upper tail: how often a random set does at least as well."""
    p_lower: float
    """Lower tail: how often a random set does at most as well."""

    @property
    def effect_size(self) -> float | None:
        """`effect_size` of the observed score."""
        return effect_size(self.observed, self.null)


def compare(observed: float, null: Draws) -> Comparison:
    """Place of `observed` among the scores of random sets of the same size.

    `p_value` is `(1 + #{null >= observed}) / (M + 1)`: the observed set counts as one draw, so the test is valid at any
    M and its value is never 0 (Phipson & Smyth, 2010). When `null` holds *all* other sets of that size, M + 1 is the
    number C of sets and the very same formula is the exact test, `#{S : s_S >= s_observed} / C`, the observed set
    included.
    Ties are decided with a slack of 100 machine epsilons of the largest magnitude.

    Args:
        observed: Score of the rationale.
        null: Scores of the random sets, the rationale's own left out.

    Raises:
        DataError: If `null` is empty or any value is NaN or infinite.
    """
    draws = _checked(observed, null)
    counts = count_against(observed, draws)
    n_sets = draws.size + 1
    return Comparison(
        observed=float(observed),
        null=draws,
        win_rate=mid_rank(counts),
        win_rate_strict=counts.below / draws.size,
        tie_rate=counts.tied / draws.size,
        p_value=(1 + counts.tied + counts.above) / n_sets,
        p_lower=(1 + counts.tied + counts.below) / n_sets,
    )


def upper_pvalue(observed: float, null: Draws) -> float:
    """Share of sets, the observed one included, that score at least `observed` (see `compare`)."""
    return compare(observed, null).p_value


def lower_pvalue(observed: float, null: Draws) -> float:
    """Share of sets, the observed one included, that score at most `observed` (see `compare`)."""
    return compare(observed, null).p_lower


def effect_size(observed: float, null: Draws) -> float | None:
    """Distance of `observed` from the mean of the null in its standard deviations.

    The null is the population compared with, not a sample of it: its variance is divided by M.

    Returns:
        The distance, or None where the null has no spread and there is nothing to measure it in.

    Raises:
        DataError: If `null` is empty or any value is NaN or infinite.
    """
    draws = _checked(observed, null)
    spread = float(draws.std())
    if spread <= slack_of(draws):
        return None
    return (float(observed) - float(draws.mean())) / spread


def member_win_rates(values: Draws) -> Draws:
    """Win rate of each member of a scored family against all the others.

    Entry 0 is `compare(values[0], values[1:]).win_rate`. Two members tie when they differ by at most the slack of the
    family, pair by pair as in `compare`: members are never chained into one tie through a third.

    Args:
        values: Scores of the M + 1 sets of one example.

    Raises:
        DataError: If there are fewer than two values, or any is NaN or infinite.
    """
    scores = finite_vector(values, what="score")
    if scores.size < 2:
        raise DataError("need the scores of at least two sets to compare them with each other, got one")
    slack = slack_of(scores)
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, scores - slack, side="left")
    above = scores.size - np.searchsorted(ordered, scores + slack, side="right")
    n_others = scores.size - 1
    tied = n_others - below - above
    rates: Draws = (below + tied / 2) / n_others
    return rates


@dataclass(frozen=True)
class MeanTest:
    """Result of `mean_test`."""

    statistic: float
    """Studentized distance of the mean win rate from one half; infinite where all are equal to something else."""
    p_value: float
    """Two-sided."""
    n_draws: int
    """Draws that it was compared with."""


def mean_test(
    families: Sequence[Draws],
    *,
    rng: np.random.Generator,
    n_draws: int = 9999,
    batch: int | None = None,
    groups: Groups | None = None,
) -> MeanTest:
    """Two-sided studentized randomization test of "the mean win rate is one half".

    If a rationale is no better than a random set, it could have been any member of its family. So in each draw every
    example's rationale is swapped for a uniformly chosen member of its own family, and
    `T = (mean - 1/2) / (sd / sqrt(N))` of the observed rationales is compared with T of the draws. The observed one
    counts as a draw: the p-value is never 0, and the test holds its level at every N and M, with ties and unequal
    families too.

    With `groups`, rationales are still swapped example by example, but T is studentized with the cluster-robust
    standard error. Win rates may then depend on each other within a group, which a swap does not imitate; groups must
    be independent. The level is no longer exact: it rests on T having nearly the same distribution either way, as it
    does for some twenty groups or more of similar size. A single group has p = 1, or nearly.

    Args:
        families: For each example `member_win_rates` of its scored sets, the rationale first; lengths may differ.
        rng: Source of the draws.
        n_draws: Number of draws.
        batch: Draws held in memory at once; the result does not depend on it.
        groups: One label per example; None where all are independent.

    Raises:
        DataError: If there is no example, a family is empty, a win rate is not in [0, 1], or a label is missing.
    """
    checked = [rates_vector(family, what="win rate", hint="; pass member_win_rates") for family in families]
    if not checked:
        raise DataError("need the win rates of at least one example, got none")
    if n_draws < 1:
        raise DataError(f"need at least one draw, got n_draws={n_draws}")
    grouping = grouping_of(groups, n=len(checked))
    statistic = float(_studentized(np.array([[family[0] for family in checked]]), grouping)[0])
    null = np.abs(_swapped_statistics(checked, grouping, rng=rng, n_draws=n_draws, batch=batch))
    slack = _finite_slack(np.append(null, abs(statistic)))
    n_extreme = int(np.count_nonzero(null >= abs(statistic) - slack))
    return MeanTest(statistic, (1 + n_extreme) / (n_draws + 1), n_draws)


def _swapped_statistics(
    families: Sequence[Draws], grouping: Grouping, *, rng: np.random.Generator, n_draws: int, batch: int | None
) -> Draws:
    """T of each draw; families lie end to end in one vector, so that a swap is one index."""
    members = np.concatenate(families)
    lengths = np.array([family.size for family in families])
    starts = np.cumsum(lengths) - lengths
    return np.concatenate(
        [
            _studentized(members[starts + rng.integers(0, lengths, size=(n, lengths.size))], grouping)
            for n in batches(n_draws, width=lengths.size, batch=batch)
        ]
    )


def _studentized(win_rates: Draws, grouping: Grouping) -> Draws:
    """T of each row; without spread it is 0 at a mean of one half and infinite elsewhere."""
    mean = win_rates.mean(axis=1)
    error = grouping.standard_errors(win_rates)
    # Win rates are fractions of 1, so round-off is measured against 1.
    distance = np.where(np.abs(mean - CHANCE) <= ROUND_OFF, 0.0, mean - CHANCE)
    without_spread = np.where(distance == 0.0, 0.0, np.copysign(np.inf, distance))
    statistics: Draws = np.divide(distance, error, out=without_spread, where=error > ROUND_OFF)
    return statistics


def _finite_slack(statistics: Draws) -> float:
    """Slack of the finite statistics: an infinite one ties with nothing but another."""
    finite = statistics[np.isfinite(statistics)]
    return slack_of(finite) if finite.size else 0.0


def _checked(observed: float, null: Draws) -> Draws:
    if not np.isfinite(observed):
        raise DataError(f"need a finite observed score, got {observed}")
    return finite_vector(null, what="null score")
