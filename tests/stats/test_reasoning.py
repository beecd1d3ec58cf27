import numpy as np
import pytest
import scipy.stats

from ice_eval.errors import DataError
from ice_eval.stats import (
    Interval,
    adjusted_capacity,
    capacity,
    mean_interval,
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
    with pytest.raises(DataError, match=r"noise floor lies in \[0, 1\]"):
        adjusted_capacity(0.5, 0.5, bad)


def test_what_changes_without_any_removal_counts_for_nothing():
    assert adjusted_capacity(0.8, 0.25, 0) == pytest.approx(0.6)
    assert adjusted_capacity(0.3, 0.2, 0.3) == 0, "removals change no more than noise does"
    assert adjusted_capacity(0.55, 0.45, 0.1) == pytest.approx((0.45 / 0.9) * (1 - 0.5))
    assert adjusted_capacity(0.5, 0.95, 0.1) == 0, "a few steps do as well as all"
    assert adjusted_capacity(1, 0, 1) is None


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
    assert str(reasoning_verdict(found.adjusted_ci)) == "decorative to genuine"


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


def test_a_word_is_said_only_where_the_whole_interval_bears_it():
    assert str(reasoning_verdict(Interval(0.41, 0.9))) == "genuine"
    assert str(reasoning_verdict(Interval(0.0, 0.14))) == "decorative"
    assert str(reasoning_verdict(Interval(0.1, 0.5))) == "decorative to genuine"
    assert str(reasoning_verdict(None)) == "undetermined (too few examples)"


def test_rates_of_different_problems_or_outside_of_zero_and_one_are_refused():
    good = np.array([0.5, 0.5])
    for bad, message in (
        (np.array([0.5]), r"one rate of each kind per problem, got \[2, 1, 2\]"),
        (np.array([0.5, 1.5]), r"rates lie in \[0, 1\], got values from 0.5 to 1.5"),
    ):
        with pytest.raises(DataError, match=message):
            capacity(good, bad, good, rng=np.random.default_rng(0))
