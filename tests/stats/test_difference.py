"""Differences of two mean win rates: against scipy, and calibrated where nothing differs."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ice_eval import stats
from ice_eval.errors import DataError


def win_rates(rng, n, *, m=20):
    """Win rates of rationales that are a little better than random, on the grid that m random sets allow."""
    return rng.binomial(m, rng.beta(3, 2, n)) / m


def test_interval_and_p_value_are_those_of_the_differences_on_their_scale(rng):
    first, second = win_rates(rng, 30), win_rates(rng, 30)
    found = stats.paired_difference(first, second)
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert found.interval == stats.mean_interval(second - first, scale=(-1.0, 1.0))
    assert found.p_value == stats.mean_pvalue(second - first, 0.0, scale=(-1.0, 1.0))
    back = stats.paired_difference(second, first)
    assert back.interval == pytest.approx((-found.interval.high, -found.interval.low))
    assert back.p_value == pytest.approx(found.p_value)


def test_the_unpaired_difference_is_welchs(rng):
    first, second = win_rates(rng, 40), 0.3 + 0.2 * win_rates(rng, 25)
    welch = scipy_stats.ttest_ind(second, first, equal_var=False)
    found = stats.unpaired_difference(first, second)
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert found.p_value == pytest.approx(welch.pvalue)
    assert found.interval == pytest.approx(tuple(welch.confidence_interval(0.95)))


def test_groups_of_one_change_nothing_and_copies_add_nothing(rng):
    first, second = win_rates(rng, 20), win_rates(rng, 30)
    alone = stats.unpaired_difference(first, second)
    assert stats.unpaired_difference(first, second, first_groups=range(20), second_groups=range(30)) == alone
    copied = stats.unpaired_difference(
        np.repeat(first, 3),
        np.repeat(second, 3),
        first_groups=np.repeat(np.arange(20), 3),
        second_groups=np.repeat(np.arange(30), 3),
    )
    assert copied.p_value == pytest.approx(alone.p_value)
    assert copied.interval == pytest.approx(alone.interval)


def test_copies_in_a_group_add_nothing(rng):
    first, second = win_rates(rng, 12), win_rates(rng, 12)
    alone = stats.paired_difference(first, second)
    copied = stats.paired_difference(np.repeat(first, 5), np.repeat(second, 5), groups=np.repeat(np.arange(12), 5))
    assert copied.p_value == pytest.approx(alone.p_value)
    assert copied.interval == pytest.approx(alone.interval)


def test_nothing_changed(rng):
    rates = win_rates(rng, 20)
    found = stats.paired_difference(rates, rates)
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.interval.low == pytest.approx(-found.interval.high) and found.interval.low < 0


def test_without_spread_or_with_one_example_nothing_is_claimed():
    one, many = np.array([0.7]), np.full(9, 0.4)
    low, high = stats.paired_difference(one, one + 0.1).interval
    assert low < -0.9 and high > 0.9  # one example says next to nothing about a mean
    assert stats.unpaired_difference(one, many).p_value is None
    flat = stats.unpaired_difference(many + 0.2, many)
    assert (flat.interval, flat.p_value) == (None, None)
    assert flat.difference == pytest.approx(-0.2)


def test_a_true_change_is_found_and_has_the_sign_of_what_was_gained(rng):
    first = win_rates(rng, 200) / 2
    found = stats.paired_difference(first, first + 0.1 + 0.1 * rng.random(200))
    assert found.p_value < 1e-4
    assert 0.09 < found.interval.low < found.difference < found.interval.high < 0.2


def test_bad_values_are_refused():
    with pytest.raises(DataError, match="same examples on both sides"):
        stats.paired_difference(np.zeros(3), np.zeros(4))
    with pytest.raises(DataError, match="finite"):
        stats.unpaired_difference(np.zeros(3), np.array([0.1, np.nan]))


N_TRIALS = 500


@pytest.mark.parametrize("n", [10, 20, 60])
@pytest.mark.parametrize("kind", ["alike", "skewed"])
def test_paired_differences_of_zero_are_seldom_found(rng, kind, n):
    """Skewed: nine of ten examples lose a little, and one gains much."""
    rejected = 0
    for _ in range(N_TRIALS):
        if kind == "alike":
            chances = rng.beta(3, 2, n)  # examples differ, and both runs find them as hard
            first, second = (rng.binomial(20, chances) / 20 for _ in range(2))
        else:
            first = 0.3 + 0.1 * rng.random(n)
            second = first + np.where(rng.random(n) < 0.1, 0.45, -0.05)
        found = stats.paired_difference(first, second)
        rejected += found.p_value <= 0.05
    assert scipy_stats.binomtest(rejected, N_TRIALS, 0.05, alternative="greater").pvalue > 0.001


def test_calibration_of_unpaired_runs_that_do_not_differ(rng):
    found = [stats.unpaired_difference(win_rates(rng, 60), win_rates(rng, 35)) for _ in range(N_TRIALS)]
    # Bounds that a calibrated method leaves less than once in a thousand seeds.
    covered = sum(each.interval.low <= 0 <= each.interval.high for each in found)
    assert scipy_stats.binomtest(covered, N_TRIALS, 0.95).pvalue > 0.001
    assert scipy_stats.kstest([each.p_value for each in found], "uniform").pvalue > 0.001


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_limits_of_a_difference_hold_and_are_wider_for_the_same_examples(shared, rng):
    covered, runs, n = 0, 800, 40
    limits = [stats.mean_interval((np.arange(n) < count).astype(float)) for count in range(n + 1)]
    for _ in range(runs):
        common = rng.random((n, 1)) < shared
        first, second = np.where(common, rng.random((n, 1)), rng.random((n, 2))).T < [[0.7], [0.4]]
        means = [float(values.mean()) for values in (first, second)]
        ends = [limits[np.count_nonzero(values)] for values in (first, second)]
        found = stats.difference_limits(means[0], ends[0], means[1], ends[1])
        assert found.low <= means[0] - means[1] <= found.high
        covered += found.low <= 0.3 <= found.high
    assert covered / runs >= (0.94 if shared == 0 else 0.97)
