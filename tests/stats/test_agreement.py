import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap, spearmanr

from ice_eval.errors import DataError
from ice_eval.stats import agreement

WIN_RATES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=25)


def rates_around(mean, *, n=200, spread=0.1, seed=0):
    noise = np.random.default_rng(seed).uniform(-spread, spread, size=n)
    return mean + noise - noise.mean()


def test_gap_and_its_interval_are_those_of_the_paired_differences():
    first, second = np.random.default_rng(0).random((2, 25))
    result = agreement(first, second, rng=np.random.default_rng(1), n_resamples=999)
    theirs = bootstrap((first - second,), np.mean, n_resamples=999, rng=np.random.default_rng(1)).confidence_interval
    assert result.gap == pytest.approx(first.mean() - second.mean())
    assert result.gap_ci == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert result.rank_correlation == pytest.approx(spearmanr(first, second).statistic)


def test_operators_far_apart_cross_the_threshold_for_certain(rng):
    result = agreement(rates_around(0.8), rates_around(0.4, seed=1), rng=rng)
    assert (result.crosses_threshold, result.p_crosses, result.same_taxonomy) == ("confirmed", 1.0, False)
    swapped = agreement(rates_around(0.4, seed=1), rates_around(0.8), rng=rng)
    assert (swapped.crosses_threshold, swapped.gap) == ("confirmed", pytest.approx(-result.gap))


@pytest.mark.parametrize(("n_errors", "crossing"), [(1.8, "confirmed"), (1.5, "possible")])
def test_bounds_are_one_sided_at_95_percent(n_errors, crossing, rng):
    noise = rates_around(0.0, seed=1)
    error = noise.std() / np.sqrt(noise.size)
    # 1.645 standard errors below the threshold is where a one-sided bound meets it; a two-sided one needs 1.96.
    result = agreement(rates_around(0.8), 0.55 - n_errors * error + noise, rng=rng)
    assert result.crosses_threshold == crossing


def test_operators_on_the_same_side_do_not_cross(rng):
    result = agreement(rates_around(0.8), rates_around(0.7, seed=1), rng=rng)
    assert (result.crosses_threshold, result.p_crosses, result.same_taxonomy) == ("no", 0.0, True)


def test_a_mean_near_the_threshold_crosses_possibly(rng):
    result = agreement(rates_around(0.8), rates_around(0.5501, seed=1), rng=rng)
    assert result.crosses_threshold == "possible"  # the means are on one side, the resamples are not
    assert 0.05 < result.p_crosses < 0.95


def test_means_on_opposite_sides_cross_possibly_even_if_few_resamples_do(rng):
    first, second = np.r_[np.full(199, 0.55), 0.5499], np.full(200, 0.55)
    results = [agreement(first, second, rng=rng, n_resamples=1) for _ in range(20)]
    assert {result.p_crosses for result in results} == {0.0, 1.0}
    assert {result.crosses_threshold for result in results} == {"possible"}


def test_a_mean_at_the_threshold_belongs_to_the_upper_side(rng):
    for at in (0.55, np.nextafter(0.55, 0)):  # round-off included
        result = agreement(np.full(30, at), np.full(30, 0.8), rng=rng, n_resamples=99)
        assert (result.crosses_threshold, result.p_crosses) == ("no", 0.0)


def test_all_wins_against_all_losses_is_confirmed_by_the_exact_limits(rng):
    result = agreement(np.ones(40), np.zeros(40), rng=rng)
    assert (result.gap, result.gap_ci, result.crosses_threshold) == (1.0, None, "confirmed")


def test_without_spread_nothing_is_confirmed(rng):
    result = agreement(np.full(40, 0.9), np.full(40, 0.3), rng=rng)
    assert (result.crosses_threshold, result.p_crosses, result.gap_ci) == ("possible", 1.0, None)


def test_identical_operators_agree_in_every_resample(rng):
    values = rng.random(50)
    result = agreement(values, values, rng=rng)
    assert (result.gap, result.p_crosses, result.crosses_threshold) == (0.0, 0.0, "no")
    assert result.same_taxonomy and result.gap_ci is None
    assert result.rank_correlation == pytest.approx(1)


def test_threshold_can_be_moved(rng):
    first, second = rates_around(0.8), rates_around(0.7, seed=1)
    assert agreement(first, second, rng=rng, threshold=0.75).crosses_threshold == "confirmed"


@pytest.mark.parametrize(("first", "second"), [([0.5] * 4, [0.1, 0.2, 0.3, 0.4]), ([0.1], [0.9])])
def test_rank_correlation_of_a_constant_is_undefined_and_does_not_warn(first, second, rng):
    for one, other in ((first, second), (second, first)):
        assert agreement(np.array(one), np.array(other), rng=rng, n_resamples=9).rank_correlation is None


def test_two_examples_have_a_rank_correlation(rng):
    result = agreement(np.array([0.1, 0.9]), np.array([0.8, 0.2]), rng=rng, n_resamples=9)
    assert result.rank_correlation == pytest.approx(-1)


@settings(deadline=None)
@given(WIN_RATES, st.integers(0, 2**32))
def test_swapping_the_operators_mirrors_the_gap_and_keeps_the_rest(pairs, seed):
    first, second = np.array(pairs).T / 50
    there = agreement(first, second, rng=np.random.default_rng(seed), n_resamples=99)
    back = agreement(second, first, rng=np.random.default_rng(seed), n_resamples=99)
    assert there.gap == pytest.approx(-back.gap)
    assert (there.p_crosses, there.crosses_threshold, there.same_taxonomy) == (
        back.p_crosses,
        back.crosses_threshold,
        back.same_taxonomy,
    )
    assert (there.gap_ci is None) == (back.gap_ci is None)
    if there.gap_ci is not None and back.gap_ci is not None:
        assert there.gap_ci == pytest.approx((-back.gap_ci.high, -back.gap_ci.low), abs=1e-9)


def test_same_seed_gives_the_same_result(rng):
    first, second = rng.random((2, 30))
    results = [agreement(first, second, rng=np.random.default_rng(4), n_resamples=499) for _ in range(2)]
    assert results[0] == results[1]


def test_a_true_mean_on_one_side_is_seldom_confirmed_to_cross(rng):
    # The second operator sits on the threshold: each bound errs 5 % of the time.
    n_confirmed = 0
    for _ in range(300):
        first, second = rng.beta(8, 2, size=60), 0.55 + rng.uniform(-0.4, 0.4, size=60)
        n_confirmed += agreement(first, second, rng=rng, n_resamples=499).crosses_threshold == "confirmed"
    assert n_confirmed / 300 < 0.1


def test_bad_input_is_refused(rng):
    with pytest.raises(DataError, match="same examples on both sides, got 2 and 3"):
        agreement(np.ones(2), np.ones(3), rng=rng)
    with pytest.raises(DataError, match="at least one value"):
        agreement(np.array([]), np.array([]), rng=rng)
    with pytest.raises(DataError, match="1 of 2 values that are NaN"):
        agreement(np.array([0.1, np.nan]), np.ones(2), rng=rng)
