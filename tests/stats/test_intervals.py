"""Betting intervals of bounded means: by hand, against scipy, their properties, and their level."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, bootstrap, t, ttest_1samp

from ice_eval.errors import DataError
from ice_eval.stats import Interval, excludes_chance, mean_interval, mean_pvalue, unbounded_interval
from ice_eval.stats.intervals import ENOUGH, half_width


def test_a_p_value_is_never_zero_however_many_examples_there_are():
    values = np.tile([0.9, 1.0], 20_000)
    assert 0 < mean_pvalue(values, 0.5) < 1e-300
    assert 0 < mean_pvalue(values, 0.5, anytime=True) < 1e-300


GRIDS = st.lists(st.integers(0, 20), min_size=1, max_size=80)


def win_rates(rng, n, *, m=50):
    """Win rates with a mean of 2/3 on the grid of `m` random sets."""
    return rng.binomial(m, rng.beta(2, 1, size=n)) / m


def wealth_by_hand(values, mean, share):
    """The wealth of one gambler, value by value."""
    wealth = 1.0
    for value in values:
        wealth *= 1 + share * (value / mean - 1)
    return wealth


@pytest.mark.parametrize("n", [1, 2, 7, 25, 49])
def test_limits_of_few_values_are_where_four_gamblers_have_won_forty_times_their_stake(n, rng):
    values = win_rates(rng, n)
    low, high = mean_interval(values)
    for mean, own in ((low, values), (1 - high, 1 - values)):
        assert np.mean([wealth_by_hand(own, mean, share) for share in (0.25, 0.5, 0.75, 1.0)]) == pytest.approx(40)


@pytest.mark.parametrize("n", [50, 120, 400])
def test_limits_of_many_values_are_those_of_the_empirical_likelihood(n, rng):
    values = win_rates(rng, n)
    low, high = mean_interval(values)
    for mean, own in ((low, values), (1 - high, 1 - values)):
        best = minimize_scalar(
            lambda share, mean=mean, own=own: -np.log1p(share * (own / mean - 1)).sum(), bounds=(0, 1), method="bounded"
        )
        critical = min(t.ppf(0.975, n * (1 - mean) / 3) ** 2 / 2, math.log(40))
        assert -best.fun == pytest.approx(critical, rel=0.005)


def test_all_wins_have_the_limit_of_the_boldest_gambler():
    # Who stakes all has (1 / m)^10; the other three hardly count.
    low, high = mean_interval(np.ones(10))
    assert high == 1.0
    assert (0.025) ** 0.1 * 4**-0.1 < low < 0.025**0.1
    assert mean_interval(np.zeros(10)) == pytest.approx((0.0, 1 - low))
    # From fifty on it is the exact limit of Clopper and Pearson.
    exact = binomtest(80, 80).proportion_ci(0.95, method="exact")
    assert mean_interval(np.ones(80)) == pytest.approx((exact.low, 1.0), abs=1e-6)


@pytest.mark.parametrize("n", [2, 5, 20, 49, 50, 51, 500])
@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 0.65, 1.0])
def test_equal_values_need_no_rule_of_their_own(n, value):
    low, high = mean_interval(np.full(n, value))
    assert 0 <= low <= value <= high <= 1 and low < high
    moved = mean_interval(np.r_[np.full(n - 1, value), abs(value - 1e-9)])
    assert moved == pytest.approx((low, high), abs=1e-6)


@settings(deadline=None, max_examples=200)
@given(GRIDS, st.data())
def test_raising_a_value_never_lowers_a_limit(grid, data):
    values = np.array(grid) / 20
    raised = values.copy()
    place = data.draw(st.integers(0, len(grid) - 1))
    raised[place] = data.draw(st.integers(grid[place], 20)) / 20
    before, after = mean_interval(values), mean_interval(raised)
    assert after.low >= before.low - 1e-9 and after.high >= before.high - 1e-9


@settings(deadline=None)
@given(GRIDS, st.integers(0, 2**32))
def test_intervals_lie_on_the_scale_hold_the_mean_and_mirror_each_other(grid, seed):
    values = np.array(grid) / 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there, back = mean_interval(values), mean_interval(1 - values)
        shuffled = mean_interval(np.random.default_rng(seed).permutation(values))
    assert 0 <= there.low <= values.mean() + 1e-9 and values.mean() - 1e-9 <= there.high <= 1
    assert back == pytest.approx((1 - there.high, 1 - there.low), abs=1e-9)
    assert shuffled == pytest.approx(there, abs=1e-9)  # the order of examples says nothing


@settings(deadline=None)
@given(GRIDS, st.sampled_from([0.8, 0.9, 0.99, 0.999]))
def test_a_higher_level_has_a_wider_interval(grid, level):
    values = np.array(grid) / 20
    inner, outer = (mean_interval(values, level=each) for each in sorted((0.95, level)))
    assert outer.low <= inner.low + 1e-12 and inner.high <= outer.high + 1e-12


@settings(deadline=None, max_examples=150)
@given(GRIDS, st.integers(1, 19), st.sampled_from([0.8, 0.95, 0.99]), st.booleans())
def test_a_mean_is_excluded_just_where_its_p_value_is_small(grid, target, level, anytime):
    values, mean = np.array(grid) / 20, target / 20
    low, high = mean_interval(values, level=level, anytime=anytime)
    p_value = mean_pvalue(values, mean, anytime=anytime)
    assert 0 < p_value <= 1
    if min(abs(low - mean), abs(high - mean)) > 1e-9:
        assert (p_value <= 1 - level) == (not low <= mean <= high)


def test_p_values_at_the_ends_of_the_scale():
    assert mean_pvalue(np.array([0.0, 0.0]), 0.0) == 1.0
    assert mean_pvalue(np.array([0.0, 0.1]), 0.0) == 0.0
    assert mean_pvalue(np.array([1.0, 1.0]), 1.0) == 1.0


def test_another_scale_moves_the_interval_with_the_values(rng):
    values = win_rates(rng, 30)
    low, high = mean_interval(values)
    assert mean_interval(4 * values - 1, scale=(-1.0, 3.0)) == pytest.approx((4 * low - 1, 4 * high - 1))
    assert mean_pvalue(4 * values - 1, 1.0, scale=(-1.0, 3.0)) == pytest.approx(mean_pvalue(values, 0.5))


def test_from_fifty_values_on_the_interval_is_as_wide_as_bca(rng):
    for n, wider in ((50, 1.3), (100, 1.2), (500, 1.05)):
        widths = []
        for _ in range(8):
            values = win_rates(rng, n)
            low, high = mean_interval(values)
            theirs = bootstrap((values,), np.mean, n_resamples=1999, rng=rng).confidence_interval
            widths.append((high - low) / (theirs.high - theirs.low))
        assert 0.97 < np.mean(widths) < wider


@pytest.mark.parametrize("n", [20, 49, 50, 60, 200])
def test_half_width_is_that_of_benign_win_rates_near_one_half(n, rng):
    widths = []
    for _ in range(20):
        values = rng.binomial(50, rng.beta(1.5, 1.5, size=n)) / 50
        low, high = mean_interval(values)
        widths.append((high - low) / 2 / (values.std(ddof=1) / np.sqrt(n)))
    assert half_width(n) == pytest.approx(np.mean(widths), rel=0.08)


def test_looking_at_any_time_takes_the_bets_of_few_values(rng):
    values = win_rates(rng, 300)
    fixed, anytime = mean_interval(values), mean_interval(values, anytime=True)
    assert anytime.low < fixed.low and fixed.high < anytime.high
    assert mean_interval(values[:40]) == mean_interval(values[:40], anytime=True)


def test_looking_after_every_ten_values_errs_in_at_most_five_percent(rng):
    n_trials = n_wrong = n_fixed = 0
    for _ in range(200):
        values = rng.binomial(20, rng.beta(1.5, 1.0, size=200)) / 20  # mean 0.6
        looks = range(10, 201, 10)
        # A mean is excluded just where its p-value is small, as another test asserts, and p-values are faster.
        n_wrong += any(mean_pvalue(values[:n], 0.6, anytime=True) <= 0.05 for n in looks)
        n_fixed += any(mean_pvalue(values[:n], 0.6) <= 0.05 for n in looks)
        n_trials += 1
    assert binomtest(n_wrong, n_trials, 0.05, alternative="greater").pvalue > 0.001
    assert n_fixed > n_wrong


# --- groups --------------------------------------------------------------------------------------------------------


def test_groups_of_one_change_nothing(rng):
    values = win_rates(rng, 70)
    assert mean_interval(values, groups=np.arange(70)) == mean_interval(values)
    assert mean_pvalue(values, 0.5, groups=[f"text {i}" for i in range(70)]) == mean_pvalue(values, 0.5)


@pytest.mark.parametrize("n", [12, 80])
def test_groups_of_equal_size_are_their_means(n, rng):
    values = rng.beta(2, 1, size=(n, 4))
    groups = np.repeat(np.arange(n), 4)
    assert mean_interval(values.ravel(), groups=groups) == pytest.approx(mean_interval(values.mean(axis=1)))


def test_unequal_groups_are_bets_in_proportion_to_their_size():
    values, groups = np.array([1.0, 0.8, 0.9, 0.2, 0.7]), ["a", "a", "a", "b", "c"]
    low, _ = mean_interval(values, groups=groups)
    wealth = [
        (1 + c * (0.9 / low - 1)) * (1 + c / 3 * (0.2 / low - 1)) * (1 + c / 3 * (0.7 / low - 1))
        for c in (0.25, 0.5, 0.75, 1.0)
    ]
    assert np.mean(wealth) == pytest.approx(40)


def test_unequal_groups_count_as_fewer(rng):
    # Sixty groups, one of which has most of the examples: hardly more than one observation.
    groups = np.r_[np.zeros(200, dtype=int), np.arange(1, 60)]
    low, high = mean_interval(win_rates(rng, 259), groups=groups)
    assert high - low > 0.3
    assert ENOUGH > 259**2 / (200**2 + 59)


@pytest.mark.parametrize("n_groups", [6, 12, 60])
def test_intervals_of_unequal_groups_cover_and_those_that_ignore_them_do_not(n_groups, rng):
    covered = ignored = 0
    for _ in range(300):
        groups = np.repeat(np.arange(n_groups), rng.integers(1, 10, size=n_groups))
        values = rng.binomial(50, rng.beta(2, 1, size=n_groups)[groups]) / 50
        covered += mean_pvalue(values, 2 / 3, groups=groups) > 0.05
        ignored += mean_pvalue(values, 2 / 3) > 0.05
    assert binomtest(covered, 300, 0.95, alternative="less").pvalue > 0.001
    assert n_groups < 60 or ignored / 300 < 0.8


# --- level ---------------------------------------------------------------------------------------------------------


def skewed(rng, shape):
    """Win rates with a mean of 0.6, one example in ten at 0."""
    return np.where(rng.random(shape) < 0.1, 0.0, rng.binomial(50, rng.beta(20, 10, size=shape)) / 50)


@pytest.mark.parametrize("n", [5, 10, 20, 50, 100])
def test_skewed_win_rates_are_seldom_put_above_their_mean(n, rng):
    values = skewed(rng, (600, n))
    above = sum(mean_pvalue(row, 0.6) <= 0.05 and row.mean() > 0.6 for row in values)
    assert binomtest(above, 600, 0.025, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("n", [5, 30, 60, 200])
def test_intervals_near_the_ceiling_cover(n, rng):
    values = np.where(rng.random((600, n)) < 0.05, 0.0, 1.0)
    covered = sum(mean_pvalue(row, 0.95) > 0.05 for row in values)
    assert binomtest(covered, 600, 0.95, alternative="less").pvalue > 0.001


def test_an_interval_of_many_values_covers_about_95_percent(rng):
    covered = sum(mean_pvalue(win_rates(rng, 300), 2 / 3) > 0.05 for _ in range(1500))
    assert 0.935 < covered / 1500 < 0.97


# --- values without a scale, and bad ones ---------------------------------------------------------------------------


def test_values_without_a_scale_have_the_interval_of_students_t(rng):
    losses = rng.exponential(size=25)
    assert unbounded_interval(losses) == pytest.approx(tuple(ttest_1samp(losses, 0).confidence_interval(0.95)))
    copies = unbounded_interval(np.repeat(losses, 3), groups=np.repeat(np.arange(25), 3))
    assert copies == pytest.approx(unbounded_interval(losses))
    assert unbounded_interval(np.array([0.3])) is None and unbounded_interval(np.full(4, 7.0)) is None


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="1 of 2 values that are NaN or infinite"):
        mean_interval(np.array([0.5, np.nan]))
    with pytest.raises(DataError, match="at least one value"):
        mean_interval(np.array([]))
    with pytest.raises(DataError, match="confidence level lies between 0 and 1, got 95"):
        mean_interval(np.array([0.5, 0.6]), level=95)
    with pytest.raises(DataError, match="need values on the scale of their mean"):
        mean_interval(np.array([0.5, 62.4]))
    with pytest.raises(DataError, match="need values on the scale of their mean"):
        mean_pvalue(np.array([-0.2, 0.4]), 0.5)
    with pytest.raises(DataError, match="1 of 2 that are None or NaN"):
        mean_interval(np.array([0.1, 0.2]), groups=["a", None])


def test_five_texts_that_all_won_show_less_than_six_and_never_more_than_with_one_lost():
    five, lost = mean_interval(np.ones(5)), mean_interval(np.array([1, 1, 1, 1, 0.9]))
    assert lost.low < five.low and isinstance(five, Interval)
    assert not excludes_chance(five)
