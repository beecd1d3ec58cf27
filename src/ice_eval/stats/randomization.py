"""A rationale against random sets of the same size: all at once, under several fills, or one after the other."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Mask, finite_vector

Draws = NDArray[np.float64]  # (M,): one score per random set
Matrix = NDArray[np.float64]  # (examples, sets), padded with NaN where examples have fewer sets
Counts = NDArray[np.int64]  # (examples,)

CHANCE = 0.5
"""Mean win rate of a rationale that is no better than a random set."""


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
    slack = np.maximum(_slack(null), _slack(scores))[:, None]
    return null < scores - slack, null > scores + slack


def _slack(values: Matrix) -> Draws:
    """Return the distance within which values of a row are tied."""
    slack: Draws = ROUND_OFF * np.where(np.isnan(values), 0.0, np.abs(values)).max(axis=1, initial=0.0)
    return slack


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
    sizes: Draws = np.divide(effects, spread, out=np.full(len(effects), np.nan), where=spread > _slack(null))
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
    slack = _slack(values)
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


def _checked(observed: float, null: Draws) -> Draws:
    if not np.isfinite(observed):
        raise DataError(f"need a finite observed score, got {observed}")
    return finite_vector(null, what="null score")


# --- under several fills --------------------------------------------------------------------------------------------

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
    counts, means = _per_fill(won, fills)
    n_fills = np.count_nonzero(counts, axis=1)
    squares = ((counts * (means - rate[:, None])) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(n_fills > 1, n_fills / (n_fills - 1) * squares / n**2, np.nan)
        within = np.where(n > n_fills, _squares_within(won, fills, means) / (n - n_fills), np.nan)
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
    counts, means = _per_fill(null, fills)
    n_fills = np.count_nonzero(counts, axis=1)
    within = _squares_within(null, fills, means) / np.maximum(n - n_fills, 1) * (n - 1) / n
    variances = np.where(n >= 2 * n_fills, within, null_means((null - mean[:, None]) ** 2, n))
    return effect_sizes_of(null_means(np.where(np.isnan(null), np.nan, observed), n) - mean, variances, null)


def member_win_rates_by_fill(observed: Matrix, null: Matrix, n: Counts) -> Matrix:
    """Return win rates of the rationale and of each set, (examples, 1 + sets), against each other, for `mean_test`.

    Sets are compared by their difference to the rationale under the same fill, so that an offset of a fill does not
    matter. The first win rate is that over all fills.
    """
    # Ties are decided relative to the magnitude of scores, not of their differences.
    level = np.nanmax(np.abs(np.concatenate([observed, null], axis=1)), axis=1, keepdims=True)
    return all_member_win_rates(np.concatenate([level, level + (null - observed)], axis=1), n + 1)


def _per_fill(values: Matrix, fills: FillNumbers) -> tuple[NDArray[np.int64], Matrix]:
    """Return the number of sets under each fill and their mean, (examples, fills); 0 without a set."""
    shape, inside = (len(values), int(fills.max(initial=0)) + 1), ~np.isnan(values)
    cells = (np.arange(shape[0])[:, None] * shape[1] + fills)[inside]
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    sums = np.bincount(cells, values[inside], math.prod(shape)).reshape(shape)
    return counts, sums / np.maximum(counts, 1)


def _squares_within(values: Matrix, fills: FillNumbers, means: Matrix) -> Draws:
    """Return the sum of squared deviations from the mean of the fill."""
    deviations = values - np.take_along_axis(means, fills, axis=1)
    squares: Draws = np.where(np.isnan(values), 0.0, deviations**2).sum(axis=1)
    return squares


# --- one set after the other ----------------------------------------------------------------------------------------

STOP_AFTER = 10
"""Number h of random sets at least as good (or as bad) that stops a tail."""


@dataclass(frozen=True, eq=False)
class SequentialComparisons:
    """Comparisons with as much of each null as was needed, as arrays of shape (examples,)."""

    rates: Comparisons
    stopped: Mask
    """True if both tails have stopped; otherwise the numbers are right only for a stream that has ended."""
    n_upper: Counts
    """Number of draws that the upper tail used, its stopping draw included."""
    n_lower: Counts
    """Number of draws that the lower tail used."""
    n_used: Counts
    """The larger of the two."""
    n_rated: Counts
    """Number of draws behind the rates."""


def compare_all_sequentially(
    observed: Draws | Matrix, stream: Matrix, n: Counts, *, h: int = STOP_AFTER
) -> SequentialComparisons:
    """Compare rationales with random sets that are scored one after the other; arguments as in `compare_all`.

    Each tail stops at the draw that is the h-th (h >= 2) to do at least (at most) as well. Stopped at draw l, its
    p-value is `h / l`; at the end of the stream with g < h such draws it is `(g + 1) / (M + 1)`, as in `compare`. Both
    tails are valid at every h and M, with ties and with sets drawn without replacement too. The reason is that
    `p <= h / l` means that `observed` is among the h best of itself and the first l - 1 draws (Besag & Clifford, 1991,
    "Sequential Monte Carlo p-values"). A stream has ended if it holds M sets, or all other sets.

    The win rate is over the draws before the later of the two stops, *without* the stopping draw; over all draws if a
    tail ran to the end. The rule determines the last draw, so counting it would bias the win rate towards one half.
    Given the stop and the last draw, every order of the draws before it is equally likely. So their mean has the
    expectation of the first draw, and is unbiased (Girshick, Mosteller & Savage, 1946; Besag & Clifford, 1991). Draws
    after the stop never change a number.
    """
    # Pair by pair: a slack that grew with the largest draw so far could undo a tie, or a stop, that is already settled.
    scores = per_set(observed, stream)
    slack = ROUND_OFF * np.maximum(np.abs(stream), np.maximum(1.0, np.abs(scores)))
    at_least, at_most = stream >= scores - slack, stream <= scores + slack
    n_upper, upper_stopped, p_value = _tails(at_least, n, h=h)
    n_lower, lower_stopped, p_lower = _tails(at_most, n, h=h)
    n_used, stopped = np.maximum(n_upper, n_lower), upper_stopped & lower_stopped
    n_rated = np.where(stopped, n_used - 1, n_used)
    rated = np.arange(stream.shape[1]) < n_rated[:, None]
    below = np.count_nonzero(rated & ~at_least, axis=1)
    above = np.count_nonzero(rated & ~at_most, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # an empty stream has no rates
        rates = comparisons_of(below, above, n_rated, p_value=p_value, p_lower=p_lower)
    return SequentialComparisons(rates, stopped, n_upper, n_lower, n_used, n_rated)


def _tails(hits: Mask, n: Counts, *, h: int) -> tuple[Counts, Mask, Draws]:
    """Return the number of draws up to the h-th hit of each row, if there is one, and the p-value."""
    reached = np.cumsum(hits, axis=1) >= h
    stopped: Mask = np.any(reached, axis=1)
    stop = reached.argmax(axis=1) + 1 if hits.shape[1] else n
    p_value = np.where(stopped, h / np.maximum(stop, 1), (np.count_nonzero(hits, axis=1) + 1) / (n + 1))
    return np.where(stopped, stop, n), stopped, p_value
