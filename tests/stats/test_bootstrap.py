import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap

from ice_eval.errors import DataError
from ice_eval.stats import _values, percentile_interval, resampled_means


@pytest.mark.parametrize("n", [2, 5, 17, 60])
def test_percentile_interval_is_that_of_scipy_with_the_same_generator(n):
    values = np.random.default_rng(n).beta(2, 1, size=n)
    theirs = bootstrap((values,), np.mean, n_resamples=200, method="percentile", rng=np.random.default_rng(1))
    ours = percentile_interval(values, rng=np.random.default_rng(1))
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)


def test_percentile_interval_of_groups_is_that_of_the_cluster_bootstrap():
    values, groups = grouped_values()
    means = cluster_means_by_hand(values, groups, rng=np.random.default_rng(1), n_resamples=200)
    ours = percentile_interval(values, rng=np.random.default_rng(1), groups=groups)
    assert ours == pytest.approx(np.quantile(means, [0.025, 0.975]))


def test_resampled_means_approach_those_of_every_resample(rng):
    values = np.array([0.1, 0.4, 0.9])
    every = np.array([np.mean(choice) for choice in product(values, repeat=3)])
    means = resampled_means(values, rng=rng, n_resamples=40_000)
    for level in np.unique(np.round(every, 9)):
        share = np.mean(np.isclose(every, level))
        assert binomtest(int(np.isclose(means, level).sum()), means.size, share).pvalue > 1e-4


@pytest.mark.parametrize("batch", [2, 6, 64, 5000])
@pytest.mark.parametrize("shape", [(33,), (33, 2)])
def test_resampled_means_do_not_depend_on_the_batch(batch, shape, monkeypatch):
    values = np.random.default_rng(0).random(shape)
    whole = resampled_means(values, rng=np.random.default_rng(1), n_resamples=500)
    monkeypatch.setattr(_values, "_CELLS_PER_BATCH", batch * len(values))
    cut = resampled_means(values, rng=np.random.default_rng(1), n_resamples=500)
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


def test_resampled_means_of_groups_are_those_of_a_plain_cluster_bootstrap():
    values, groups = grouped_values()
    ours = resampled_means(values, rng=np.random.default_rng(1), n_resamples=300, groups=groups)
    by_hand = cluster_means_by_hand(values, groups, rng=np.random.default_rng(1), n_resamples=300)
    np.testing.assert_allclose(ours, by_hand, rtol=1e-12)


@pytest.mark.parametrize("batch", [2, 6, 5000])
def test_resampled_means_of_groups_do_not_depend_on_the_batch(batch, monkeypatch):
    values, groups = grouped_values()
    pairs = np.stack([values, 1 - values], axis=1)
    whole = resampled_means(pairs, rng=np.random.default_rng(1), n_resamples=500, groups=groups)
    monkeypatch.setattr(_values, "_CELLS_PER_BATCH", batch * len(set(groups)))
    cut = resampled_means(pairs, rng=np.random.default_rng(1), n_resamples=500, groups=groups)
    np.testing.assert_array_equal(cut, whole)
    np.testing.assert_allclose(whole.sum(axis=1), 1)


def test_bad_input_is_refused(rng):
    with pytest.raises(DataError, match="1 of 2 values that are NaN or infinite"):
        percentile_interval(np.array([0.5, np.nan]), rng=rng)
    with pytest.raises(DataError, match=r"got an array of shape \(2, 2, 2\)"):
        resampled_means(np.ones((2, 2, 2)), rng=rng)
    with pytest.raises(DataError, match="n_resamples=0"):
        resampled_means(np.ones(3), rng=rng, n_resamples=0)
    with pytest.raises(DataError, match="one group label per example, got 2 for 3 examples"):
        resampled_means(np.ones(3), rng=rng, groups=[1, 2])
