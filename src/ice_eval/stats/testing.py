"""Tests of a data set's mean win rate, and adjustments for the number of tests."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, false_discovery_control

from ice_eval.errors import DataError
from ice_eval.stats import _values
from ice_eval.stats._values import ROUND_OFF, Grouping, Groups, Mask, Rng, Values, finite_vector, grouping_of
from ice_eval.stats.randomization import CHANCE, Counts, Draws, Families

_LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class MeanTest:
    """Result of `mean_test`."""

    statistic: float
    """Studentized distance of the mean win rate from one half; infinite if all are equal to something else."""
    p_value: float
    """Two-sided."""
    null: Draws = field(repr=False, compare=False)
    """Size of the statistic in each draw."""

    @property
    def n_draws(self) -> int:
        return self.null.size

    @classmethod
    def of(cls, statistic: float, null: Draws) -> "MeanTest":
        """Compare the observed statistic with the sizes of those of the draws."""
        every = np.append(null, abs(statistic))
        slack = ROUND_OFF * every.max(initial=0.0, where=np.isfinite(every))  # an infinite one ties only with another
        n_extreme = int(np.count_nonzero(null >= abs(statistic) - slack))
        return cls(statistic, (1 + n_extreme) / (null.size + 1), null)


def mean_test(families: Sequence[Draws], *, rng: Rng, n_draws: int = 9999, groups: Groups = None) -> MeanTest:
    """Run a two-sided studentized randomization test of "the mean win rate is one half".

    `families` holds `member_win_rates` of each example, the rationale first. Under the null, a rationale could have
    been any member of its family. In each draw, every example's rationale is swapped for a uniformly chosen member of
    its own family, and `T = (mean - 1/2) / (sd / sqrt(N))` of the observed rationales is compared with T of the draws.
    The observed one counts as a draw: the p-value is never 0, and the test holds its level at every N and M, with ties
    and unequal families too.

    With `groups`, rationales are still swapped example by example, but T uses the cluster-robust standard error. Groups
    must be independent. The level is no longer exact, because a swap does not reproduce dependence within a group. It
    holds nearly for about twenty or more groups of similar size, where T has nearly the same distribution either way.
    A single group has p = 1, or nearly.
    """
    [found] = mean_tests([families], rng=lambda: rng, n_draws=n_draws, groups=groups)
    return found


def mean_tests(
    several: Sequence[Families | Sequence[Draws]], *, rng: Callable[[], Rng], n_draws: int = 9999, groups: Groups = None
) -> list[MeanTest]:
    """Return `mean_test` of several configurations of the same examples, each with its own generator.

    Families of the same sizes have the same draws, which are made once. `rng` must return a new generator in the same
    state at every call.
    """
    if n_draws < 1:
        raise DataError(f"need at least one draw, got n_draws={n_draws}")
    alike: dict[bytes, list[tuple[int, _Table]]] = {}
    for place, families in enumerate(several):
        table = _Table.of(families)
        alike.setdefault(table.lengths.tobytes(), []).append((place, table))
    found: dict[int, MeanTest] = {}
    for placed in alike.values():
        lengths, draws = placed[0][1].lengths, rng()
        grouping, starts = grouping_of(groups, n=lengths.size), np.cumsum(lengths) - lengths
        sizes = list(_values.batches(n_draws, width=lengths.size))
        advantages, null = np.empty((sizes[0], lengths.size)), list[list[Draws]]([] for _ in placed)
        for n in sizes:
            chosen = starts + draws.integers(0, lengths, size=(n, lengths.size))
            for (_, table), statistics in zip(placed, null, strict=True):
                statistics.append(_studentized(table.advantages(chosen, advantages[:n]), grouping))
        for (place, table), own in zip(placed, null, strict=True):
            observed = _studentized(table.advantages(starts[None], advantages[:1]), grouping)
            found[place] = MeanTest.of(float(observed[0]), np.abs(np.concatenate(own)))
    return [found[place] for place in range(len(several))]


@dataclass(frozen=True, eq=False)
class _Table:
    """Concatenated families, so that a swap is one index."""

    members: NDArray[Any]
    lengths: Counts
    are_counts: bool
    """True for twice the number of members that each one beats, False for win rates."""

    @classmethod
    def of(cls, families: Families | Sequence[Draws]) -> "_Table":
        if isinstance(families, Families):
            table = cls(families.beaten, families.sizes[families.sizes > 0].astype(np.int64), True)
        else:
            sizes = np.array([np.size(family) for family in families], dtype=np.int64)
            if not sizes.all():
                raise DataError("need a vector with at least one win rate, got an array of shape (0,)")
            rates = np.concatenate([np.zeros(0), *families])
            if rates.size:
                _values.rates_vector(rates, what="win rate", hint="; pass member_win_rates")
            table = cls(rates, sizes, False)
        if not len(table.lengths):
            raise DataError("need the win rates of at least one example, got none")
        return table

    def advantages(self, places: Counts, out: Draws) -> Draws:
        """Return the win rates of some members minus one half, (draws, examples)."""
        np.divide(np.take(self.members, places), 2.0 * (self.lengths - 1) if self.are_counts else 1.0, out=out)
        out -= CHANCE
        return out


class StepDown(NamedTuple):
    """Several tests, adjusted for their number."""

    p_values: tuple[float, ...]
    """The probability of any false rejection is at most alpha where values of at most alpha are rejected."""
    alpha: float
    """Level at which each single test or interval errs so rarely that all of them hold together in 95 %."""


def step_down(tests: Sequence[MeanTest], keys: Sequence[Hashable], *, rng: Rng, level: float = 0.95) -> StepDown:
    """Adjust several tests of the same examples by Westfall and Young's (1993) step-down minimum of p-values.

    Tests with the same key swap the same sets, as an attribution under several operators does: their statistics are
    compared draw by draw, which accounts for what they have in common. Tests with different keys are
    combined as if they were independent, by shuffling their draws: for two-sided tests this is conservative under any
    correlation (Sidak, 1967).
    """
    orders: dict[Hashable, Counts] = {}
    ranks = []
    for test, key in zip(tests, keys, strict=True):
        order = orders.setdefault(key, rng.permutation(test.n_draws))
        # The observed statistic is one more draw, as in its own p-value. Without it, no draw of the other tests would
        # reach the p-value of a test that exceeds all of its draws. Tied draws have the same p-value.
        ascending = np.sort(np.append(test.null, abs(test.statistic)))
        slack = ROUND_OFF * ascending.max(initial=0.0, where=np.isfinite(ascending))
        above = ascending.size - np.searchsorted(ascending, test.null - slack, side="left")
        ranks.append((above / ascending.size)[order])
    smallest, n_draws = np.full(tests[0].n_draws, np.inf), tests[0].n_draws
    found, in_order = np.empty(len(tests)), np.argsort([test.p_value for test in tests], kind="stable")
    for place in in_order[::-1]:
        np.minimum(smallest, ranks[place], out=smallest)
        found[place] = (1 + np.count_nonzero(smallest <= tests[place].p_value + ROUND_OFF)) / (n_draws + 1)
    found[in_order] = np.maximum.accumulate(found[in_order])
    return StepDown(tuple(found.tolist()), min(1 - level, float(np.quantile(smallest, 1 - level, method="lower"))))


def _studentized(advantages: Draws, grouping: Grouping) -> Draws:
    """Return T of each row of advantages, (draws, examples)."""
    if grouping.order is not None:
        return _studentized_by_deviations(advantages, grouping)
    n = advantages.shape[1]
    squares, mean = (advantages[:, None] @ advantages[:, :, None]).ravel(), advantages @ np.ones(n) / n
    variance = squares - n * mean**2
    # Where the mean is most of the squares, round-off is much of their difference.
    rough = variance <= _LEAST_SPREAD * squares
    statistics = mean / np.sqrt(np.where(rough, 1.0, variance) / max(n - 1, 1) / n)
    if rough.any():
        statistics[rough] = _studentized_by_deviations(advantages[rough], grouping)
    return np.where(np.abs(mean) <= ROUND_OFF, 0.0, statistics)


def _studentized_by_deviations(advantages: Draws, grouping: Grouping) -> Draws:
    """Return T of each row; without spread it is 0 at a mean of one half and infinite elsewhere."""
    mean = advantages.mean(axis=1)
    error = grouping.standard_errors(advantages - mean[:, None])
    # Win rates are fractions of 1, so round-off is measured against 1.
    distance = np.where(np.abs(mean) <= ROUND_OFF, 0.0, mean)
    without_spread = np.where(distance == 0.0, 0.0, np.copysign(np.inf, distance))
    statistics: Draws = np.divide(distance, error, out=without_spread, where=error > ROUND_OFF)
    return statistics


# --- discoveries and adjusted p-values ------------------------------------------------------------------------------

_LAMBDA = 0.5  # p-values above it are taken to be null ones
_CONFIDENCE = 0.95


class SignificantRate(NamedTuple):
    """Share of examples that Benjamini-Hochberg rejects."""

    rate: float | None
    """None if the number of random sets made a rejection impossible, so that 0 would mislead."""
    reason: str | None
    """Reason why `rate` is None."""
    floor_share: float
    """Share of examples that must reach the smallest possible p-value before any is rejected."""


class NonnullShare(NamedTuple):
    """Estimated share of examples whose rationale beats random sets."""

    share: float
    low: float
    """One-sided 95 % lower bound."""


def significant(p_values: Values, *, alpha: float = 0.10) -> Mask:
    """Return a mask of the p-values that Benjamini-Hochberg rejects at false-discovery rate `alpha`."""
    if not 0 < alpha < 1:
        raise DataError(f"a false-discovery rate lies between 0 and 1, got {alpha}; 0.10 is usual")
    # p-values of a permutation test are on a grid that can meet alpha exactly.
    return np.asarray(adjusted_fdr(p_values) <= alpha * (1 + ROUND_OFF))


def adjusted(p_values: Values) -> Values:
    """Return p-values of several tests, adjusted for their number by Holm (1979).

    An adjusted value of at most `alpha` is a rejection, and the probability of any false one is at most `alpha`, under
    any dependence. `step_down` is sharper where the draws of the tests are known.
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    result: Values = np.empty_like(p)
    result[order] = np.minimum(raised, 1.0)
    return result


def adjusted_fdr(p_values: Values) -> Values:
    """Return p-values of several tests, adjusted for their number by Benjamini & Hochberg (1995).

    An adjusted value of at most `alpha` is a rejection, and of all rejections a share of at most `alpha` is expected to
    be false, if the tests are independent or positively dependent.
    """
    return np.asarray(false_discovery_control(_checked(p_values)), dtype=np.float64)


def adjusted_known(p_values: Sequence[float | None], *, fdr: bool = False) -> list[float | None]:
    """Return p-values by `adjusted` or, with `fdr`, by `adjusted_fdr`; a None is not counted and remains None."""
    known, adjust = [value for value in p_values if value is not None], adjusted_fdr if fdr else adjusted
    found = iter(adjust(np.array(known)).tolist() if known else ())
    return [None if value is None else next(found) for value in p_values]


def significant_rate(p_values: Values, *, floor: float, alpha: float = 0.10) -> SignificantRate:
    """Return the share of rejected examples, or the reason why none could be rejected.

    No p-value is smaller than `floor`, 1 / (M + 1). Benjamini-Hochberg rejects j of N examples only if their p-values
    are at most `alpha * j / N`, so fewer than a share `floor / alpha` of examples is never rejected, however strong
    their signal. Examples with fewer sets have a higher floor; the share needed is then larger than the one reported.
    Test each tail as a separate family.
    """
    if not 0 < floor <= 1:
        raise DataError(f"the smallest possible p-value lies in (0, 1], got {floor}; pass 1 / (M + 1)")
    rejected = significant(p_values, alpha=alpha)
    floor_share = floor / alpha
    if rejected.any():
        return SignificantRate(float(rejected.mean()), None, floor_share)
    if floor_share * rejected.size <= 1 + ROUND_OFF:  # a single example at the floor would have been rejected
        return SignificantRate(0.0, None, floor_share)
    return SignificantRate(None, _reason(floor=floor, alpha=alpha), floor_share)


def nonnull_share(p_values: Values, n_values: NDArray[np.int64]) -> NonnullShare:
    """Return Storey's estimate of the share of non-null examples, with lambda = 1/2, for discrete p-values of one tail.

    Under the null, p-value i is uniform on `1/n_i, 2/n_i, ..., 1` (`n_values`, n_i = M_i + 1), and exceeds 1/2 with a
    known probability, which is not 1/2 if n_i is odd. The null share is the observed count above 1/2 over the count
    expected if all were null. The bound uses the Clopper-Pearson upper limit of the observed count. Ties make null
    p-values larger, and both numbers smaller.
    """
    p = _checked(p_values)
    n = np.asarray(n_values)
    if n.shape != p.shape:
        raise DataError(f"need one number of possible values per p-value, got {n.size} for {p.size} p-values")
    if n.min() < 2:
        raise DataError(f"a p-value takes at least two values, got n_values as small as {n.min()}; skip such examples")
    expected = float(((n - n // 2) / n).sum())
    n_above = int(np.count_nonzero(p > _LAMBDA))
    limit = binomtest(n_above, p.size, alternative="less").proportion_ci(_CONFIDENCE, method="exact").high
    null_shares = n_above / expected, float(limit) * p.size / expected
    return NonnullShare(*(1 - min(max(share, 0.0), 1.0) for share in null_shares))


def _reason(*, floor: float, alpha: float) -> str:
    share = f"{100 * floor / alpha:.1f} %"
    if floor > alpha * (1 + ROUND_OFF):
        needed = math.ceil(1 / alpha - ROUND_OFF) - 1
        return (
            f"the smallest possible p-value, {floor:.4g}, is above alpha = {alpha:g}: {share} of the examples would "
            f"have to reach it, so nothing can be rejected; at least {needed} random sets are needed"
        )
    return (
        f"the smallest possible p-value is {floor:.4g}, so at alpha = {alpha:g} nothing is rejected unless {share} of "
        "the examples reach it; more random sets lower that share"
    )


def _checked(p_values: Values) -> Values:
    p = finite_vector(p_values, what="p-value")
    if p.min() <= 0 or p.max() > 1:
        raise DataError(f"p-values lie in (0, 1], got values from {p.min()} to {p.max()}")
    return p
