"""Number of examples and random sets needed for a given precision, from the observed spread of win rates."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.errors import DataError
from ice_eval.stats._values import (
    ROUND_OFF,
    Groups,
    Mask,
    Values,
    check_level,
    finite_vector,
    grouping_of,
    rates_vector,
)
from ice_eval.stats.intervals import ENOUGH, effective_number, half_width, least_mean
from ice_eval.stats.randomization import CHANCE, Families, FillNoise

_FEW_GROUPS = 10
_FEWEST_EXAMPLES = 2  # one example has no standard error


@dataclass(frozen=True)
class Spread:
    """Variance of one example's win rate, `between + fills / F + within / M`.

    Functions that plan a number of sets take the number of fills F as given: `at(F)` counts their noise to `between`.
    """

    between: float
    """Variance of the true win rates between examples; at least 0."""
    within: float
    """Variance added by one random set, `w * (1 - w)` on average."""
    fills: float = 0.0
    """Variance added by one fill; 0 if none are drawn, or if a single one does not show it."""

    def __post_init__(self) -> None:
        if not all(0 <= value < math.inf for value in (self.between, self.within, self.fills)):  # NaN fails this too
            raise DataError(f"a variance is finite and not negative, got {self}")

    def at(self, n_fills: int) -> "Spread":
        """Return the spread with `n_fills` fills, their noise counted to `between`."""
        return Spread(self.between + self.fills / n_fills, self.within)

    def variance(self, m: float) -> float:
        """Return the variance of one example's win rate against `m` random sets."""
        if not m >= 1:
            raise DataError(f"need at least one random set, got m={m}")
        return self.between + self.within / m


def spread_of(
    win_rates: Values,
    m: int | NDArray[np.int64],
    *,
    exact: Mask | None = None,
    tie_rates: Values | None = None,
    noise: FillNoise | None = None,
    groups: Groups = None,
) -> Spread:
    """Return the variance of win rates, split into the parts of examples, fills and random sets.

    `within` is the mean of `(w (1 - w) - t / 4) m / (m - 1)`, t the share of ties, which count one half: unbiased for
    independent draws. `between` is the variance of the win rates minus the mean of each example's part of that over its
    m. Draws without replacement from few sets add less noise: `within` is then too large, and `between` too small. With
    `groups`, `between` makes `(between + within / M) / N` the variance of a mean of whole groups of such sizes.

    `exact` marks examples that were compared with all sets and have no sampling noise; others need m >= 2. With
    `noise`, of random sets distributed over fills, `within` is the variance between sets under one fill, and `fills` is
    the excess of the variance between fills. Examples with one set per fill cannot separate them.
    """
    rates = rates_vector(win_rates, what="win rate")
    if rates.size < _FEWEST_EXAMPLES:
        raise DataError("need the win rates of at least two examples to see a spread, got one")
    counts = _per_example(m, n=rates.size, what="number of random sets")
    sampled = ~_per_example(False if exact is None else exact, n=rates.size, what="exact flag").astype(np.bool_)
    if np.any(counts[sampled] < 2):
        raise DataError("need at least two random sets behind a win rate to see their spread, got one; flag it exact")
    ties = _per_example(0.0 if tie_rates is None else tie_rates, n=rates.size, what="tie rate")
    one_draw = np.maximum(rates * (1 - rates) - ties / 4, 0.0)
    within = np.where(sampled, one_draw * counts / np.maximum(counts - 1, 1), 0.0)
    grouping = grouping_of(groups, n=rates.size)
    # N times the variance of the mean; with too few groups, examples of a group count as copies.
    if grouping.order is not None and grouping.n < _FEW_GROUPS:
        variance = float(rates.var(ddof=1)) * float((grouping.counts**2).sum()) / rates.size
    else:
        variance = float(grouping.standard_errors((rates - rates.mean())[None])[0]) ** 2 * rates.size
    if noise is not None and (known := np.isfinite(noise.error) & np.isfinite(noise.within)).any():
        of_sets = float(noise.within[known].mean())
        excess = noise.error[known] - noise.within[known] / counts[known]
        of_fills = max(0.0, float((noise.n_fills[known] * excess).mean()))
        between = variance - float(noise.error[np.isfinite(noise.error)].mean())
        return Spread(between=max(0.0, between), within=of_sets, fills=of_fills)
    between = variance - float((within / np.maximum(counts, 1)).mean())
    return Spread(between=max(0.0, between), within=float(within.mean()))


def standard_error(spread: Spread, *, n: int, m: float) -> float:
    """Return the standard error of the mean win rate of `n` examples against `m` random sets each."""
    if n < 1:
        raise DataError(f"need at least one example, got n={n}")
    return math.sqrt(spread.variance(m) / n)


def cheapest_m(spread: Spread, *, cost_example: float, cost_set: float) -> float:
    """Return the number of random sets per example that minimises the standard error at a given total cost.

    An example costs `cost_example + M * cost_set`, so the cost of a standard error is proportional to `(cost_example +
    M * cost_set) * (between + within / M)`, which is smallest at `sqrt(within / between * cost_example / cost_set)`.
    The number is not rounded: infinite if examples do not differ, 0 if random sets add no noise.
    """
    if not (0 < cost_example < math.inf and 0 < cost_set < math.inf):
        raise DataError(f"costs are positive and finite, got cost_example={cost_example} and cost_set={cost_set}")
    if spread.within == 0:
        return 0.0
    if spread.between == 0:
        return math.inf
    return math.sqrt(spread.within / spread.between * cost_example / cost_set)


def m_for_width(spread: Spread, *, m: int, wider: float) -> int:
    """Return the smallest number of random sets, at most `m`, that widens the interval by at most a share `wider`."""
    if not wider >= 0:
        raise DataError(f"the share by which an interval may grow is not negative, got {wider}")
    allowed = (1 + wider) ** 2 * spread.variance(m) - spread.between
    if spread.within == 0:  # without noise of random sets any number of them will do
        return 1
    # Rounded up, unless only round-off put it above a whole number.
    return min(m, max(1, math.ceil(spread.within / allowed * (1 - ROUND_OFF))))


def n_for_width(spread: Spread, *, m: float, width: float, level: float = 0.95) -> int:
    """Return the smallest number of examples, at least two, whose interval is at most `width` wide in total."""
    if not width > 0:
        raise DataError(f"the width of an interval is positive, got {width}")
    check_level(level)
    allowed = width / 2 * (1 + ROUND_OFF)
    return _fewest(lambda n: half_width(n, level=level) * standard_error(spread, n=n, m=m) <= allowed)


def n_for_detectable(spread: Spread, *, m: float, win_rate: float) -> int:
    """Return the smallest number of examples, at least two, that detects the mean `win_rate` with power 80 %."""
    if not CHANCE < win_rate <= 1:
        raise DataError(f"a win rate to detect lies above 0.5 and at most at 1, got {win_rate}")
    return _fewest(lambda n: detectable(spread, n=n, m=m) <= win_rate * (1 + ROUND_OFF))


def detectable(spread: Spread, *, n: int, m: float) -> float:
    """Return the smallest mean win rate that `n` examples detect with power 80 %; see `detectable_win_rate`."""
    return max(least_mean(n), CHANCE + _errors_to_detect(n) * standard_error(spread, n=n, m=m))


def _errors_to_detect(n: float, anytime: bool = False) -> float:
    """Return how many standard errors above one half a mean win rate is distinguished from it with power 80 %."""
    power = 0.84
    if n >= ENOUGH:
        return half_width(n, anytime=anytime) + power
    # Of few examples, one of four gamblers must win 160 times the stake, and bets on a mean far from one half gain less
    # than in proportion (measured: power 75 to 97 % with 20 examples).
    return math.sqrt(2 * math.log(160)) + 12 / n + power


def detectable_win_rate(
    win_rates: Values, families: Families, *, groups: Groups = None, anytime: bool = False
) -> float:
    """Return the smallest mean win rate that these examples distinguish from chance with power 80 %.

    At that win rate the interval excludes one half. Win rates spread as those of the sets of each family do, or as the
    observed ones do if that is more. So a few win rates that happen to be equal do not make a data set precise. Above 1
    means that nothing can be distinguished.
    """
    rates = finite_vector(win_rates, what="win rate")
    grouping = grouping_of(groups, n=rates.size)
    observed = float(grouping.standard_errors((rates - rates.mean())[None])[0])
    random = math.sqrt(float(families.variances().sum())) / rates.size
    n = effective_number(groups, n=rates.size)
    return max(least_mean(n, anytime=anytime), CHANCE + _errors_to_detect(n, anytime) * max(observed, random))


def _fewest(is_enough: Callable[[int], bool]) -> int:
    """Return the smallest number of examples, at least two, that is enough."""
    # From `ENOUGH` on intervals are narrower; more is better on either side of it.
    few = bisect_left(range(ENOUGH), True, lo=_FEWEST_EXAMPLES, key=is_enough)
    if few < ENOUGH:
        return few
    most = ENOUGH
    while not is_enough(most):
        most *= 2
    return bisect_left(range(most), True, lo=ENOUGH, key=is_enough)


def _per_example(values: ArrayLike, *, n: int, what: str) -> Values:
    column = np.asarray(values, dtype=np.float64)
    if column.shape not in ((), (n,)):
        raise DataError(f"need one {what} per example, got an array of shape {column.shape} for {n} examples")
    return np.broadcast_to(column, (n,))
