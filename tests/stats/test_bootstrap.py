import tracemalloc
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap, norm

from ice_eval.errors import DataError
from ice_eval.stats import (
    Interval,
    agreement,
    detectable_win_rate,
    difference_interval,
    interval_from_means,
    mean_interval,
    resampled_means,
)


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 5, 17, 60])
def test_interval_is_that_of_scipy_with_the_same_generator(n, level, method):
    values = np.random.default_rng(n).beta(2, 1, size=n)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=999, confidence_level=level, method=method, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = mean_interval(values, rng=np.random.default_rng(1), n_resamples=999, level=level, method=method)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_interval_of_tied_values_is_that_of_scipy():
    # Multiples of 1/8 over 16 examples: all means are exact, so scipy sees the same ties without any slack.
    values = np.random.default_rng(5).integers(0, 9, size=16) / 8
    theirs = bootstrap((values,), np.mean, n_resamples=1999, rng=np.random.default_rng(1)).confidence_interval
    ours = mean_interval(values, rng=np.random.default_rng(1), n_resamples=1999)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_round_off_does_not_move_the_bias_correction():
    # The same data on an exact and on an inexact grid must be corrected alike.
    exact = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    there = mean_interval(exact, rng=np.random.default_rng(0), n_resamples=999)
    scaled = mean_interval(exact * 0.1, rng=np.random.default_rng(0), n_resamples=999)
    assert scaled == pytest.approx((there.low * 0.1, there.high * 0.1))


def test_resampled_means_approach_those_of_every_resample(rng):
    values = np.array([0.1, 0.4, 0.9])
    every = np.array([np.mean(choice) for choice in product(values, repeat=3)])
    means = resampled_means(values, rng=rng, n_resamples=40_000)
    for level in np.unique(np.round(every, 9)):
        share = np.mean(np.isclose(every, level))
        assert binomtest(int(np.isclose(means, level).sum()), means.size, share).pvalue > 1e-4


@pytest.mark.parametrize("batch", [1, 7, 64, 5000])
@pytest.mark.parametrize("shape", [(33,), (33, 2)])
def test_resampled_means_do_not_depend_on_the_batch(batch, shape):
    values = np.random.default_rng(0).random(shape)
    whole = resampled_means(values, rng=np.random.default_rng(1), n_resamples=500)
    cut = resampled_means(values, rng=np.random.default_rng(1), n_resamples=500, batch=batch)
    np.testing.assert_array_equal(cut, whole)


def test_columns_are_resampled_together(rng):
    values = rng.random(20)
    means = resampled_means(np.stack([values, 1 - values], axis=1), rng=rng, n_resamples=200)
    assert means.shape == (200, 2)
    np.testing.assert_allclose(means.sum(axis=1), 1)


def test_a_column_has_the_means_it_would_have_alone():
    values = np.random.default_rng(0).random((20, 3))
    together = resampled_means(values, rng=np.random.default_rng(1), n_resamples=200)
    alone = resampled_means(values[:, 2], rng=np.random.default_rng(1), n_resamples=200)
    np.testing.assert_array_equal(together[:, 2], alone)


def test_memory_does_not_grow_with_the_number_of_resamples(rng):
    values = rng.random((2000, 2))
    tracemalloc.start()
    resampled_means(values, rng=rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20  # all the indices at once would be 160 MB


def test_all_ones_have_the_exact_lower_limit_and_all_zeros_its_mirror(rng):
    limit = 0.025 ** (1 / 40)
    assert mean_interval(np.ones(40), rng=rng) == Interval(limit, 1.0)
    assert mean_interval(np.zeros(40), rng=rng) == Interval(0.0, 1 - limit)
    exact = binomtest(40, 40).proportion_ci(0.95, method="exact")
    assert limit == pytest.approx(exact.low)


def test_the_exact_limit_follows_the_level(rng):
    assert mean_interval(np.ones(10), rng=rng, level=0.90) == Interval(pytest.approx(0.05**0.1), 1.0)


@pytest.mark.parametrize("values", [[0.7] * 9, [0.5] * 9, [0.3, 0.1 + 0.2], [2.0] * 5, [1.0], [0.4]])
def test_interval_without_spread_or_of_one_example_is_undefined(values, rng):
    assert mean_interval(np.array(values), rng=rng, n_resamples=99) is None


def test_values_outside_the_unit_range_have_an_ordinary_interval(rng):
    low, high = mean_interval(np.array([2.0, 3.0, 5.0, 1.5]), rng=rng)
    assert 1.5 < low < 2.875 < high < 5


def test_one_resample_still_gives_finite_limits(rng):
    assert np.isfinite(mean_interval(np.array([0.1, 0.2, 0.9]), rng=rng, n_resamples=1)).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=30), st.integers(0, 2**32))
def test_interval_lies_within_the_data_and_its_mirror_mirrors_it(grid, seed):
    values = np.array(grid) / 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = mean_interval(values, rng=np.random.default_rng(seed), n_resamples=99)
        back = mean_interval(1 - values, rng=np.random.default_rng(seed), n_resamples=99)
    if there is None:
        assert back is None
        return
    assert 0 <= there.low <= there.high <= 1
    assert back == pytest.approx((1 - there.high, 1 - there.low), abs=1e-9)


def test_interval_from_means_is_the_interval():
    values = np.random.default_rng(0).random(15)
    means = resampled_means(values, rng=np.random.default_rng(1), n_resamples=999)
    assert interval_from_means(values, means) == mean_interval(values, rng=np.random.default_rng(1), n_resamples=999)


def test_difference_interval_is_paired(rng):
    first = rng.random(50)
    low, high = difference_interval(first + 0.01 * rng.random(50), first, rng=rng)
    assert 0 < low < high < 0.01


def test_difference_interval_is_that_of_the_differences_in_scipy():
    first, second = np.random.default_rng(0).random((2, 20))
    theirs = bootstrap((first - second,), np.mean, n_resamples=999, rng=np.random.default_rng(1)).confidence_interval
    ours = difference_interval(first, second, rng=np.random.default_rng(1), n_resamples=999)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_a_difference_that_is_the_same_for_all_has_no_interval(rng):
    values = rng.random(9)
    assert difference_interval(values, values, rng=rng) is None
    assert difference_interval(values + 0.25, values, rng=rng) is None
    assert difference_interval(np.ones(9), np.zeros(9), rng=rng) is None


def test_bad_input_is_refused(rng):
    with pytest.raises(DataError, match="1 of 2 values that are NaN or infinite"):
        mean_interval(np.array([0.5, np.nan]), rng=rng)
    with pytest.raises(DataError, match="at least one value"):
        mean_interval(np.array([]), rng=rng)
    with pytest.raises(DataError, match=r"got an array of shape \(2, 2, 2\)"):
        resampled_means(np.ones((2, 2, 2)), rng=rng)
    with pytest.raises(DataError, match="n_resamples=0"):
        resampled_means(np.ones(3), rng=rng, n_resamples=0)
    with pytest.raises(DataError, match="confidence level lies between 0 and 1, got 95"):
        mean_interval(np.array([0.5, 0.6]), rng=rng, level=95)
    with pytest.raises(DataError, match="same examples on both sides, got 3 and 2"):
        difference_interval(np.ones(3), np.ones(2), rng=rng)


def grouped_values(*, n_groups=12, seed=0):
    """Values in groups of unequal size, the examples of a group not side by side."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(n_groups), rng.integers(0, n_groups, size=3 * n_groups)]
    return rng.beta(2, 1, size=labels.size), [f"text {label}" for label in rng.permutation(labels)]


def members_of(values, groups):
    return [
        [value for value, label in zip(values, groups, strict=True) if label == name] for name in dict.fromkeys(groups)
    ]


def cluster_means_by_hand(values, groups, *, rng, n_resamples):
    members = members_of(values, groups)
    rows = rng.integers(0, len(members), size=(n_resamples, len(members)))
    return [np.mean([value for i in row for value in members[i]]) for row in rows]


def cluster_bca_by_hand(values, groups, means, *, level):
    """Efron and Tibshirani's formulas, the jackknife a loop over groups."""
    members = members_of(values, groups)
    left_out = np.array(
        [np.mean([value for j, group in enumerate(members) if j != i for value in group]) for i in range(len(members))]
    )
    moved = left_out.mean() - left_out
    acceleration = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
    bias = norm.ppf(np.mean(means < np.mean(values)))
    shifted = bias + norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return np.quantile(means, norm.cdf(bias + shifted / (1 - acceleration * shifted)))


def test_resampled_means_of_groups_are_those_of_a_plain_cluster_bootstrap():
    values, groups = grouped_values()
    ours = resampled_means(values, rng=np.random.default_rng(1), n_resamples=300, groups=groups)
    by_hand = cluster_means_by_hand(values, groups, rng=np.random.default_rng(1), n_resamples=300)
    np.testing.assert_allclose(ours, by_hand, rtol=1e-12)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_interval_of_groups_leaves_out_whole_groups(level):
    values, groups = grouped_values()
    means = resampled_means(values, rng=np.random.default_rng(1), n_resamples=999, groups=groups)
    ours = mean_interval(values, rng=np.random.default_rng(1), n_resamples=999, groups=groups, level=level)
    assert ours == pytest.approx(cluster_bca_by_hand(values, groups, means, level=level), abs=1e-9)
    assert ours == interval_from_means(values, means, groups=groups, level=level)
    plain = mean_interval(
        values, rng=np.random.default_rng(1), n_resamples=999, groups=groups, method="percentile", level=level
    )
    assert plain == pytest.approx(np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))


def test_difference_interval_of_groups_is_that_of_the_differences():
    (first, groups), (second, _) = grouped_values(), grouped_values(seed=5)
    ours = difference_interval(first, second, rng=np.random.default_rng(1), n_resamples=999, groups=groups)
    theirs = mean_interval(first - second, rng=np.random.default_rng(1), n_resamples=999, groups=groups)
    assert ours == theirs
    assert agreement(first, second, rng=np.random.default_rng(1), n_resamples=999, groups=groups).gap_ci == (
        pytest.approx(theirs, abs=1e-9)
    )


def test_interval_of_groups_of_equal_size_is_that_of_their_means_in_scipy():
    values = np.random.default_rng(0).beta(2, 1, size=(15, 4))
    groups = np.repeat(np.arange(15), 4)
    theirs = bootstrap((values.mean(axis=1),), np.mean, n_resamples=999, rng=np.random.default_rng(1))
    ours = mean_interval(values.ravel(), rng=np.random.default_rng(1), n_resamples=999, groups=groups)
    assert ours == pytest.approx(theirs.confidence_interval, abs=1e-12)


def test_groups_of_one_change_no_bit():
    first, second = np.random.default_rng(0).random((2, 20))
    alone = [f"text {i}" for i in range(20)]
    for estimate in (
        lambda groups: mean_interval(first, rng=np.random.default_rng(1), n_resamples=99, groups=groups),
        lambda groups: difference_interval(first, second, rng=np.random.default_rng(1), n_resamples=99, groups=groups),
        lambda groups: agreement(first, second, rng=np.random.default_rng(1), n_resamples=99, groups=groups),
        lambda groups: detectable_win_rate(first, groups=groups),
    ):
        assert estimate(alone) == estimate(None) == estimate(np.arange(20))


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_resampled_means_of_groups_do_not_depend_on_the_batch(batch):
    values, groups = grouped_values()
    pairs = np.stack([values, 1 - values], axis=1)
    whole = resampled_means(pairs, rng=np.random.default_rng(1), n_resamples=500, groups=groups)
    cut = resampled_means(pairs, rng=np.random.default_rng(1), n_resamples=500, groups=groups, batch=batch)
    np.testing.assert_array_equal(cut, whole)
    np.testing.assert_allclose(whole.sum(axis=1), 1)


def test_exact_limits_count_groups(rng):
    groups = np.repeat(np.arange(10), 4)
    assert mean_interval(np.ones(40), rng=rng, groups=groups) == Interval(0.025**0.1, 1.0)
    assert mean_interval(np.zeros(40), rng=rng, groups=groups) == Interval(0.0, 1 - 0.025**0.1)


def test_one_group_or_groups_with_the_same_mean_have_no_interval(rng):
    values = np.array([0.2, 0.8, 0.4, 0.6, 0.5, 0.5])
    assert mean_interval(values, rng=rng, n_resamples=99, groups=["a"] * 6) is None
    assert mean_interval(np.ones(6), rng=rng, n_resamples=99, groups=["a"] * 6) is None
    assert mean_interval(values, rng=rng, n_resamples=99, groups=[1, 1, 2, 2, 3, 3]) is None


def test_missing_labels_are_refused(rng):
    with pytest.raises(DataError, match="one group label per example, got 2 for 3 examples"):
        resampled_means(np.ones(3), rng=rng, groups=[1, 2])
    with pytest.raises(DataError, match="1 of 2 that are None or NaN"):
        mean_interval(np.array([0.1, 0.2]), rng=rng, groups=["a", None])


def n_covered_in_groups(rng, *, n_groups, told, n_data_sets, n_resamples):
    """Groups of 1 to 9 win rates around a value of their own, with a mean of 2/3 in all."""
    covered = 0
    for _ in range(n_data_sets):
        groups = np.repeat(np.arange(n_groups), rng.integers(1, 10, size=n_groups))
        values = rng.binomial(50, rng.beta(2, 1, size=n_groups)[groups]) / 50
        interval = mean_interval(values, rng=rng, n_resamples=n_resamples, groups=groups if told else None)
        covered += interval.low <= 2 / 3 <= interval.high
    return covered


def test_interval_of_groups_covers_about_95_percent_and_one_that_ignores_them_does_not(rng):
    told = n_covered_in_groups(rng, n_groups=50, told=True, n_data_sets=500, n_resamples=499)
    not_told = n_covered_in_groups(rng, n_groups=50, told=False, n_data_sets=200, n_resamples=499)
    assert 0.91 < told / 500 < 0.98
    assert not_told / 200 < 0.75


@pytest.mark.slow
def test_interval_of_groups_covers_95_percent_over_many_data_sets(rng):
    told = n_covered_in_groups(rng, n_groups=100, told=True, n_data_sets=4000, n_resamples=1999)
    assert abs(told / 4000 - 0.95) < 0.015


def n_covered(rng, *, n, n_data_sets, n_resamples):
    """Win rates with a mean of 2/3 on the grid of 50 random sets."""
    covered = 0
    for _ in range(n_data_sets):
        values = rng.binomial(50, rng.beta(2, 1, size=n)) / 50
        low, high = mean_interval(values, rng=rng, n_resamples=n_resamples)
        covered += low <= 2 / 3 <= high
    return covered


def test_interval_covers_about_95_percent(rng):
    assert 0.92 < n_covered(rng, n=60, n_data_sets=800, n_resamples=999) / 800 < 0.975


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200])
def test_interval_covers_95_percent_over_many_data_sets(n, rng):
    assert abs(n_covered(rng, n=n, n_data_sets=4000, n_resamples=1999) / 4000 - 0.95) < 0.015
