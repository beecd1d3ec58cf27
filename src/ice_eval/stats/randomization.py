"""Randomization tests: a rationale against random sets of the same size, for one example and for a data set."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.stats import _values
from ice_eval.stats._values import ROUND_OFF, Grouping, Groups, Mask, Rng, finite_vector, grouping_of

Draws = NDArray[np.float64]  # (M,): one score per random set
Matrix = NDArray[np.float64]  # (examples, sets), padded with NaN where examples have fewer sets
Counts = NDArray[np.int64]  # (examples,)

CHANCE = 0.5
"""Mean win rate of a rationale that is no better than a random set."""
_LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class Comparison:
    """A rationale's score against its null."""

    observed: float
    null: Draws = field(repr=False, compare=False)
    win_rate: float
    """Share of the null that `observed` beats; ties count one half."""
    win_rate_strict: float
    """Share of the null that `observed` beats; ties count as lost."""
    tie_rate: float
    p_value: float
    """Upper tail: share of sets that do at least as well."""
    p_lower: float
    """Lower tail: share of sets that do at most as well."""

    @property
    def effect_size(self) -> float | None:
        return effect_size(self.observed, self.null)


def compare(observed: float, null: Draws) -> Comparison:
    """Compare `observed` with the scores of random sets of the same size, without the rationale's own.

    `p_value` is `(1 + #{null >= observed}) / (M + 1)`: the observed set counts as one draw, so the test is valid at any
    M and its value is never 0 (Phipson & Smyth, 2010). When `null` holds *all* other sets of that size, M + 1 is the
    number C of sets and the same formula is the exact test, `#{S : s_S >= s_observed} / C`, the observed set included.
    Ties are decided with a slack of 100 machine epsilons of the largest magnitude.
    """
    draws = _checked(observed, null)
    found = compare_all(np.array([observed], dtype=np.float64), draws[None], np.array([draws.size]))
    return Comparison(
        observed=float(observed), null=draws, **{name: float(value[0]) for name, value in vars(found).items()}
    )


@dataclass(frozen=True, eq=False)
class Comparisons:
    """`Comparison`s of many examples, as arrays of shape (examples,)."""

    win_rate: Draws
    win_rate_strict: Draws
    tie_rate: Draws
    p_value: Draws
    p_lower: Draws


def compare_all(observed: Draws | Matrix, null: Matrix, n: Counts) -> Comparisons:
    """Compare many rationales with their nulls, (examples, sets); see `compare`.

    `observed` is one score per rationale, (examples,), or one for each of its sets, (examples, sets): the score under
    the fill of that set. Rows of `null` are padded with NaN at the end; `n` >= 1 is the number of sets of each example.
    """
    beaten, better = won_and_lost(observed, null)
    below, above = np.count_nonzero(beaten, axis=1), np.count_nonzero(better, axis=1)
    return comparisons_of(below, above, n, p_value=(1 + n - below) / (n + 1), p_lower=(1 + n - above) / (n + 1))


def won_and_lost(observed: Draws | Matrix, null: Matrix) -> tuple[Mask, Mask]:
    """Return masks of the sets that a rationale beats and of those that beat it; see `compare_all`."""
    scores = per_set(observed, null)
    largest = np.where(np.isnan(null), 0.0, np.abs(null)).max(axis=1, initial=0.0)
    slack = ROUND_OFF * np.maximum(largest, np.where(np.isnan(scores), 0.0, np.abs(scores)).max(axis=1, initial=0.0))
    return null < scores - slack[:, None], null > scores + slack[:, None]


def per_set(observed: Draws | Matrix, null: Matrix) -> Matrix:
    """Return the rationale's score for each of its sets, (examples, sets)."""
    return observed if observed.ndim == 2 else np.broadcast_to(observed[:, None], null.shape)


def comparisons_of(below: Counts, above: Counts, n: Counts, *, p_value: Draws, p_lower: Draws) -> Comparisons:
    """Return comparisons from the number of sets that are beaten, that are better, and in all."""
    # One division of exact numbers: equal shares of families of different size are equal floats.
    tied = n - below - above
    return Comparisons((below + tied / 2) / n, below / n, tied / n, p_value, p_lower)


def upper_pvalue(observed: float, null: Draws) -> float:
    """Return the share of sets, the observed one included, that score at least `observed` (see `compare`)."""
    return compare(observed, null).p_value


def lower_pvalue(observed: float, null: Draws) -> float:
    """Return the share of sets, the observed one included, that score at most `observed` (see `compare`)."""
    return compare(observed, null).p_lower


def effect_size(observed: float, null: Draws) -> float | None:
    """Return the distance of `observed` from the mean of the null, in standard deviations of the null.

    The null is the population, not a sample of it: its variance is divided by M. None if the null has no spread.
    """
    draws = _checked(observed, null)
    found = float(effect_sizes(np.array([observed], dtype=np.float64), draws[None], np.array([draws.size]))[0])
    return None if np.isnan(found) else found


def effect_sizes(observed: Draws, null: Matrix, n: Counts) -> Draws:
    """Return the `effect_size` of every example, NaN if its null has no spread; arguments as in `compare_all`."""
    mean = null_means(null, n)
    return effect_sizes_of(observed - mean, null_means((null - mean[:, None]) ** 2, n), null)


def effect_sizes_of(effects: Draws, variances: Draws, null: Matrix) -> Draws:
    """Return effects in standard deviations; NaN where the variance is no more than round-off."""
    spread = np.sqrt(variances)
    varies = spread > ROUND_OFF * np.where(np.isnan(null), 0.0, np.abs(null)).max(axis=1, initial=0.0)
    sizes: Draws = np.divide(effects, spread, out=np.full(len(effects), np.nan), where=varies)
    return sizes


def null_means(null: Matrix, n: Counts) -> Draws:
    """Return the mean of each row, summed sequentially so that padding does not change it; see `compare_all`."""
    if not null.shape[1]:
        return np.full(len(n), np.nan)
    sums = np.cumsum(np.where(np.isnan(null), 0.0, null), axis=1)
    means: Draws = sums[np.arange(len(n)), n - 1] / n
    return means


def member_win_rates(values: Draws) -> Draws:
    """Return the win rate of each member of a scored family (the M + 1 sets of an example) against all the others.

    Entry 0 is `compare(values[0], values[1:]).win_rate`. Two members tie if they differ by at most the slack of the
    family. Ties are pairwise, as in `compare`: two members are never tied through a third.
    """
    scores = finite_vector(values, what="score")
    if scores.size < 2:
        raise DataError("need the scores of at least two sets to compare them with each other, got one")
    rates: Draws = all_member_win_rates(scores[None], np.array([scores.size]))[0]
    return rates


def all_member_win_rates(values: Matrix, n: Counts) -> Matrix:
    """Return `member_win_rates` of many families, (examples, members), padded with NaN at the end; `n` >= 2 members."""
    slack = ROUND_OFF * np.where(np.isnan(values), 0.0, np.abs(values)).max(axis=1, initial=0.0)
    order = np.argsort(values, axis=1)  # NaN comes last
    ordered = np.take_along_axis(values, order, axis=1)
    places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    # Neighbours within the slack form a run of ties.
    apart = np.diff(ordered, axis=1, prepend=-np.inf) > slack[:, None]
    first = np.maximum.accumulate(np.where(apart, places, 0), axis=1)
    ends = np.append(apart[:, 1:], np.ones((len(values), 1), dtype=bool), axis=1) | (places == n[:, None] - 1)
    last = np.minimum.accumulate(np.where(ends, places, values.shape[1])[:, ::-1], axis=1)[:, ::-1]
    below, above = first.astype(np.float64), n[:, None] - 1.0 - last
    # A run that is longer than the slack does not tie as a whole: its members are compared pair by pair.
    width = ordered - np.take_along_axis(ordered, first, axis=1)
    for row in np.flatnonzero((np.where(places < n[:, None], width, 0.0) > slack[:, None]).any(axis=1)):
        own = ordered[row, : n[row]]
        below[row, : n[row]] = np.searchsorted(own, own - slack[row], side="left")
        above[row, : n[row]] = n[row] - np.searchsorted(own, own + slack[row], side="right")
    others = n[:, None] - 1.0
    rates: Matrix = np.empty_like(values)
    np.put_along_axis(rates, order, (below + (others - below - above) / 2) / others, axis=1)
    rates[np.isnan(values)] = np.nan
    return rates


@dataclass(frozen=True, eq=False)
class Families:
    """Win rates of all scored sets of many examples, that of the rationale first.

    A member beats a whole number of half members of its family, so one or two bytes hold it.
    """

    beaten: NDArray[np.unsignedinteger[Any]]
    """Concatenated families: twice the number of members that each member beats, ties one half."""
    sizes: NDArray[np.integer[Any]]
    """Number of members of each family; 0 for examples without one."""

    @classmethod
    def of(cls, rates: Matrix, members: Counts, sizes: NDArray[np.integer[Any]]) -> "Families":
        """Return families from padded win rates, (families, members); `sizes` covers all examples, 0 for no family."""
        inside = np.arange(rates.shape[1]) < members[:, None]
        twice = np.rint(2 * (members[:, None] - 1) * rates)[inside]
        return cls(twice.astype(np.min_scalar_type(int(twice.max(initial=0)))), sizes)

    def select(self, chosen: Mask) -> "Families":
        return Families(self.beaten[np.repeat(chosen, self.sizes)], self.sizes[chosen])

    def variances(self) -> Draws:
        """Return the variance of the win rates of each non-empty family, about one half."""
        sizes = self.sizes[self.sizes > 0].astype(np.int64)
        squares = (self.beaten.astype(np.float64) / np.repeat(2.0 * (sizes - 1), sizes) - CHANCE) ** 2
        means: Draws = np.add.reduceat(squares, np.cumsum(sizes) - sizes) / sizes if sizes.size else np.zeros(0)
        return means

    def rates(self) -> list[Draws]:
        """Return the win rates of each non-empty family."""
        ends = np.cumsum(self.sizes)
        rates = self.beaten.astype(np.float64) / 2 / np.repeat(self.sizes - 1, self.sizes)
        return [rates[end - size : end] for end, size in zip(ends, self.sizes, strict=True) if size]


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


def mean_test(
    families: Sequence[Draws], *, rng: Rng, n_draws: int = 9999, batch: int | None = None, groups: Groups = None
) -> MeanTest:
    """Run a two-sided studentized randomization test of "the mean win rate is one half".

    `families` holds `member_win_rates` of each example, the rationale first. Under the null, a rationale could have
    been any member of its family. In each draw, every example's rationale is swapped for a uniformly chosen member of
    its own family, and `T = (mean - 1/2) / (sd / sqrt(N))` of the observed rationales is compared with T of the draws.
    The observed one counts as a draw: the p-value is never 0, and the test holds its level at every N and M, with ties
    and unequal families too. `batch` bounds the memory and changes no number.

    With `groups`, rationales are still swapped example by example, but T uses the cluster-robust standard error. Groups
    must be independent. The level is no longer exact, because a swap does not reproduce dependence within a group: it
    requires that T has nearly the same distribution either way, as it does for about twenty or more groups of similar
    size. A single group has p = 1, or nearly.
    """
    [found] = mean_tests([families], rng=lambda: rng, n_draws=n_draws, batch=batch, groups=groups)
    return found


def mean_tests(
    several: Sequence[Families | Sequence[Draws]],
    *,
    rng: Callable[[], Rng],
    n_draws: int = 9999,
    batch: int | None = None,
    groups: Groups = None,
) -> list[MeanTest]:
    """Return `mean_test` of several configurations of the same examples, each with its own generator.

    Families of the same sizes have the same draws, which are made once. `rng` must return a new generator in the same
    state at every call.
    """
    if n_draws < 1:
        raise DataError(f"need at least one draw, got n_draws={n_draws}")
    alike: dict[bytes, list[int]] = {}
    tables: list[_Table] = []
    for place, families in enumerate(several):
        table = _Table.of(families)
        together = alike.setdefault(table.lengths.tobytes(), [])
        if together and np.array_equal(table.unit, tables[together[0]].unit):  # one copy is enough for all
            table = replace(table, lengths=tables[together[0]].lengths, unit=tables[together[0]].unit)
        tables.append(table)
        together.append(place)
    found: dict[int, MeanTest] = {}
    for places in alike.values():
        own_tables = [tables[place] for place in places]
        grouping = grouping_of(groups, n=own_tables[0].lengths.size)
        null = _swapped_statistics(own_tables, grouping, rng=rng(), n_draws=n_draws, batch=batch)
        for place, table, own in zip(places, own_tables, null, strict=True):
            observed = table.advantages(table.starts[None], np.empty((1, len(table.lengths))))
            found[place] = MeanTest.of(float(_studentized(observed, grouping)[0]), np.abs(own))
    return [found[place] for place in range(len(several))]


@dataclass(frozen=True, eq=False)
class _Table:
    """Concatenated families, so that a swap is one index."""

    members: NDArray[Any]
    lengths: Counts
    unit: Draws
    """Value of a win rate of 1 in the table, for each family."""

    @classmethod
    def of(cls, families: Families | Sequence[Draws]) -> "_Table":
        if isinstance(families, Families):
            has_members = families.sizes > 0
            sizes = families.sizes[has_members].astype(np.int64)
            table = cls(families.beaten, sizes, np.multiply(2.0, sizes - 1, dtype=np.float64))
        else:
            sizes = np.array([np.size(family) for family in families], dtype=np.int64)
            if not sizes.all():
                raise DataError("need a vector with at least one win rate, got an array of shape (0,)")
            rates = np.concatenate([np.zeros(0), *families])
            if rates.size:
                _values.rates_vector(rates, what="win rate", hint="; pass member_win_rates")
            table = cls(rates, sizes, np.ones(len(sizes)))
        if not len(sizes):
            raise DataError("need the win rates of at least one example, got none")
        return table

    def advantages(self, places: Counts, out: Draws) -> Draws:
        """Return the win rates of some members minus one half, (draws, examples)."""
        np.divide(np.take(self.members, places), self.unit, out=out)
        out -= CHANCE
        return out

    @property
    def starts(self) -> Counts:
        return np.cumsum(self.lengths) - self.lengths


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


def _swapped_statistics(
    tables: Sequence[_Table], grouping: Grouping, *, rng: Rng, n_draws: int, batch: int | None
) -> list[Draws]:
    """Return T of each draw, for tables of the same lengths."""
    lengths, starts = tables[0].lengths, tables[0].starts
    sizes = list(_values.batches(n_draws, width=lengths.size, batch=batch))
    numbers = _values.IntegersBelow(rng, lengths, most_rows=sizes[0])
    advantages = np.empty((sizes[0], lengths.size))
    found: list[list[Draws]] = [[] for _ in tables]
    for n in sizes:
        chosen = numbers.draw(n)
        chosen += starts
        for table, statistics in zip(tables, found, strict=True):
            statistics.append(_studentized(table.advantages(chosen, advantages[:n]), grouping))
    return [np.concatenate(own) for own in found]


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


def _checked(observed: float, null: Draws) -> Draws:
    if not np.isfinite(observed):
        raise DataError(f"need a finite observed score, got {observed}")
    return finite_vector(null, what="null score")
