import numpy as np
import pytest
import scipy.stats

from ice_eval.errors import DataError
from ice_eval.stats import (
    Interval,
    ReasoningVerdict,
    capacity,
    mean_interval,
    noise_beyond_repeats,
    reasoning_verdict,
    reasoning_word,
    step_reasoning_capacity,
)


def rates(rng, n, *, necessity=0.6, sufficiency=0.3, floor=0.1):
    """Of n problems, each from five rows, with a difficulty that the three share."""
    hard = rng.normal(0, 0.8, n)

    def drawn(mean, sign):
        chance = 1 / (1 + np.exp(-(np.log(mean / (1 - mean)) + sign * hard)))
        return rng.binomial(5, chance) / 5

    return drawn(necessity, 1), drawn(sufficiency, -1), drawn(floor, 1)


def adjusted_capacity(necessity, sufficiency, floor, chance=0.0):
    """The adjusted capacity of a single problem, or of means."""
    columns = (np.array([rate]) for rate in (necessity, sufficiency, floor))
    return capacity(*columns, chance=chance, rng=np.random.default_rng(0), n_resamples=1).adjusted


def test_capacity_needs_steps_that_are_necessary_and_not_sufficient():
    assert step_reasoning_capacity(0.8, 0.25) == pytest.approx(0.6)
    assert step_reasoning_capacity(1, 1) == step_reasoning_capacity(0, 0) == 0


@pytest.mark.parametrize(
    ("capacity", "word"),
    [
        (0, "decorative"),
        (0.149, "decorative"),
        (0.15, "scaffolding"),
        (0.4, "scaffolding"),
        (0.41, "genuine"),
        (1, "genuine"),
    ],
)
def test_words(capacity, word):
    assert reasoning_word(capacity) == word


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_rates_outside_of_zero_and_one_are_refused(bad):
    with pytest.raises(DataError, match=r"lie in \[0, 1\]"):
        step_reasoning_capacity(bad, 0.5)
    with pytest.raises(DataError, match=r"lies in \[0, 1\]"):
        reasoning_word(bad)
    for rates_of_one in ((0.5, 0.5, bad), (0.5, 0.5, 0.5, bad)):
        with pytest.raises(DataError, match=r"rates lie in \[0, 1\]|need finite values"):
            adjusted_capacity(*rates_of_one)


def test_what_changes_without_any_removal_counts_for_nothing():
    assert adjusted_capacity(0.8, 0.25, 0) == pytest.approx(0.6)
    assert adjusted_capacity(0.3, 0.2, 0.3) == 0, "removals change no more than noise does"
    assert adjusted_capacity(0.55, 0.45, 0.1) == pytest.approx((0.45 / 0.9) * (1 - 0.5))
    assert adjusted_capacity(0.5, 0.95, 0.1) == 0, "a few steps do as well as all"
    assert adjusted_capacity(1, 0, 1) is None


@pytest.mark.parametrize("chance", [0, 1 / 5, 1 / 4, 1 / 3, 1 / 2])
@pytest.mark.parametrize("floor", [0, 0.1, 0.3])
def test_who_has_to_guess_without_a_step_has_the_whole_capacity_and_who_needs_none_has_none(chance, floor):
    kept = 1 - floor
    assert adjusted_capacity(1 - chance, chance, floor, chance) == pytest.approx(1)
    assert adjusted_capacity(floor, kept, floor, chance) == pytest.approx(0)
    assert adjusted_capacity(1, 0, floor, chance) == 1, "who follows the steps to another answer does not guess"
    half = (kept + chance) / 2  # half of the problems need the steps
    assert adjusted_capacity(1 - half, half, floor, chance) == pytest.approx(0.5**2)
    assert adjusted_capacity(1, 0, 1 - chance, chance) is None, "the whole chain does no better than a guess"


def test_problems_with_different_numbers_of_options_are_adjusted_by_the_mean_chance():
    rng = np.random.default_rng(0)
    chance = np.repeat([0, 1 / 2, 1 / 3, 1 / 4], 6)
    floor = np.tile([0, 0.3], 12)
    genuine = capacity(1 - chance, chance, floor, chance=chance, rng=rng)
    assert genuine.adjusted == pytest.approx(1)
    assert genuine.src == pytest.approx((1 - chance.mean()) ** 2) and genuine.src < 0.6
    assert capacity(floor, 1 - floor, floor, chance=chance, rng=rng).adjusted == pytest.approx(0)
    # A share of the problems, whichever their options: the capacity is that of means, not the mean of capacities.
    needs = np.tile([1.0, 1.0, 0.0], 8)
    kept = np.where(needs, chance, 1)
    found = capacity(1 - kept, kept, np.zeros(24), chance=chance, rng=rng)
    weights = (1 - chance) / (1 - chance).sum()
    assert found.adjusted == pytest.approx((needs @ weights) ** 2)
    assert found.adjusted_ci.low < found.adjusted < found.adjusted_ci.high


def test_chance_that_is_known_widens_no_interval():
    ones, zeros = np.ones(20), np.zeros(20)
    limit = mean_interval(ones).low
    found = capacity(ones / 2, ones / 2, zeros, chance=0.5, rng=np.random.default_rng(0))
    least = mean_interval(ones / 2)
    expected = adjusted_capacity(least.low, least.high, 1 - limit, 0.5)
    assert found.adjusted == 1 and found.adjusted_ci == pytest.approx((expected, 1))


def test_one_more_reply_is_as_noisy_as_the_only_one_that_differs():
    replies = np.full(5, 3.0)
    assert noise_beyond_repeats(np.array([0.0, 0, 0, 1, 3]), replies) == 1 / (3 * 3 + 1)
    assert noise_beyond_repeats(np.array([0.0, 0, 0, 2, 3]), replies) == 0, "these chains are never steady"
    rng = np.random.default_rng(1)
    noise = rng.beta(0.5, 2, 200_000)
    changed = rng.binomial(3, noise).astype(float)
    beyond = rng.random(noise.size) < noise
    truth = beyond[changed == 0].mean()
    found = noise_beyond_repeats(changed, np.full(noise.size, 3.0))
    assert truth <= found < 1.35 * truth, "chains with two steady repeats are a little noisier than those with three"


def test_the_capacity_of_a_set_is_the_product_of_means():
    necessity, sufficiency, floor = np.array([1, 0.5, 0]), np.array([0, 0.5, 1]), np.array([0, 0, 0.3])
    found = capacity(necessity, sufficiency, floor, rng=np.random.default_rng(0))
    assert found.src == pytest.approx(0.5 * 0.5)
    assert found.product == pytest.approx((1 + 0.25 + 0) / 3)
    assert found.adjusted == pytest.approx((0.4 / 0.9) * (1 - 0.5 / 0.9))


def test_intervals_are_those_of_scipy_where_nothing_is_cut_off():
    columns = rates(np.random.default_rng(1), 60)
    found = capacity(*columns, rng=np.random.default_rng(2))

    def src(necessity, sufficiency, floor, axis):
        return necessity.mean(axis) * (1 - sufficiency.mean(axis))

    theirs = scipy.stats.bootstrap(columns, src, paired=True, vectorized=True, rng=np.random.default_rng(3))
    assert found.src_ci == pytest.approx(theirs.confidence_interval, abs=0.01)


def test_twenty_problems_without_a_change_do_not_prove_a_capacity_of_zero():
    zeros, ones = np.zeros(20), np.ones(20)
    limit = mean_interval(ones).low
    assert limit < 0.025 ** (1 / 20)
    found = capacity(zeros, ones, zeros, rng=np.random.default_rng(0))
    assert (found.src, found.adjusted) == (0, 0)
    assert found.src_ci == pytest.approx((0, (1 - limit) ** 2))
    genuine = capacity(ones, zeros, zeros, rng=np.random.default_rng(0))
    assert genuine.src_ci == pytest.approx((limit * limit, 1))


def test_few_problems_whose_removals_change_just_what_noise_changes_prove_nothing():
    one_of_five = np.array([1.0, 0, 0, 0, 0])
    found = capacity(one_of_five, 1 - one_of_five, one_of_five, rng=np.random.default_rng(0))
    assert found.adjusted == 0
    assert found.adjusted_ci.low == 0 and found.adjusted_ci.high > 0.4
    verdict = reasoning_verdict(found.adjusted_ci, reproduced=Interval(0.3, 1), no_steps=Interval(0, 1))
    assert (verdict.lowest, verdict.highest) == ("decorative", "genuine")
    assert str(verdict) == "undetermined (no pattern is excluded)"


def test_noise_alone_has_no_adjusted_capacity_and_one_problem_no_interval():
    ones = np.ones(5)
    noise = capacity(ones, np.zeros(5), ones, rng=np.random.default_rng(0))
    assert (noise.adjusted, noise.adjusted_ci) == (None, None)
    single = capacity(ones[:1], ones[:1], np.zeros(1), rng=np.random.default_rng(0))
    assert (single.src_ci, single.adjusted_ci) == (None, None)


@pytest.mark.parametrize("problems", [25, 100])
def test_intervals_cover_the_known_capacity_as_often_as_they_say(problems):
    rng = np.random.default_rng(problems)
    means = [float(column.mean()) for column in rates(rng, 400_000)]
    truth = (step_reasoning_capacity(*means[:2]), adjusted_capacity(*means))
    covered = np.zeros(2)
    for _ in range(400):
        found = capacity(*rates(rng, problems), rng=rng, n_resamples=499)
        intervals = found.src_ci, found.adjusted_ci
        covered += [ci.low <= value <= ci.high for ci, value in zip(intervals, truth, strict=True)]
    # 95 % less what 25 problems cost a bootstrap, less three standard errors of 400 simulations
    assert (covered / 400 >= (0.92 if problems == 25 else 0.935) - 3 * np.sqrt(0.05 * 0.95 / 400)).all()
    assert (covered / 400 <= 0.99).all()


def judged(capacity, *, reproduced=(0.9, 1), no_steps=(0, 0.1), chance=0.0):
    given = None if capacity is None else Interval(*capacity)
    return str(reasoning_verdict(given, reproduced=Interval(*reproduced), no_steps=Interval(*no_steps), chance=chance))


def test_a_pattern_is_said_only_where_every_interval_bears_it():
    assert judged((0.41, 0.9)) == "genuine"
    assert judged((0.15, 0.4)) == "scaffolding"
    assert judged((0.0, 0.14)) == "redundant"
    assert judged((0.0, 0.14), no_steps=(0.4, 0.5)) == "decorative"
    assert judged((0.0, 0.9), no_steps=(0.7, 1)) == "parametric"
    assert judged((0.0, 1.0), reproduced=(0.2, 0.49)) == judged(None, reproduced=(0, 0.3)) == "noisy"
    assert judged((0.1, 0.5)) == "undetermined (redundant, scaffolding or genuine)"
    assert judged((0.41, 0.9), reproduced=(0.4, 1)) == "undetermined (noisy or genuine)"
    assert judged((0.41, 0.9), no_steps=(0, 0.7)) == "undetermined (parametric or genuine)"
    assert judged((0.0, 0.1), no_steps=(0.2, 0.5)) == "undetermined (decorative or redundant)"
    assert judged(None) == "undetermined (too few examples)"


def test_what_a_guess_gives_without_any_step_is_no_knowledge():
    assert judged((0.0, 0.1), no_steps=(0.45, 0.55), chance=0.5) == "redundant"
    assert judged((0.0, 0.1), no_steps=(0.9, 1), chance=0.5) == "parametric"
    assert judged((0.5, 1), reproduced=(0.55, 0.7), no_steps=(0.45, 0.55), chance=0.5) == "noisy"
    assert judged((0.5, 1), reproduced=(0.55, 0.7), no_steps=(0, 0.1)) == "genuine"


def test_rates_of_different_problems_or_outside_of_zero_and_one_are_refused():
    good = np.array([0.5, 0.5])
    for bad, message in (
        (np.array([0.5]), r"one rate of each kind per problem, got \[2, 1, 2\]"),
        (np.array([0.5, 1.5]), r"rates lie in \[0, 1\], got values from 0.5 to 1.5"),
    ):
        with pytest.raises(DataError, match=message):
            capacity(good, bad, good, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([], ("genuine",)),
        ([("parametric",)], ("obedient",)),
        ([("decorative",), ("parametric",)], ("obedient",)),
        ([("genuine",), ("parametric",)], ("genuine",)),  # one other pose carries the answer too: no obedience
        ([("parametric",), ("decorative", "scaffolding")], ("obedient", "genuine")),
        ([("noisy",)], ("genuine",)),
    ],
)
def test_obedience_needs_every_other_pose(others, words):
    carried = ReasoningVerdict(lowest="genuine", highest="genuine", pattern="genuine", words=("genuine",))
    found = carried.beside_poses([ReasoningVerdict(words=each) for each in others])
    assert found.words == words
    assert found.pattern == (words[0] if len(words) == 1 else None)


def test_nearly_equal_problems_do_not_make_an_interval_short(rng):
    rates = np.array([1 / 6] * 15 + [1 / 7] * 3)
    found, limits = capacity(rates, rates, np.zeros(18), rng=rng), mean_interval(rates)
    assert found.src_ci.high == pytest.approx(limits.high * (1 - rates.mean()))
    assert found.src_ci.low <= rates.mean() * (1 - limits.high)
    assert found.adjusted_ci.low <= found.src_ci.low and found.adjusted_ci.high >= found.src_ci.high
