"""Checks of intervals, words and comparisons on simulated win rates, whose means are known."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.selftest.checks import About, Check, at_least, at_most, measured

Rates = NDArray[np.float64]
Rng = np.random.Generator

M = 50
MEAN = 0.6
"""Mean of all simulated win rates: the limit above which an explanation is faithful."""
SIZES = (5, 10, 25, 100)
_ONE_SIDE, _BOTH_SIDES = 0.025, 0.05


def benign(rng: Rng, n: int) -> Rates:
    """Return win rates that are spread over the whole scale."""
    return rng.binomial(M, rng.beta(1.2, 0.8, size=n)) / M


def skewed(rng: Rng, n: int) -> Rates:
    """Return win rates of which one in ten is 0."""
    return np.where(rng.random(n) < 0.1, 0.0, rng.binomial(M, rng.beta(20, 10, size=n)) / M)


def tied(rng: Rng, n: int) -> Rates:
    """Return win rates of which most are one half, as where most sets tie."""
    return np.where(rng.random(n) < 0.2, 1.0, 0.5)


_RATES: dict[str, Callable[[Rng, int], Rates]] = {"benign": benign, "skewed": skewed, "tied": tied}


def simulated(n_data_sets: int, *, rng: Rng) -> Iterator[Check]:
    """Check error rates over simulated data sets, each with its nominal rate."""
    for name, draw in _RATES.items():
        about = About("simulated", "any operator", "any direction", f"{name} win rates")
        for size in SIZES:
            samples = [draw(rng, size) for _ in range(n_data_sets)]
            covers = np.array([stats.mean_pvalue(sample, MEAN) > _BOTH_SIDES for sample in samples])
            yield at_least(f"95 % interval of {size} examples covers the mean", about, covers, 1 - _BOTH_SIDES)
            # An interval that covers the limit allows no such word.
            said = np.array(
                [not covered and _is_called_faithful(each) for each, covered in zip(samples, covers, strict=True)]
            )
            yield at_most(f"{size} examples with a mean of 60 % are called faithful", about, said, _ONE_SIDE)
    yield from _random(n_data_sets, rng)
    yield from _fills(n_data_sets, rng)
    yield from _groups(n_data_sets, rng)
    yield from _differences(n_data_sets, rng)
    yield from _capacities(n_data_sets, rng)


def _is_called_faithful(rates: Rates) -> bool:
    return stats.verdict(stats.mean_interval(rates)).word == "faithful"


def _random(n_data_sets: int, rng: Rng) -> Iterator[Check]:
    """Check the effect of random explanations, `2 win - 1`: it is 0, whatever the null looks like."""
    about = About("simulated", "any operator", "any direction", "random")
    for size in SIZES:
        rates = rng.integers(0, M + 1, size=(n_data_sets, size)) / M
        covers = np.array([stats.mean_pvalue(row, stats.CHANCE) > _BOTH_SIDES for row in rates])
        yield at_least(f"interval of the effect of {size} examples covers 0", about, covers, 1 - _BOTH_SIDES)


def _fills(n_data_sets: int, rng: Rng) -> Iterator[Check]:
    """Check random explanations under ten fills, where a set is scored under one fill and the explanation under all."""
    for name, share in (("little", 0.3), ("mostly", 0.7)):
        about = About("simulated", "infill", "any direction", f"random, scores {name} by fills")
        for size in (5, 25):
            shape = n_data_sets * size, M
            fills = np.arange(M) % 10
            # What a set is worth without fills, and how much each fill moves it.
            own = np.sqrt(1 - share) * rng.normal(size=(shape[0], 1)) + np.sqrt(share) * rng.normal(size=(shape[0], 10))
            null = rng.normal(size=shape)
            found = stats.compare_all(own[:, fills], null, np.full(shape[0], M))
            rates = found.win_rate.reshape(n_data_sets, size)
            covers = np.array([stats.mean_pvalue(row, stats.CHANCE) > _BOTH_SIDES for row in rates])
            yield at_least(f"interval of {size} examples covers chance", about, covers, 1 - _BOTH_SIDES)
        yield at_most("p ≤ 0.05 on one example", about, found.p_value <= _BOTH_SIDES, _BOTH_SIDES)


def _groups(n_data_sets: int, rng: Rng) -> Iterator[Check]:
    about = About("simulated", "any operator", "any direction", "unequal groups")
    for n_groups in (6, 20, 60):
        covers = np.zeros(n_data_sets, dtype=bool)
        for index in range(n_data_sets):
            groups = np.repeat(np.arange(n_groups), rng.geometric(0.3, size=n_groups))
            values = rng.binomial(M, rng.beta(1.2, 0.8, size=n_groups)[groups]) / M
            covers[index] = stats.mean_pvalue(values, MEAN, groups=groups) > _BOTH_SIDES
        yield at_least(f"95 % interval of {n_groups} groups covers the mean", about, covers, 1 - _BOTH_SIDES)


def _differences(n_data_sets: int, rng: Rng) -> Iterator[Check]:
    """Check the gap of two operators and the comparison of two runs, where nine examples lose and one gains."""
    about = About("simulated", "two operators or runs", "any direction", "skewed differences")
    for size in SIZES:
        found = np.zeros(n_data_sets, dtype=bool)
        for index in range(n_data_sets):
            first = rng.uniform(0.3, 0.4, size=size)
            second = first + np.where(rng.random(size) < 0.1, 0.45, -0.05)
            found[index] = stats.mean_pvalue(second - first, 0.0, scale=(-1.0, 1.0)) <= _BOTH_SIDES
        yield at_most(f"a gap or difference of {size} examples is found, p ≤ 0.05", about, found, _BOTH_SIDES)


def _capacities(n_data_sets: int, rng: Rng) -> Iterator[Check]:
    """Measure the interval of the step-level reasoning capacity, a product of means, which is a bootstrap's."""
    about = About("simulated", "any operator", "both directions", "chains of thought")
    for size in (20, 100):
        covers = np.zeros(n_data_sets, dtype=bool)
        for index in range(n_data_sets):
            necessity, sufficiency = rng.binomial(20, rng.beta(3, 2, size=size)) / 20, rng.binomial(20, 0.3, size) / 20
            interval = stats.capacity(necessity, sufficiency, np.zeros(size), rng=rng, n_resamples=499).src_ci
            covers[index] = interval is not None and interval.low <= 0.6 * 0.7 <= interval.high
        yield measured(f"95 % interval of the capacity of {size} chains covers it", about, covers, "about 95%")
