r"""Confidence intervals of means of bounded values, from bets against every candidate mean.

A gambler who doubts that the mean is m starts with 1 and stakes a share c of what can be lost on every value x in
[0, 1]. Each value multiplies the wealth by `1 + c (x / m - 1)`, which is 1 on average if m is the mean. A mean against
which much wealth is won is excluded:

- Below `ENOUGH` examples, the wealth of four gamblers (c = 1/4, 1/2, 3/4, 1) is averaged, and m is excluded at
  2 / alpha. By Ville's inequality the interval covers with probability 1 - alpha at every N and for every distribution
  (Waudby-Smith & Ramdas, 2024). It covers at all N at once, so that one may look as often as one likes (`anytime`).
- From there on, the best c in hindsight is taken, which is the empirical likelihood ratio over [0, 1]. A mean m is
  excluded at the critical value of a squared t. The interval is as wide as a BCa interval, without resampling.

Every factor rises with x, so both limits rise if any value is raised. Equal values need no rule of their own.
"""

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit
from scipy.stats import t as student

from ice_eval.errors import DataError
from ice_eval.stats._values import (
    ROUND_OFF,
    Groups,
    Rng,
    Values,
    check_level,
    finite_vector,
    grouping_of,
    paired_vectors,
    resampled_means,
)

ENOUGH = 50
"""Number of examples (or of equal groups) from which on an interval may be approximate."""
_BETS = np.array([1.0, 0.75, 0.5, 0.25])
_ALL_BETS, _STRIDE = 2.0 ** (-np.arange(96) / 8), 8
_PER_FREEDOM = 3.0
"""Expected distance to the end of the scale, in examples, that counts as one degree of freedom.

The skewness of a mean depends on how many values are far from it. Values that are mostly near one end may hide a few at
the other, of which n (1 - m) are expected for 0 and 1. Chosen by simulation (`benchmarks/calibration.py`).
"""
_SMALLEST = 1e-12

Scale = tuple[float, float]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def mean_interval(
    values: Values, *, groups: Groups = None, level: float = 0.95, scale: Scale = (0.0, 1.0), anytime: bool = False
) -> Interval:
    """Return a confidence interval of the mean of values on a bounded scale, one per example.

    With `groups`, whole groups are the independent values, weighted by their sizes. Unequal groups count as fewer:
    `(sum n)^2 / sum n^2`. With `anytime`, intervals of a growing sample cover all at once.
    """
    check_level(level)
    low, high = scale
    sample = _Sample.of(values, groups, scale)
    limits = [_lower_limit(side, level=level, anytime=anytime) for side in (sample, sample.mirrored())]
    return Interval(low + (high - low) * limits[0], low + (high - low) * (1 - limits[1]))


def percentile_interval(values: Values, *, rng: Rng, n_resamples: int = 200, groups: Groups = None) -> Interval:
    """Return the 95 % percentile interval of a mean, as in the paper; groups are resampled whole."""
    means = resampled_means(finite_vector(values, what="value"), rng=rng, n_resamples=n_resamples, groups=groups)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(low), float(high))


def half_width(n: float, *, level: float = 0.95, anytime: bool = False) -> float:
    """Return about how many standard errors a `mean_interval` near one half reaches to either side."""
    critical = math.log(2 / (1 - level))
    if anytime or n < ENOUGH:
        return math.sqrt(2 * (critical + math.log(2)))  # the best of four gamblers has twice their average
    return min(math.sqrt(2 * critical), float(stdtrit(_freedom(n, 0.5), (1 + level) / 2)))


def least_mean(n: float, *, anytime: bool = False) -> float:
    """Return the smallest value above one half that excludes one half if all of `n` values equal it."""
    if anytime or n < ENOUGH:
        return float(brentq(lambda value: float(np.mean((1 + _BETS * (2 * value - 1)) ** n)) - 40, 0.5, 40.0))
    return 0.5 * math.exp(half_width(n) ** 2 / 2 / n)


def effective_number(groups: Groups, *, n: int) -> float:
    """Return the number of equal groups that are as informative as these groups of `n` examples."""
    sizes = grouping_of(groups, n=n).counts.astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if n else 0.0


def mean_pvalue(
    values: Values, mean: float, *, groups: Groups = None, scale: Scale = (0.0, 1.0), anytime: bool = False
) -> float:
    """Return the two-sided p-value of a mean: the smallest alpha at which the `mean_interval` excludes it."""
    sample, (low, high) = _Sample.of(values, groups, scale), scale
    target = (mean - low) / (high - low)
    if sample.mean < target:
        sample, target = sample.mirrored(), 1 - target
    if not ROUND_OFF < target:
        return 1.0 if sample.mean <= ROUND_OFF else 0.0  # a mean of 0 allows no other value
    mixed = anytime or sample.n < ENOUGH
    wealth = _log_wealth(sample, target, mixed=mixed)
    p_value = 2 * math.exp(-max(wealth, 0.0))
    if not mixed:
        p_value = min(p_value, 2 * float(stdtr(_freedom(sample.n, target), -math.sqrt(2 * max(wealth, 0.0)))))
    return min(max(p_value, sys.float_info.min), 1.0)  # small, never 0: it underflows at tens of thousands of examples


@dataclass(frozen=True)
class Difference:
    """`mean(second) - mean(first)`, with interval and test."""

    difference: float
    interval: Interval | None
    """95 %; None if undefined: a single example or group, or no spread."""
    p_value: float | None
    """Two-sided test of no difference; None if undefined."""


def paired_difference(
    first: Values, second: Values, *, groups: Groups = None, level: float = 0.95, anytime: bool = False
) -> Difference:
    """Return the mean difference of rates in [0, 1] over the same examples, with interval and test.

    Differences lie in [-1, 1]. Interval and p-value belong together (`mean_pvalue`), and hold their level for skewed
    differences too.
    """
    left, right = paired_vectors(first, second)
    differences: Values = right - left
    scale = (-1.0, 1.0)
    interval = mean_interval(differences, groups=groups, scale=scale, level=level, anytime=anytime)
    p_value = mean_pvalue(differences, 0.0, groups=groups, scale=scale, anytime=anytime)
    return Difference(float(differences.mean()), interval, p_value)


def unbounded_interval(values: Values, *, groups: Groups = None) -> Interval | None:
    """Return the 95 % interval of Student's t for the mean of values without a scale, as losses; None without spread.

    With groups, the standard error is cluster-robust and degrees of freedom count groups.
    """
    mean, error, n = _standard_error(values, groups)
    if n < 2 or error <= ROUND_OFF * max(1.0, abs(mean)):
        return None
    reach = float(student.ppf(0.975, n - 1)) * error
    return Interval(mean - reach, mean + reach)


def unpaired_difference(
    first: Values, second: Values, *, first_groups: Groups = None, second_groups: Groups = None
) -> Difference:
    """Return the difference of the means of different examples, with Welch's interval and t-test.

    With groups, standard errors are cluster-robust and degrees of freedom count groups.
    """
    sides = [_standard_error(first, first_groups), _standard_error(second, second_groups)]
    difference = sides[1][0] - sides[0][0]
    squares, counts = [error**2 for _, error, _ in sides], [n for _, _, n in sides]
    error = math.sqrt(sum(squares))
    if min(counts) < 2 or error <= ROUND_OFF:
        return Difference(difference, None, None)
    freedom = sum(squares) ** 2 / sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    low, high = (difference + error * float(student.ppf(tail, freedom)) for tail in (0.025, 0.975))
    return Difference(difference, Interval(low, high), float(2 * student.sf(abs(difference) / error, freedom)))


def difference_limits(first: float, first_ci: Interval, second: float, second_ci: Interval) -> Interval:
    """Return limits of `first - second` from the limits of each (Zou & Donner, 2008).

    They suppose independent estimates, so those of the same examples, whose errors mostly go together, get wider ones.
    """
    down = math.hypot(first - first_ci.low, second_ci.high - second)
    up = math.hypot(first_ci.high - first, second - second_ci.low)
    return Interval(first - second - down, first - second + up)


def _standard_error(values: Values, groups: Groups) -> tuple[float, float, int]:
    """Return mean, standard error and number of groups."""
    sample = finite_vector(values, what="value")
    grouping = grouping_of(groups, n=sample.size)
    return float(sample.mean()), float(grouping.standard_errors((sample - sample.mean())[None])[0]), grouping.n


@dataclass(frozen=True, eq=False)
class _Sample:
    """Distinct means of groups on [0, 1], each with its weight and how often it occurs."""

    values: Values
    weights: Values
    """Size of a group over that of the largest."""
    counts: Values
    mean: float
    n: float
    """Number of groups, or of equal ones that are as informative."""

    @classmethod
    def of(cls, values: Values, groups: Groups, scale: Scale) -> "_Sample":
        values = (finite_vector(values, what="value") - scale[0]) / (scale[1] - scale[0])
        if values.min() < -ROUND_OFF or values.max() > 1 + ROUND_OFF:
            raise DataError("need values on the scale of their mean; win rates and other rates lie in [0, 1]")
        rates = np.clip(values, 0.0, 1.0)
        grouping = grouping_of(groups, n=rates.size)
        sizes = grouping.counts.astype(np.float64)
        # Pairs as complex numbers, which sort by their real part first: ten times as fast as columns.
        pairs = grouping.sums(rates) / sizes + 1j * (sizes / sizes.max())
        distinct, counts = np.unique(pairs, return_counts=True)
        n = effective_number(groups, n=rates.size)
        return cls(distinct.real, distinct.imag, counts.astype(np.float64), float(rates.mean()), n)

    def mirrored(self) -> "_Sample":
        return _Sample(1 - self.values, self.weights, self.counts, 1 - self.mean, self.n)


def _lower_limit(sample: _Sample, *, level: float, anytime: bool) -> float:
    """Return the smallest mean that the sample does not exclude."""
    mixed = anytime or sample.n < ENOUGH

    def excess(mean: float) -> float:
        """Return the log-wealth won against a mean, less that which excludes it; falls with the mean."""
        critical = math.log(2 / (1 - level))
        if not mixed:
            critical = min(float(stdtrit(_freedom(sample.n, mean), (1 + level) / 2)) ** 2 / 2, critical)
        return _log_wealth(sample, mean, mixed=mixed) - critical

    if sample.mean <= _SMALLEST or excess(_SMALLEST) <= 0:
        return 0.0
    if excess(sample.mean) >= 0:  # by round-off alone
        return sample.mean
    return float(brentq(excess, _SMALLEST, sample.mean, xtol=1e-12))


def _freedom(n: float, mean: float) -> float:
    return max(n * (1 - mean) / _PER_FREEDOM, _SMALLEST)


def _log_wealth(sample: _Sample, mean: float, *, mixed: bool) -> float:
    gains = sample.weights * (sample.values / mean - 1)

    def won(bets: Values) -> Values:
        with np.errstate(divide="ignore"):  # who stakes all may lose all
            wealth: Values = np.log1p(np.multiply.outer(bets, gains)) @ sample.counts
        return wealth

    if mixed:
        # As `scipy.special.logsumexp`, whose checks would take most of the time of an interval.
        wealth = won(_BETS)
        most, is_most = wealth.max(), wealth == wealth.max()
        n_most, others = np.count_nonzero(is_most), np.exp(np.where(is_most, -np.inf, wealth) - most).sum()
        return float(np.log1p(others / n_most) + np.log(n_most) + most - math.log(len(_BETS)))
    # Log-wealth is concave in the bet, so the best one is next to the best of every eighth.
    near = _STRIDE * int(np.argmax(won(_ALL_BETS[::_STRIDE])))
    return float(won(_ALL_BETS[max(0, near - _STRIDE) : near + _STRIDE]).max())
