"""Differences of two mean win rates: against scipy, and calibrated where nothing differs."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ice_eval import stats
from ice_eval.errors import DataError


def win_rates(rng, n, *, m=20):
    """Win rates of rationales that are a little better than random, on the grid that m random sets allow."""
    return rng.binomial(m, rng.beta(3, 2, n)) / m


def test_the_paired_test_is_scipys_permutation_of_pairs(rng):
    first, second = win_rates(rng, 11), win_rates(rng, 11)
    exact = scipy_stats.permutation_test(
        (second - first,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    found = stats.paired_difference(first, second, rng=rng, n_draws=40_000)
    assert found.difference == pytest.approx(exact.statistic)
    assert found.p_value == pytest.approx(exact.pvalue, abs=0.01)


def test_the_paired_interval_is_that_of_operators_and_attributions(rng):
    first, second = win_rates(rng, 30), win_rates(rng, 30)
    found = stats.paired_difference(first, second, rng=np.random.default_rng(7))
    assert found.interval == stats.difference_interval(second, first, rng=np.random.default_rng(7))


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


def test_groups_flip_together(rng):
    first, second = win_rates(rng, 12), win_rates(rng, 12)
    alone = stats.paired_difference(first, second, rng=np.random.default_rng(1))
    copied = stats.paired_difference(
        np.repeat(first, 5), np.repeat(second, 5), rng=np.random.default_rng(1), groups=np.repeat(np.arange(12), 5)
    )
    assert copied.p_value == pytest.approx(alone.p_value, abs=1e-9)


def test_nothing_changed(rng):
    rates = win_rates(rng, 20)
    assert stats.paired_difference(rates, rates, rng=rng) == stats.Difference(0.0, None, 1.0)


def test_without_spread_or_with_one_example_nothing_is_claimed(rng):
    one, many = np.array([0.7]), np.full(9, 0.4)
    assert stats.paired_difference(one, one + 0.1, rng=rng).interval is None
    assert stats.unpaired_difference(one, many).p_value is None
    flat = stats.unpaired_difference(many + 0.2, many)
    assert (flat.interval, flat.p_value) == (None, None)
    assert flat.difference == pytest.approx(-0.2)


def test_a_true_change_is_found_and_has_the_sign_of_what_was_gained(rng):
    first = win_rates(rng, 60) / 2
    found = stats.paired_difference(first, first + 0.1 + 0.1 * rng.random(60), rng=rng)
    assert found.p_value == 1 / 10_000
    assert 0.1 < found.interval.low < found.difference < found.interval.high < 0.2


def test_bad_values_are_refused(rng):
    with pytest.raises(DataError, match="same examples on both sides"):
        stats.paired_difference(np.zeros(3), np.zeros(4), rng=rng)
    with pytest.raises(DataError, match="at least one resample"):
        stats.paired_difference(np.zeros(3), np.zeros(3), rng=rng, n_draws=0)
    with pytest.raises(DataError, match="finite"):
        stats.unpaired_difference(np.zeros(3), np.array([0.1, np.nan]))


N_TRIALS = 500


@pytest.mark.parametrize("kind", ["paired", "unpaired"])
def test_calibration_of_runs_that_do_not_differ(rng, kind):
    """P-values are uniform, and about 95 % of the intervals cover 0 (94 % with a bootstrap of 60 examples)."""
    p_values, covered = [], 0
    for _ in range(N_TRIALS):
        if kind == "paired":
            chances = rng.beta(3, 2, 60)  # examples differ, and both runs find them as hard
            first, second = (rng.binomial(20, chances) / 20 for _ in range(2))
            found = stats.paired_difference(first, second, rng=rng, n_draws=499)
        else:
            found = stats.unpaired_difference(win_rates(rng, 60), win_rates(rng, 35))
        p_values.append(found.p_value)
        covered += found.interval.low <= 0 <= found.interval.high
    # Bounds that a calibrated method leaves less than once in a thousand seeds.
    assert scipy_stats.binomtest(covered, N_TRIALS, 0.94).pvalue > 0.001
    assert scipy_stats.kstest(p_values, "uniform").pvalue > 0.001
    rejected = sum(p <= 0.05 for p in p_values)
    assert scipy_stats.binomtest(rejected, N_TRIALS, 0.05).pvalue > 0.001
