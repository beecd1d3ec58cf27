"""Checks of trials on models with known truth, and of simulated win rates with known means: arrays in, checks out.

A guarantee fails when the observation has a probability below `LIMIT` while the guarantee holds. A measurement is
reported with its interval, and never fails.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, chisquare, ttest_1samp

from ice_eval import rationales, stats

Column = NDArray[np.float64]  # (examples,)
Hits = NDArray[np.bool_]
Rng = np.random.Generator
UPPER, LOWER = "upper", "lower"

LIMIT = 0.001
"""A guarantee whose p-value is smaller fails."""
DATA_SET = 25
ALPHAS = (0.05, 0.10, 0.20)
SEQUENTIAL_ALPHAS = (0.01, 0.05, 0.10)
DETECTED = 0.05
"""Largest p-value of a data set's mean win rate that counts as different from random."""
POWER = 0.9
"""Share of data sets in which the plain truth must be detected."""

WINS = 0.95
"""Win rate of an explanation that names the source."""

_N_DRAWS, _N_BINS, _N_SETS = 999, 20, 8
_ROUND_OFF = 1e-12


@dataclass(frozen=True)
class About:
    model: str
    operator: str
    direction: str
    attribution: str

    def __str__(self) -> str:
        return f"{self.attribution} on {self.model}, {self.operator}, {self.direction}"


@dataclass(frozen=True)
class Trials:
    """One explanation under one configuration, on many examples; any p-values and win rates can be checked."""

    about: About
    p_value: Column
    p_lower: Column
    win_rate: Column
    tie_rate: Column
    m: NDArray[np.int64]
    """Size of each example's null."""
    families: Sequence[Column] = field(default=(), repr=False)
    """Win rates of all scored sets of each example, the rationale's first; empty where a test has none."""
    sequential: bool = False
    """True if each example took as many sets as its test needed: then it has no rank among a fixed number of them."""

    def __len__(self) -> int:
        return self.win_rate.size


@dataclass(frozen=True, kw_only=True)
class Check:
    """An observation in some trials, and its bound."""

    name: str
    about: About
    observed: float
    low: float | None = None
    """95 % interval of `observed`."""
    high: float | None = None
    bound: str
    """Guarantee, or the expectation of a measurement, in words."""
    n: int
    p: float | None = None
    """Probability of an observation as extreme while the guarantee holds; None for a measurement."""

    @property
    def is_guarantee(self) -> bool:
        return self.p is not None

    @property
    def ok(self) -> bool:
        return self.p is None or self.p >= LIMIT

    def as_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        return {**fields.pop("about"), **fields, "is_guarantee": self.is_guarantee, "ok": self.ok}


def measured(name: str, about: About, hits: Hits, expected: str) -> Check:
    """Report a share without a guarantee."""
    low, high = map(float, binomtest(int(hits.sum()), hits.size).proportion_ci(0.95, method="exact"))
    observed = float(hits.mean())
    return Check(name=name, about=about, observed=observed, low=low, high=high, bound=expected, n=hits.size)


def wins(trial: Trials) -> Check:
    """Check that an explanation which names the source of a text beats nearly every other set."""
    hits = trial.win_rate >= WINS
    return _guaranteed(f"win rates of {WINS:.0%} or more", trial.about, hits, POWER, worse="less")


def _guaranteed(name: str, about: About, hits: Hits, limit: float, *, worse: Literal["greater", "less"]) -> Check:
    p_value = float(binomtest(int(hits.sum()), hits.size, limit, alternative=worse).pvalue)
    bound = f"{'≤' if worse == 'greater' else '≥'} {100 * limit:g}%"
    return replace(measured(name, about, hits, bound), p=p_value)


at_most, at_least = partial(_guaranteed, worse="greater"), partial(_guaranteed, worse="less")


# --- random attributions ------------------------------------------------------------------------------------------


def calibration(trials: Trials, *, rng: Rng) -> Iterator[Check]:
    """Check all properties of a random explanation."""
    yield from false_positives(trials, SEQUENTIAL_ALPHAS if trials.sequential else ALPHAS)
    yield mean_win_rate(trials)
    if not trials.sequential:
        yield uniform_ranks(trials, rng=rng)
    if len(trials.families) >= DATA_SET:
        told, _ = data_sets(trials, rng=rng)
        yield at_most(
            f"data sets of {DATA_SET} distinguished from random, p ≤ {DETECTED:g}", trials.about, told, DETECTED
        )
        said = [verdict.word in (stats.ANTI_FAITHFUL, *stats.POSITIVE) for verdict in verdicts(trials)]
        yield at_most(f"verdict on a data set of {DATA_SET} is not random", trials.about, np.array(said), DETECTED)


def false_positives(trials: Trials, alphas: Sequence[float] = ALPHAS) -> Iterator[Check]:
    """Check that either tail's p-values reach `alpha` in at most a share `alpha` of examples."""
    for alpha, (tail, p) in itertools.product(alphas, ((UPPER, trials.p_value), (LOWER, trials.p_lower))):
        yield at_most(f"false positives, {tail} tail, α = {alpha:.2f}", trials.about, _reach(p, alpha), alpha)


def uniform_ranks(trials: Trials, *, rng: Rng) -> Check:
    """Check that every rank among the M + 1 sets is equally likely (χ²)."""
    # Ties are broken by a draw, and a draw within its place spreads the rank over (0, 1), so that examples with
    # different M share the bins. A Kolmogorov-Smirnov test would reject valid p-values, which are discrete.
    tied = trials.tie_rate * trials.m
    below = trials.win_rate * trials.m - tied / 2
    places = np.round(below) + np.floor(rng.random(len(trials)) * (np.round(tied) + 1))
    spread = (places + rng.random(len(trials))) / (trials.m + 1)
    counts = np.bincount(np.minimum((spread * _N_BINS).astype(int), _N_BINS - 1), minlength=_N_BINS)
    return _equally_often("ranks are uniform", trials.about, counts)


def uniform_sets(n_units: int, size: int, *, n: int, seed: int, rng: Rng) -> Check:
    """Check that a unit drawn from a random set is equally likely to be at any place (χ²)."""
    # A sampler that prefers some places moves a win rate only as far as these matter; here it shows at once. The first
    # eight sets of an order differ, so counts are more even than those of independent draws: the test is conservative.
    counts = np.zeros(n_units, dtype=np.int64)
    for index in range(n):
        sets = rationales.random_sets(n_units, size, _N_SETS, seed=seed, example_id=f"selftest-{index}")
        np.add.at(counts, [rng.choice(np.flatnonzero(each)) for each in sets], 1)
    about = About("no model", "any operator", "any direction", "random sets")
    return _equally_often(f"places in sets of {size} of {n_units} units are uniform", about, counts)


def _equally_often(name: str, about: About, counts: NDArray[np.int64]) -> Check:
    statistic, p = map(float, chisquare(counts))
    bound = f"χ² of {counts.size - 1} d.f."
    return Check(name=name, about=about, observed=statistic, bound=bound, n=int(counts.sum()), p=p)


def mean_win_rate(trials: Trials, *, promised: bool = True) -> Check:
    """Check that the mean win rate is one half (two-sided t-test), or report it where nothing is guaranteed."""
    mean = float(trials.win_rate.mean())
    low, high, p = mean, mean, float(mean == stats.CHANCE)
    if np.ptp(trials.win_rate) > _ROUND_OFF:
        test = ttest_1samp(trials.win_rate, stats.CHANCE)
        low, high, p = map(float, (*test.confidence_interval(0.95), test.pvalue))
    found = Check(name="mean win rate", about=trials.about, observed=mean, bound="power", n=len(trials))
    found = replace(found, low=max(low, 0.0), high=min(high, 1.0))
    return replace(found, bound="= 50%", p=p) if promised else found


def _cut(trials: Trials) -> list[slice]:
    return [slice(start, start + DATA_SET) for start in range(0, len(trials) - DATA_SET + 1, DATA_SET)]


def data_sets(trials: Trials, *, rng: Rng) -> tuple[Hits, Hits]:
    """Return which data sets differ from random ones, and which of these win."""
    cut = _cut(trials)
    tests = [stats.mean_test(trials.families[each], rng=rng, n_draws=_N_DRAWS) for each in cut]
    told = _reach(np.array([test.p_value for test in tests]), DETECTED)
    wins = np.array([trials.win_rate[each].mean() > stats.CHANCE for each in cut])
    return told, told & wins


def verdicts(trials: Trials) -> list[stats.Verdict]:
    return [
        stats.verdict(stats.mean_interval(trials.win_rate[each]), tie_rate=float(trials.tie_rate[each].mean()))
        for each in _cut(trials)
    ]


# --- known truth --------------------------------------------------------------------------------------------------


def truth(trials: Trials, *, exact: bool, unique: bool, rng: Rng) -> Iterator[Check]:
    """Check all properties of an explanation that is the truth."""
    names = ("a random set beats the truth", "the truth has the smallest p-value", "p ≤ 0.05 on one example")
    yield from _extreme(trials, names, trials.p_value, trials.p_lower, 1, exact=exact, unique=unique)
    _, detected = data_sets(trials, rng=rng)
    yield at_least(f"the truth is detected in a data set of {DATA_SET}", trials.about, detected, POWER)


def negated_truth(trials: Trials, *, exact: bool, unique: bool, rng: Rng) -> Iterator[Check]:
    """Check all properties of the opposite of the truth."""
    beaten, smallest = (
        "a random set does worse than the negated truth",
        "the negated truth has the smallest lower p-value",
    )
    names = (beaten, smallest, "lower p ≤ 0.05 on one example")
    yield from _extreme(trials, names, trials.p_lower, trials.p_value, 0, exact=exact, unique=unique)
    passes = _reach(trials.p_value, 0.05)
    yield at_most("the negated truth passes, upper tail, α = 0.05", trials.about, passes, 0.05)
    named = np.array([verdict.word == stats.ANTI_FAITHFUL for verdict in verdicts(trials)])
    yield at_least(f"a data set of {DATA_SET} is called anti-faithful", trials.about, named, POWER)


def _extreme(
    trials: Trials, names: tuple[str, str, str], own: Column, other: Column, rate: int, *, exact: bool, unique: bool
) -> Iterator[Check]:
    """Check the p-values of the best or worst set, in its own tail and the other.

    `exact`: no set can be more extreme; where fills are drawn, a lucky set may. `unique`: no other set ties with it.
    """
    if exact:
        yield at_most(names[0], trials.about, other < 1 - _ROUND_OFF, 0.0)
    if exact and unique:
        smallest = np.isclose(own * (trials.m + 1), 1) & (trials.win_rate == rate)
        yield at_least(names[1], trials.about, smallest, 1.0)
    else:
        yield measured(names[2], trials.about, _reach(own, DETECTED), "power")


def power(trials: Trials, *, rng: Rng) -> Iterator[Check]:
    """Measure the detection rate of an explanation: a weak signal allows no guarantee."""
    yield mean_win_rate(trials, promised=False)
    _, detected = data_sets(trials, rng=rng)
    yield measured(f"detected in a data set of {DATA_SET}", trials.about, detected, "power")
    yield measured("p ≤ 0.05 on one example", trials.about, _reach(trials.p_value, DETECTED), "power")


# --- many examples at once ----------------------------------------------------------------------------------------


def false_discoveries(
    about: About, null: Column, signal: Column, *, n_null: int, n_signal: int, alpha: float, rng: Rng, tail: str = UPPER
) -> Iterator[Check]:
    """Check that Benjamini-Hochberg controls the false-discovery rate of one tail, with null and true examples."""
    # In each data set one rejected example is drawn. It is a null one with probability V / R, the false-discovery
    # proportion, whose mean is the false-discovery rate: so the count over data sets is binomial with that rate.
    count = min(null.size // n_null, signal.size // n_signal)
    false, rejects = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for index in range(count):
        ours = null[index * n_null : (index + 1) * n_null], signal[index * n_signal : (index + 1) * n_signal]
        rejected = np.flatnonzero(stats.significant(np.concatenate(ours), alpha=alpha))
        rejects[index] = rejected.size > 0
        false[index] = rejected.size > 0 and rng.choice(rejected) < n_null
    mixture = f"{n_null} null and {n_signal} true, {tail} tail, α = {alpha:.2f}"
    yield at_most(f"false discoveries, {mixture}", about, false, alpha)
    yield measured(f"data sets with a discovery, {mixture}", about, rejects, "power")


def coverage(about: About, population: Column, *, size: int, n_data_sets: int, rng: Rng) -> Check:
    """Check the coverage of a population's mean by the 95 % interval of a data set drawn from it."""
    mean = population.mean()
    covers = np.zeros(n_data_sets, dtype=bool)
    for index in range(n_data_sets):
        low, high = stats.mean_interval(rng.choice(population, size))
        covers[index] = low - _ROUND_OFF <= mean <= high + _ROUND_OFF
    return at_least(f"95 % interval of {size} examples covers the mean", about, covers, 0.95)


def _reach(p_values: Column, alpha: float) -> Hits:
    return np.less_equal(p_values, alpha + _ROUND_OFF)


# --- simulated win rates -----------------------------------------------------------------------------------------

M = 50
MEAN = 0.6
"""Mean of all simulated win rates: the limit above which an explanation is faithful."""
SIZES = (5, 10, 25, 100)
_ONE_SIDE, _BOTH_SIDES = 0.025, 0.05


def benign(rng: Rng, n: int) -> Column:
    """Return win rates that are spread over the whole scale."""
    return rng.binomial(M, rng.beta(1.2, 0.8, size=n)) / M


def skewed(rng: Rng, n: int) -> Column:
    """Return win rates of which one in ten is 0."""
    return np.where(rng.random(n) < 0.1, 0.0, rng.binomial(M, rng.beta(20, 10, size=n)) / M)


def tied(rng: Rng, n: int) -> Column:
    """Return win rates of which most are one half, as where most sets tie."""
    return np.where(rng.random(n) < 0.2, 1.0, 0.5)


_RATES: dict[str, Callable[[Rng, int], Column]] = {"benign": benign, "skewed": skewed, "tied": tied}


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


def _is_called_faithful(rates: Column) -> bool:
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
