import numpy as np
import pytest
from scipy.stats import kstest, pearsonr, spearmanr

from ice_eval.errors import DataError
from ice_eval.stats import correlate, correlation_pvalue, detectable_correlation


def test_p_value_is_that_of_the_pairs_themselves():
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    y = x + 2 * rng.normal(size=30)
    found = pearsonr(x, y)
    assert correlation_pvalue(float(found.statistic), 30) == pytest.approx(float(found.pvalue))
    assert correlation_pvalue(-0.3, 20) == correlation_pvalue(0.3, 20)


def test_the_detectable_correlation_is_found_four_times_in_five():
    rng, n = np.random.default_rng(1), 50
    r = detectable_correlation(n)
    x = rng.normal(size=(4000, n))
    y = r * x + np.sqrt(1 - r**2) * rng.normal(size=x.shape)
    found = pearsonr(x, y, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_impossible_input_is_refused():
    with pytest.raises(DataError, match="between -1 and 1"):
        correlation_pvalue(1.0, 10)
    with pytest.raises(DataError, match="at least 3 pairs"):
        correlation_pvalue(0.1, 2)
    with pytest.raises(DataError, match="at least 4 pairs"):
        detectable_correlation(3)


def pairs(n, seed, r=0.5):
    x, noise = np.random.default_rng(seed).normal(size=(2, n))
    return x, r * x + np.sqrt(1 - r**2) * noise


def test_coefficients_intervals_and_p_values_are_those_of_scipy():
    x, y = pairs(40, seed=2)
    rng = np.random.default_rng(0)
    found, expected = correlate(x, y, rng=rng), pearsonr(x, y)
    assert (found.n, found.r, found.p_value) == (40, pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert found.detectable == detectable_correlation(40)
    found, expected = (
        correlate(x.round(1), y.round(1), rng=rng, coefficient="spearman"),
        spearmanr(x.round(1), y.round(1)),
    )
    assert (found.r, found.p_value) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_intervals_cover_the_truth_and_p_values_are_uniform(coefficient):
    """Pairs as plausibility has them: a few values of overlap, win rates in steps of 1/20."""
    rng, n, p_values, covered = np.random.default_rng(3), 50, [], 0
    for _ in range(400):
        overlaps = rng.hypergeometric(4, 16, 4, size=n) / 8
        found = correlate(overlaps, rng.binomial(20, 0.5, size=n) / 20, rng=rng, coefficient=coefficient)
        p_values.append(found.p_value)
        covered += found.interval.low <= 0 <= found.interval.high
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert covered / 400 == pytest.approx(0.95, abs=0.03)


def test_grouped_pairs_get_a_wider_interval_and_no_p_value():
    x, y = (np.repeat(column, 4) for column in pairs(30, seed=4))
    rng = np.random.default_rng(0)
    alone = correlate(x, y, rng=rng)
    found = correlate(x, y, rng=rng, groups=np.repeat(np.arange(30), 4).tolist())
    assert found.r == pytest.approx(alone.r)
    assert found.p_value is None
    assert found.detectable == detectable_correlation(30)
    assert found.interval.high - found.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


@pytest.mark.parametrize("seed", [0, 27, 40])  # r of the last two is 1 up to round-off only
def test_pairs_on_a_line_have_the_share_of_pairings_as_p_value(seed):
    x = np.random.default_rng(seed).normal(size=4)
    found = correlate(x, 0.3 * x + 0.1, rng=np.random.default_rng(0))
    assert (found.r, found.p_value) == (pytest.approx(1), pytest.approx(2 / 24))
    assert found.interval is None


def test_p_values_too_small_for_a_float_are_still_above_0():
    assert 0 < correlation_pvalue(0.98, 500) < 1e-300
    x = np.arange(500.0)
    noise = np.random.default_rng(0).normal(size=500)
    assert correlate(x, x + noise, rng=np.random.default_rng(0)).p_value > 0


@pytest.mark.parametrize(("x", "y"), [([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]), ([1, 2, 3], [1, 2, 4])])
def test_what_has_no_correlation_has_none(x, y):
    found = correlate(np.array(x, dtype=float), np.array(y, dtype=float), rng=np.random.default_rng(0))
    assert (found.n, found.r, found.interval, found.p_value) == (len(x), None, None, None)


def test_sides_of_different_length_are_refused():
    with pytest.raises(DataError, match="the same examples on both sides, got 4 and 5"):
        correlate(np.arange(4.0), np.arange(5.0), rng=np.random.default_rng(0))
