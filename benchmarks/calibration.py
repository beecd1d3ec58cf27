"""Error rates, power and widths of the statistics, measured on simulated win rates whose truth is known.

    python benchmarks/calibration.py                              print all tables (about eight minutes on one core)
    python benchmarks/calibration.py --quick                      the same with a tenth of the data sets
    python benchmarks/calibration.py --write docs/calibration.md  write a page of the worst rates, and all as CSV

Each table compares the methods of `ice_eval.stats` (after) with those that they replaced (before). These were BCa
bootstrap intervals, a verdict from interval and test together, a sign-flip test of differences, Benjamini-Yekutieli,
and `1/2 + 2.80 SE` as detectable win rate. Exits with 1 if an error rate of `ice_eval.stats` is more than three Monte
Carlo standard errors above its nominal value. Every cell has its own seed, so rerunning changes no number.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import false_discovery_control

from ice_eval import stats

sys.path.insert(0, str(Path(__file__).parent))
from _former_methods import (
    ANTI,
    BETTER,
    FAITHFUL,
    LEVEL,
    NONE,
    TAIL,
    UNIFORM,
    WEAK,
    M,
    Ranks,
    Rng,
    Values,
    bca,
    old_ranks,
    randomization_pvalues,
    rng_of,
    signflip_pvalues,
    studentized,
)
from _rate_tables import Cell, Claim, Line, as_csv, overview

Sampler = Callable[[Rng, int, int], Values]
"""Draw (data sets, examples) from a distribution."""

SIZES = (5, 10, 20, 50, 100, 200, 500)
_SLACK = 1e-12


# Methods after


def p_values_of(samples: Values, truth: float, **settings: Any) -> Values:
    return np.array([stats.mean_pvalue(row, truth, **settings) for row in samples])


def sides_of(samples: Values, truth: float, **settings: Any) -> Ranks:
    """Return 1 where the interval is above the truth, -1 where below, else 0.

    An interval excludes a mean if and only if its p-value is at most 5 % (`agreement_of_intervals` checks it), and
    p-values are ten times as fast.
    """
    above = np.sign(samples.mean(axis=1) - truth).astype(np.int64)
    return np.where(p_values_of(samples, truth, **settings) <= LEVEL, above, 0)


def rank_of(values: Values) -> int:
    """Return the rank of the verdict on one data set, (examples,)."""
    return RANKS[stats.verdict(stats.mean_interval(values)).word]


RANKS = {
    "anti-faithful": ANTI,
    "undecidable": NONE,
    "not distinguishable from random": NONE,
    "random within ±5 pp": NONE,
    "better than random": BETTER,
    "weakly faithful": WEAK,
    "faithful": FAITHFUL,
}


# Simulated win rates


def _rates(rng: Rng, truths: Values) -> Values:
    """Return the observed win rates against M random sets each."""
    return rng.binomial(M, truths) / M


def benign(rng: Rng, n_sets: int, n: int) -> Values:
    return _rates(rng, rng.beta(1.2, 0.8, (n_sets, n)))


def narrow(rng: Rng, n_sets: int, n: int) -> Values:
    return _rates(rng, rng.beta(12, 8, (n_sets, n)))


def skewed(rng: Rng, n_sets: int, n: int) -> Values:
    return np.where(rng.random((n_sets, n)) < 0.1, 0.0, _rates(rng, rng.beta(20, 10, (n_sets, n))))


def tied(rng: Rng, n_sets: int, n: int) -> Values:
    return np.where(rng.random((n_sets, n)) < 0.6, 0.5, _rates(rng, rng.beta(3, 1, (n_sets, n))))


def ceiling(rng: Rng, n_sets: int, n: int) -> Values:
    return np.where(rng.random((n_sets, n)) < 0.05, 0.0, 1.0)


AT_60: dict[str, Sampler] = {
    "benign, Beta(1.2, 0.8)": benign,
    "narrow, Beta(12, 8)": narrow,
    "skewed, 10 % at 0": skewed,
    "60 % at one half": tied,
}
"""Distributions with a mean of 0.60."""
DISTRIBUTIONS: dict[str, tuple[Sampler, float]] = {
    **{name: (draw, 0.6) for name, draw in AT_60.items()},
    "ceiling, 95 % at 1, 5 % at 0": (ceiling, 0.95),
}


def beta_with_mean(rng: Rng, means: float | Values, shape: tuple[int, int]) -> Values:
    """Return win rates that spread as benign ones do, about any mean."""
    return _rates(rng, rng.beta(2 * np.asarray(means), 2 * (1 - np.asarray(means)), shape))


# Claims


@dataclass(frozen=True)
class Simulation:
    """How many data sets to simulate, relative to a full run, and of which sizes."""

    share: float = 1.0
    sizes: tuple[int, ...] = SIZES

    def n(self, full: int) -> int:
        return max(4, round(full * self.share))


@dataclass
class _Lines:
    """Lines of a table, filled cell by cell."""

    lines: dict[str, Line] = field(default_factory=dict)

    def add(self, case: str, size: int, before: Any, after: Any, *, n: int, **nominal: float) -> None:
        """Add the shares of true entries, or rates; None where there is none."""
        rates = [None if values is None else float(np.mean(values)) for values in (before, after)]
        self.lines.setdefault(case, Line(case, {}, **nominal)).cells[size] = Cell(*rates, n)

    def __call__(self) -> list[Line]:
        return list(self.lines.values())


@cache
def _sides_at_truth(name: str, n: int, n_sets: int) -> tuple[Ranks, Ranks, Values]:
    """Return sides of the truth before and after, and the p-values of the old test of one half."""
    draw, truth = DISTRIBUTIONS[name]
    rng = rng_of("truth", name, n)
    samples = draw(rng, n_sets, n)
    return bca(samples, rng).sides(truth), sides_of(samples, truth), randomization_pvalues(samples)


def faithful_at_limit(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(5000)
    for name in AT_60:
        for n in simulation.sizes:
            before, after, p_values = _sides_at_truth(name, n, n_sets)
            found.add(name, n, (before > 0) & (p_values <= LEVEL), after > 0, n=n_sets, most=TAIL)
    note = "Share of data sets called “faithful” (above 60 %) although the true mean win rate is 60 %."
    return Claim("Wrongly called faithful", found(), note=note)


def coverage(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(5000)
    for name in DISTRIBUTIONS:
        for n in simulation.sizes:
            before, after, _ = _sides_at_truth(name, n, n_sets)
            found.add(f"{name}: covers", n, before == 0, after == 0, n=n_sets, least=1 - LEVEL)
            found.add(f"{name}: too high", n, before > 0, after > 0, n=n_sets, most=TAIL)
            found.add(f"{name}: too low", n, before < 0, after < 0, n=n_sets, most=TAIL)
    note = (
        "Share of 95 % intervals that cover the true mean, that are above it (too high) and below it (too low). "
        "Data sets without an interval, which happened before, count as covered."
    )
    return Claim("Coverage of intervals", found(), note=note)


_TIED_SETS = stats.member_win_rates(np.r_[np.zeros(41), np.arange(1.0, 11.0)])
"""Win rates of all sets of an example in which 41 of 51 sets tie."""


def against_chance(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(4000)
    for case, family in (("uniform ranks", UNIFORM), ("41 of 51 sets tie", _TIED_SETS)):
        for n in simulation.sizes:
            rng = rng_of("chance", case, n)
            samples = rng.choice(family, (n_sets, n))
            before = old_ranks(bca(samples, rng), randomization_pvalues(samples, family))
            after = np.full(n_sets, NONE)
            for place in np.flatnonzero(sides_of(samples, 0.5)):
                after[place] = rank_of(samples[place])  # that of an interval which excludes one half
            found.add(f"{case}: positive word", n, before > NONE, after > NONE, n=n_sets, most=TAIL)
            found.add(f"{case}: anti-faithful", n, before < NONE, after < NONE, n=n_sets, most=TAIL)
            n_tests = simulation.n(2000)
            hits = [_mean_test(row, family, rng) <= LEVEL for row in samples[:n_tests]]
            found.add(f"{case}: `mean_test`", n, None, hits, n=n_tests, most=LEVEL)
    note = "Share of random explanations that get a word, and that `mean_test` rejects at 5 % (same test before)."
    return Claim("Random explanations", found(), note=note)


def _mean_test(rates: Values, family: Values, rng: Rng) -> float:
    """Return the p-value of `stats.mean_test`, 199 draws; `family` holds the win rates of every example's sets."""
    others = np.tile(family, (len(rates), 1))
    first = np.argmin(np.abs(others - rates[:, None]), axis=1)
    others[np.arange(len(rates)), first], others[:, 0] = family[0], rates
    return stats.mean_test([*others], rng=rng, n_draws=199).p_value


def grouped(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(4000)
    for n_groups in (6, 12, 20, 51, 100):
        rng = rng_of("groups", n_groups)
        counts = np.minimum(rng.geometric(0.3, n_groups), 12)
        groups = np.repeat(np.arange(n_groups), counts)
        common, own = (rng.standard_normal((n_sets, size)) for size in (n_groups, len(groups)))
        # Normal values with correlation 1/2 within groups, as win rates with mean 0.60.
        latent = math.sqrt(0.5) * (common[:, groups] + own)
        samples = _rates(rng, ndtr(latent + math.sqrt(2) * ndtri(0.6)))
        sums = np.add.reduceat(samples, np.cumsum(counts) - counts, axis=1)
        before, after = bca(sums, rng, counts=counts).sides(0.6), sides_of(samples, 0.6, groups=groups)
        found.add("covers", n_groups, before == 0, after == 0, n=n_sets, least=1 - LEVEL)
        found.add("too high", n_groups, before > 0, after > 0, n=n_sets, most=TAIL)
        found.add("too low", n_groups, before < 0, after < 0, n=n_sets, most=TAIL)
    note = "Intervals of the mean over groups of 1 to 12 examples, geometric sizes, correlation 0.5 within groups."
    return Claim("Coverage with groups", found(), sizes="groups", note=note)


def _skewed_differences(rng: Rng, n_sets: int, n: int) -> Values:
    return np.where(rng.random((n_sets, n)) < 0.1, 0.45, -0.05) + rng.normal(0, 0.02, (n_sets, n))


def _symmetric_differences(rng: Rng, n_sets: int, n: int) -> Values:
    return benign(rng, n_sets, n) - benign(rng, n_sets, n)


def _true_differences(rng: Rng, n_sets: int, n: int) -> Values:
    return np.clip(rng.normal(0.1, 0.25, (n_sets, n)), -1, 1)


def differences(simulation: Simulation) -> Claim:
    found = _Lines()
    cases: list[tuple[str, Sampler, int, dict[str, float]]] = [
        ("error: skewed, 90 % at −0.05, 10 % at 0.45", _skewed_differences, 4000, {"most": LEVEL}),
        ("error: symmetric", _symmetric_differences, 4000, {"most": LEVEL}),
        ("power: mean 0.10, sd 0.25", _true_differences, 1000, {}),
    ]
    for case, draw, full, nominal in cases:
        for n in simulation.sizes:
            rng, n_sets = rng_of("differences", case, n), simulation.n(full)
            samples = draw(rng, n_sets, n)
            p_values = p_values_of(samples, 0.0, scale=(-1.0, 1.0))
            found.add(case, n, signflip_pvalues(samples, rng) <= LEVEL, p_values <= LEVEL, n=n_sets, **nominal)
    note = "Share of data sets with p ≤ 0.05 in `paired_difference`."
    return Claim("Differences of the same examples", found(), note=note)


def many_methods(simulation: Simulation) -> Claim:
    found, n_methods, n_sets = _Lines(), 20, simulation.n(1000)
    for shared in (0.0, 0.9):
        case = f"20 methods × 2 operators, correlation {shared:g}"
        for n in (20, 100):
            rng = rng_of("many", shared, n)
            hits = np.array([_any_of_many(rng, n, n_methods, shared) for _ in range(n_sets)])
            found.add(f"{case}: adjusted p ≤ 0.05", n, hits[:, 0], hits[:, 1], n=n_sets, most=LEVEL)
            found.add(f"{case}: positive word", n, hits[:, 2], hits[:, 3], n=n_sets, most=LEVEL)
    rng, case = rng_of("more tests than draws"), "200 methods, 999 draws: adjusted p ≤ 0.05"
    hits = np.array([_any_of_independent(rng, 20, 200, 999) for _ in range(n_sets)])
    found.add(case, 20, hits[:, 0], hits[:, 1], n=n_sets, most=LEVEL)
    for n in (20, 50, 100):
        rng, n_runs = rng_of("lone", n), simulation.n(100)
        hits = np.array([_lone_effect(rng, n, 97, 0.7) for _ in range(n_runs)])
        found.add("power: one of 97 at 0.70, adjusted p", n, hits[:, 0], hits[:, 1], n=n_runs)
        found.add("power: one of 97 at 0.70, positive word", n, None, hits[:, 2], n=n_runs)
    note = (
        "Share of runs with *any* error among useless methods: an adjusted p-value, or a positive word (before by "
        "single intervals, after by simultaneous ones). Power is for the only effect among 97 configurations."
    )
    return Claim("Many methods", found(), note=note)


def _any_of_many(rng: Rng, n: int, n_methods: int, shared: float) -> tuple[bool, bool, bool, bool]:
    """Return which of adjusted p and positive words occur before and after, for useless methods of one run."""
    # Two operators score the same sets of each example, with similar ranks. A method names one of the sets.
    scores = rng.standard_normal((n, M + 1))
    both = np.stack([scores, 0.8 * scores + 0.6 * rng.standard_normal(scores.shape)])
    ranks = both.argsort(axis=2).argsort(axis=2) / M  # (operators, examples, sets)
    own, common = rng.integers(0, M + 1, (n_methods, n)), rng.integers(0, M + 1, n)
    picks = np.where(rng.random((n_methods, n)) < math.sqrt(shared), common, own)
    rates = ranks[:, np.arange(n), picks]  # (operators, methods, examples)
    # All methods have the same sets, and the draws depend on nothing else.
    tests = stats.mean_tests([[*ranks[0]], [*ranks[1]]], rng=lambda: rng, n_draws=1999)
    observed = [_observed(test, row) for test, part in zip(tests, rates, strict=True) for row in part]
    joint = stats.step_down(observed, [*range(n_methods)] * 2, rng=rng)
    flat = rates.reshape(-1, n)
    p_values = randomization_pvalues(flat)
    words = old_ranks(bca(flat, rng), p_values)
    return (
        bool((false_discovery_control(p_values, method="by") <= LEVEL).any()),
        min(joint.p_values) <= LEVEL,
        bool((words > NONE).any()),
        any(_is_above(row, joint.alpha) for row in flat),
    )


def _any_of_independent(rng: Rng, n: int, n_methods: int, n_draws: int) -> tuple[bool, bool]:
    """Return if any adjusted p-value of useless methods is small, before and after, with few draws."""
    [test] = stats.mean_tests([[UNIFORM] * n], rng=lambda: rng, n_draws=n_draws)
    observed = [_observed(test, row) for row in rng.choice(UNIFORM, (n_methods, n))]
    before = false_discovery_control([test.p_value for test in observed], method="by")
    after = stats.step_down(observed, [*range(n_methods)], rng=rng).p_values
    return bool(before.min() <= LEVEL), min(after) <= LEVEL


def _lone_effect(rng: Rng, n: int, n_methods: int, mean: float) -> tuple[bool, bool, bool]:
    """Return if the only effect is found: by Benjamini-Yekutieli, by `step_down` and by its simultaneous interval."""
    rates = rng.choice(UNIFORM, (n_methods, n))
    rates[0] = beta_with_mean(rng, mean, (1, n))
    [test] = stats.mean_tests([[UNIFORM] * n], rng=lambda: rng, n_draws=9999)
    observed = [_observed(test, row) for row in rates]
    joint = stats.step_down(observed, [*range(n_methods)], rng=rng)
    before = false_discovery_control([test.p_value for test in observed], method="by")
    return bool(before[0] <= LEVEL), joint.p_values[0] <= LEVEL, _is_above(rates[0], joint.alpha)


def _observed(test: stats.MeanTest, rates: Values) -> stats.MeanTest:
    """Return the test of other rationales among the same sets."""
    statistic = float(studentized(rates[None])[0])
    n_extreme = int(np.count_nonzero(test.null >= statistic * (1 - _SLACK)))
    return replace(test, statistic=statistic, p_value=(1 + n_extreme) / (test.n_draws + 1))


def _is_above(rates: Values, alpha: float) -> bool:
    """Return True if the interval of level 1 - alpha is above one half."""
    advantages = rates - 0.5
    # No bet wins more than 3/2 (sum)^2 / (sum of squares) in logarithms, which saves most calls.
    most = 1.5 * advantages.sum() ** 2 / max(float((advantages**2).sum()), _SLACK)
    if advantages.mean() <= 0 or most < ndtri(alpha / 2) ** 2 / 2:
        return False
    return stats.mean_pvalue(rates, 0.5) <= alpha


def _raised(rng: Rng, case: int, n: int) -> tuple[Values, Values]:
    """Return the win rates of one data set, before and after one of them is raised."""
    place = rng.integers(n)
    if case == 0:
        values, target = np.clip(rng.normal(rng.uniform(0.45, 0.65), 0.05, n), 0, 1).round(2), 1.0
    elif case == 1:
        values, target = np.full(n, rng.integers(20, 50) / M), rng.integers(20, 50) / M
        values[place], target = sorted((target, values[place]))
    else:
        values = list(DISTRIBUTIONS.values())[rng.integers(len(DISTRIBUTIONS))][0](rng, 1, n)[0]
        target = rng.uniform(values[place], 1)
    raised = values.copy()
    raised[place] = target
    return values, raised


def monotone(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(250)
    for case, about in enumerate(("narrow, one raised to 1", "all equal but one", "as above, one raised")):
        for n in (5, 10, 20, 50):
            rng, worse = rng_of("monotone", case, n), []
            for _ in range(n_sets):
                pair, seed = np.stack(_raised(rng, case, n)), rng.integers(2**32)
                intervals = [bca(row[None], np.random.default_rng(seed)) for row in pair]  # same resamples
                p_values = randomization_pvalues(pair)
                old = [old_ranks(interval, p)[0] for interval, p in zip(intervals, p_values[:, None], strict=True)]
                new = [rank_of(row) for row in pair]
                worse.append((old[1] < old[0], new[1] < new[0]))
            before, after = np.array(worse).T
            found.add(about, n, before, after, n=n_sets, most=0.0)
    note = "Share of random data sets in which raising the win rate of one example makes the verdict worse."
    return Claim("Monotone verdicts", found(), note=note)


def detectable(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(2000)
    for n in (20, 50, 200):
        families = stats.Families(np.tile(2 * np.arange(M + 1), n).astype(np.uint8), np.full(n, M + 1))
        for case, spread in (("benign", 1.0), ("observed win rates happen to be nearly equal", 0.05)):
            rng = rng_of("detectable", case, n)
            observed = 0.5 + spread * (rng.choice(UNIFORM, (n_sets, n)) - 0.5)
            after = np.array([stats.detectable_win_rate(row, families) for row in observed])
            before = 0.5 + 2.80 * observed.std(axis=1, ddof=1) / math.sqrt(n)
            old, new = (beta_with_mean(rng, np.minimum(r, 0.999)[:, None], (n_sets, n)) for r in (before, after))
            detected = old_ranks(bca(old, rng), randomization_pvalues(old)) > NONE
            found.add(f"power, {case}", n, detected, sides_of(new, 0.5) > 0, n=n_sets)
            found.add(f"stated win rate, {case}", n, before, after, n=n_sets)
    note = (
        "Power for an explanation whose true win rate is the stated `detectable_win_rate`; the target is 80 %. The "
        "rate is stated for a random explanation, or for one whose win rates happen to be nearly equal."
    )
    return Claim("Detectable win rate", found(), note=note)


def equivalence(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(3000)
    for truth, nominal in ((0.45, {"most": TAIL}), (0.55, {"most": TAIL}), (0.5, {})):
        for n in (100, 500, 2000):
            rng = rng_of("equivalence", truth, n)
            samples = beta_with_mean(rng, truth, (n_sets, n)) if truth != 0.5 else rng.choice(UNIFORM, (n_sets, n))
            intervals = bca(samples, rng)
            near = (intervals.low > 0.5) & (intervals.high < 0.55) & (randomization_pvalues(samples) <= LEVEL)
            found.add(f"true win rate {truth:.2f}", n, near, [*map(_is_random, samples)], n=n_sets, **nominal)
    note = (
        "Share of data sets called “random within ±5 pp”: an error at 45 and 55 %, the power at 50 %. "
        "Before, “near-random” meant 50 to 55 % and had to differ from chance."
    )
    return Claim("Equivalence with chance", found(), note=note)


def _is_random(rates: Values) -> bool:
    """Return True if the interval is within 45 and 55 %."""
    mean = float(rates.mean())
    nearest = sorted((0.45, 0.55), key=lambda limit: abs(limit - mean))
    return abs(mean - 0.5) < 0.05 and all(stats.mean_pvalue(rates, limit) <= LEVEL for limit in nearest)


def looks(simulation: Simulation) -> Claim:
    found, n_sets, ends = _Lines(), simulation.n(1000), (10, 20, 50, 100, 200)
    for name, draw in list(AT_60.items())[::2]:
        rng = rng_of("looks", name)
        samples = draw(rng, n_sets, ends[-1])
        before, after, fixed = np.zeros((3, n_sets), dtype=bool)
        for end in ends:
            before |= bca(samples[:, :end], rng).sides(0.6) != 0
            intervals = [stats.mean_interval(row[:end], anytime=True) for row in samples]
            after |= [not low <= 0.6 <= high for low, high in intervals]
            fixed |= sides_of(samples[:, :end], 0.6) != 0
            found.add(name, end, before, after, n=n_sets, most=LEVEL)
            found.add(f"{name}: without `anytime`", end, None, fixed, n=n_sets)
    note = "Share of data sets in which any look so far, after 10, 20, 50, 100 and 200 examples, excluded the truth."
    return Claim("Repeated looks, `anytime=True`", found(), note=note)


def hard_cases(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(2000)
    for n in (50, 80, 120, 200, 500):
        for case, noisy in (("all equal but 2 % at 0", False), ("binomial noise, 2 % at 0", True)):
            rng = rng_of("hard", case, n)
            base = _rates(rng, np.full((n_sets, n), 0.6 / 0.98)) if noisy else np.full((n_sets, n), 0.6 / 0.98)
            samples = np.where(rng.random((n_sets, n)) < 0.02, 0.0, base)
            before, after = bca(samples, rng).sides(0.6), sides_of(samples, 0.6)
            found.add(f"{case}: too high", n, before > 0, after > 0, n=n_sets)
            found.add(f"{case}: too low", n, before < 0, after < 0, n=n_sets)
    note = (
        "From 50 examples on, intervals are approximate. They may err in more than 2.5 % on one side where nearly all "
        "win rates are equal and a few are far off: a sample without these looks precise. The noise of 50 random sets "
        "removes most of the excess. These rates have no limit here."
    )
    return Claim("Where intervals are too short", found(), note=note)


def agreement_of_intervals(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(60)
    for n in simulation.sizes:
        rng, wrong = rng_of("agreement", n), []
        for draw, _ in DISTRIBUTIONS.values():
            for row in draw(rng, n_sets // len(DISTRIBUTIONS) + 1, n):
                low, high = stats.mean_interval(row)
                # Near the limits, where they might differ.
                for mean in np.clip([low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6], 1e-9, 1 - 1e-9):
                    wrong.append((stats.mean_pvalue(row, mean) <= LEVEL) != (not low <= mean <= high))
        found.add("disagree", n, None, wrong, n=len(wrong), most=0.0)
    note = "Share of means just inside or outside a limit on which `mean_interval` and `mean_pvalue` disagree."
    return Claim("Intervals and p-values", found(), note=note)


def widths(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(100)
    for name in list(AT_60)[:3]:
        for n in simulation.sizes:
            rng = rng_of("widths", name, n)
            samples = AT_60[name](rng, n_sets, n)
            before = bca(samples, rng)
            after = [interval.high - interval.low for interval in map(stats.mean_interval, samples)]
            found.add(name, n, before.high - before.low, after, n=n_sets)
    return Claim("Mean width of 95 % intervals", found(), note="On a scale of 0 to 1.", in_percent=False)


@dataclass(frozen=True)
class _Chains:
    """Chains whose pattern is known.

    A kind of chains has its share, and three rates at which it keeps its answer: with a fifth of the steps removed,
    with a fifth alone, and without any. They are on the scale from chance (0) to the whole chain (1).
    """

    truth: stats.Pattern
    kinds: tuple[tuple[float, float, float, float], ...]
    reproduced: float = 0.95
    """Share of own answers from all steps, beyond chance."""
    n_options: int = 0
    other: "_Chains | None" = None
    """Under another prompt."""

    def judged(self, rng: Rng, n: int) -> stats.ReasoningVerdict:
        """Return the verdict on n of them, of six removals each way, three repeats, and one reply without steps."""
        chance = 1 / self.n_options if self.n_options else 0.0
        weights, *_ = kinds = np.array(self.kinds).T
        kept = kinds[1:, rng.choice(len(weights), n, p=weights)]
        own = chance + (1 - chance) * rng.beta(2 * self.reproduced, 2 - 2 * self.reproduced, n)
        removed, alone, empty = chance + (own - chance) * kept
        nec, suf, floor = 1 - rng.binomial(6, removed) / 6, rng.binomial(6, alone) / 6, 1 - rng.binomial(3, own) / 3
        found = stats.capacity(nec, suf, floor, chance=chance, rng=rng, n_resamples=499)
        reproduced, no_steps = stats.mean_interval(1 - floor), stats.mean_interval(1.0 * (rng.random(n) < empty))
        verdict = stats.reasoning_verdict(found.adjusted_ci, reproduced=reproduced, no_steps=no_steps, chance=chance)
        return verdict if self.other is None else verdict.beside_poses([self.other.judged(rng, n)])


_BY_HEART, _READ, _MET = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.5, 0.0)
_CHAINS = {
    "genuine": _Chains("genuine", ((1, *_READ),)),
    "genuine, two labels": _Chains("genuine", ((1, *_READ),), n_options=2),
    "genuine, SRC adj. 0.42": _Chains("genuine", ((0.65, *_READ), (0.35, *_BY_HEART))),
    "genuine, R 0.53": _Chains("genuine", ((1, *_READ),), reproduced=0.53),
    "genuine under both prompts": _Chains("genuine", ((1, *_READ),), other=_Chains("genuine", ((1, *_READ),))),
    "obedient": _Chains("obedient", ((1, *_READ),), other=_Chains("parametric", ((1, *_BY_HEART),))),
    "scaffolding, SRC adj. 0.25": _Chains("scaffolding", ((1, 0.75, 0, 0),)),
    "scaffolding, SRC adj. 0.16": _Chains("scaffolding", ((0.4, *_READ), (0.6, *_BY_HEART))),
    "redundant": _Chains("redundant", ((1, *_MET),)),
    "redundant, four options": _Chains("redundant", ((1, *_MET),), n_options=4),
    "redundant, E 0.3": _Chains("redundant", ((0.7, *_MET), (0.3, *_BY_HEART))),
    "decorative, E 0.5": _Chains("decorative", ((0.5, *_MET), (0.5, *_BY_HEART))),
    "decorative, E 0.63": _Chains("decorative", ((0.37, *_MET), (0.63, *_BY_HEART))),
    "parametric": _Chains("parametric", ((1, *_BY_HEART),)),
    "parametric, two labels": _Chains("parametric", ((1, *_BY_HEART),), n_options=2),
    "parametric, E 0.7": _Chains("parametric", ((0.3, *_MET), (0.7, *_BY_HEART))),
    "noisy, R 0.3": _Chains("noisy", ((1, *_BY_HEART),), reproduced=0.3),
    "noisy, R 0.47": _Chains("noisy", ((1, *_READ),), reproduced=0.47),
}


def patterns(simulation: Simulation) -> Claim:
    found, n_sets = _Lines(), simulation.n(300)
    for name, chains in _CHAINS.items():
        for n in (20, 50, 200):
            rng = rng_of("patterns", name, n)
            verdicts = [chains.judged(rng, n) for _ in range(n_sets)]
            wrong = [chains.truth not in each.words for each in verdicts]
            found.add(f"{name}: excluded", n, None, wrong, n=n_sets, most=LEVEL)
            found.add(f"{name}: found", n, None, [each.pattern == chains.truth for each in verdicts], n=n_sets)
    note = (
        "Share of sets of N chains of thought whose verdict excludes their true pattern (an error), and whose verdict "
        "is that pattern alone (found). SRC adj., E and R are true values; R is 0.95 if not named."
    )
    return Claim("Patterns of reasoning", found(), note=note)


CLAIMS: tuple[Callable[[Simulation], Claim], ...] = (
    faithful_at_limit,
    coverage,
    against_chance,
    grouped,
    differences,
    many_methods,
    monotone,
    detectable,
    equivalence,
    looks,
    hard_cases,
    agreement_of_intervals,
    patterns,
    widths,
)

INTRODUCTION = """\
# Are the error rates as low as stated?

{answer}

```bash
python benchmarks/calibration.py --write docs/calibration.md
```

This command writes the page and [every rate](calibration.csv) again, in about eight minutes on one core. Numbers are
the same every time. The exit code is 1 if an error rate is too high.

The simulations draw win rates from known distributions. `ice selftest` tests the whole pipeline.

## Error rates

Each rate is the worst over all cases and sizes. *After* is version 0.1.0, *before* an unreleased prototype; an arrow
leads from one to the other. An s.e. is a Monte Carlo standard error.
"""
HOLDS = """\
Yes, with one exception. No error rate in this table is worse than its nominal value by more than three Monte Carlo
standard errors. But intervals of 50 or more examples may be [too short](#where-intervals-are-too-short) if nearly all
win rates are equal. [Pooled intervals](statistics.md#assumptions-and-error-rates), which this page does not cover, may
be too short for two models that differ strongly."""
FAILS = "No: rates marked below are worse than their nominal value by more than three standard errors."


def page(claims: Sequence[Claim]) -> str:
    answer = FAILS if any(claim.failures for claim in claims) else HOLDS
    summaries = sorted((claim.summary() for claim in claims), key=lambda text: text.startswith("## "))
    return "\n\n".join([INTRODUCTION.format(answer=answer).rstrip(), overview(claims), *summaries]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="simulate a tenth of the data sets")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="also write a page, and all rates as PAGE.csv")
    options = parser.parse_args(arguments)
    claims = []
    for measure in CLAIMS:
        claims.append(measure(Simulation(share=0.1 if options.quick else 1.0)))
        print(claims[-1].markdown(), end="\n\n", flush=True)
    print(overview(claims))
    if options.write:
        options.write.write_text(page(claims), encoding="utf-8")
        options.write.with_suffix(".csv").write_text(as_csv(claims), encoding="utf-8")
    failures = [failure for claim in claims for failure in claim.failures]
    for failure in failures:
        print(f"above nominal: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
