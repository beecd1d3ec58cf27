import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, false_discovery_control

from ice_eval.errors import DataError
from ice_eval.stats import adjusted, adjusted_fdr, adjusted_known, nonnull_share, significant, significant_rate

FLOOR = 1 / 51


def rejected_by_definition(p_values, alpha):
    """Benjamini and Hochberg's step-up rule as they wrote it."""
    ordered = np.sort(p_values)
    passing = np.flatnonzero(ordered <= alpha * np.arange(1, ordered.size + 1) / ordered.size)
    return p_values <= ordered[passing[-1]] if passing.size else np.zeros(ordered.size, dtype=bool)


def null_p_values(rng, n_values, size):
    return rng.integers(1, np.asarray(n_values) + 1, size=size) / n_values


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_significant_is_the_step_up_rule_and_that_of_scipy(alpha, rng):
    for _ in range(50):
        p_values = rng.random(30) ** 3
        rejected = significant(p_values, alpha=alpha)
        np.testing.assert_array_equal(rejected, rejected_by_definition(p_values, alpha))
        np.testing.assert_array_equal(rejected, false_discovery_control(p_values) <= alpha)


@pytest.mark.parametrize("n", range(1, 200))
def test_p_values_that_meet_the_limit_exactly_are_rejected_despite_round_off(n):
    # n examples at p = 1/10 each need the limit n * alpha / n.
    assert significant(np.full(n, 1 / 10), alpha=0.1).all()
    assert significant(np.r_[np.full(n, 1 / 30), np.ones(2 * n)], alpha=0.1).sum() == n


@settings(deadline=None)
@given(st.lists(st.integers(1, 51), min_size=1, max_size=60))
def test_more_is_rejected_at_a_larger_alpha(grid):
    p_values = np.array(grid) / 51
    assert np.all(significant(p_values, alpha=0.05) <= significant(p_values, alpha=0.2))


def test_configurations_without_a_p_value_do_not_count_in_the_adjustment():
    assert adjusted_known([0.01, None, 0.4]) == [pytest.approx(0.02), None, pytest.approx(0.4)]
    assert adjusted_known([None]) == [None]
    assert adjusted_known([]) == []


def adjusted_by_definition(p_values):
    """The smallest alpha at which Holm rejects each p-value: p_(1) <= alpha / n, then p_(2) <= alpha / (n - 1)."""
    n, order = p_values.size, np.argsort(p_values)
    values, largest = np.empty(n), 0.0
    for place in range(n):
        largest = max(largest, min(1.0, p_values[order[place]] * (n - place)))
        values[order[place]] = largest
    return values


@pytest.mark.parametrize("n", [1, 2, 30])
def test_adjusted_p_values_are_those_of_holm(n, rng):
    for _ in range(20):
        p_values = rng.random(n) ** 3
        np.testing.assert_allclose(adjusted(p_values), adjusted_by_definition(p_values), rtol=1e-12)
    np.testing.assert_allclose(adjusted(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("n", [1, 2, 30])
def test_p_values_adjusted_for_the_false_discovery_rate_are_those_of_benjamini_and_hochberg(n, rng):
    for _ in range(20):
        p_values = rng.random(n) ** 3
        ranks = np.argsort(np.argsort(p_values)) + 1
        expected = [min(1, *(p * n / r for p, r in zip(p_values, ranks, strict=True) if p >= own)) for own in p_values]
        np.testing.assert_allclose(adjusted_fdr(p_values), expected, rtol=1e-12)
        np.testing.assert_array_equal(adjusted_fdr(p_values) <= 0.1, significant(p_values))
    np.testing.assert_allclose(adjusted_fdr(np.array([0.01, 0.04, 0.03, 0.005])), [0.02, 0.04, 0.04, 0.02])


def test_missing_p_values_are_not_counted():
    assert adjusted_known([0.01, None, 0.04]) == pytest.approx([0.02, None, 0.04])
    assert adjusted_known([0.03, None, 0.04], fdr=True) == pytest.approx([0.04, None, 0.04])


def test_one_configuration_needs_no_adjustment():
    np.testing.assert_array_equal(adjusted(np.array([0.03])), [0.03])


def dependent_null_p_values(rng, *, n, alpha):
    """Uniform each, but j of them lie just below the step-up rule's limit for j, with probability alpha / j."""
    counts = np.arange(n + 1)
    shares = np.r_[0.0, alpha / counts[1:]]
    shares[0] = 1 - shares.sum()
    n_small = rng.choice(counts, p=shares)
    small = alpha * (n_small - 1 + rng.random(n_small)) / n
    return np.r_[small, rng.uniform(alpha, 1, size=n - n_small)]


def test_holm_controls_errors_under_the_worst_dependence_and_step_up_does_not(rng):
    n, alpha = 20, 0.1
    data_sets = [dependent_null_p_values(rng, n=n, alpha=alpha) for _ in range(2000)]
    step_up = sum(bool(significant(p_values, alpha=alpha).any()) for p_values in data_sets)
    holm = sum(bool((adjusted(p_values) <= alpha).any()) for p_values in data_sets)
    assert step_up > 0.3 * 2000
    assert binomtest(holm, 2000, alpha, alternative="greater").pvalue > 1e-3


def test_rate_is_the_share_rejected():
    result = significant_rate(np.r_[np.full(30, FLOOR), np.full(70, 0.9)], floor=FLOOR)
    assert (result.rate, result.reason) == (0.3, None)
    assert result.floor_share == pytest.approx(0.196, abs=5e-4)


def test_rate_below_the_share_that_the_floor_allows_is_undefined_with_the_reason():
    result = significant_rate(np.r_[np.full(19, FLOOR), np.full(81, 0.9)], floor=FLOOR)
    assert result.rate is None
    assert result.reason is not None and "19.6 %" in result.reason and "alpha = 0.1" in result.reason


def test_the_share_that_the_floor_allows_is_the_share_that_is_rejected():
    for n_strong in range(101):
        p_values = np.r_[np.full(n_strong, FLOOR), np.ones(100 - n_strong)]
        assert significant(p_values).any() == (n_strong / 100 >= significant_rate(p_values, floor=FLOOR).floor_share)


def test_rate_is_zero_where_a_single_example_could_have_been_rejected():
    p_values = np.array([0.4, 0.5, 0.9, 0.2, 0.7])
    assert significant_rate(p_values, floor=FLOOR).rate == 0.0  # 5 examples: the limit for one is 0.02 > 1/51
    assert significant_rate(np.r_[p_values, 0.5], floor=FLOOR).rate is None
    assert significant_rate(np.full(100, 0.5), floor=1e-4).rate == 0.0


def test_single_example_limit_is_met_exactly_despite_round_off():
    for n in range(1, 200):
        p_values = np.r_[0.1 / n, np.ones(n - 1)]
        assert significant(p_values).sum() == 1
        assert significant_rate(np.ones(n), floor=0.1 / n).rate == 0.0
    assert 1 / 100 / 0.29 * 29 > 1
    assert significant_rate(np.ones(29), floor=1 / 100, alpha=0.29).rate == 0.0


def test_a_floor_above_alpha_can_reject_nothing_and_says_how_many_sets_are_needed():
    result = significant_rate(np.full(10, 1 / 6), floor=1 / 6)
    assert result.rate is None
    assert result.floor_share == pytest.approx(10 / 6)
    assert result.reason is not None and "at least 9 random sets" in result.reason
    assert significant_rate(np.full(10, 1 / 10), floor=1 / 10).rate == 1.0  # 9 random sets suffice


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1])
def test_p_values_outside_their_range_are_refused(bad):
    for estimate in (
        adjusted,
        significant,
        lambda p: significant_rate(p, floor=0.1),
        lambda p: nonnull_share(p, np.array([2])),
    ):
        with pytest.raises(DataError, match=r"p-values lie in \(0, 1\]"):
            estimate(np.array([bad]))


def test_other_bad_input_is_refused():
    half = np.array([0.5])
    with pytest.raises(DataError, match="at least one p-value"):
        significant(np.array([]))
    with pytest.raises(DataError, match="1 of 1 p-values that are NaN"):
        significant(np.array([np.nan]))
    with pytest.raises(DataError, match="false-discovery rate lies between 0 and 1, got 10"):
        significant(half, alpha=10)
    with pytest.raises(DataError, match="smallest possible p-value lies in"):
        significant_rate(half, floor=51)
    with pytest.raises(DataError, match="got 2 for 1 p-values"):
        nonnull_share(half, np.array([51, 51]))
    with pytest.raises(DataError, match="n_values as small as 1"):
        nonnull_share(half, np.array([1]))


def test_nonnull_share_done_by_hand():
    # n = 3: p is 1/3, 2/3 or 1, so 2/3 of null p-values exceed 1/2. Expected above 1/2 if all null: 10 * 2/3.
    p_values = np.array([1, 1, 1, 1, 1, 1, 1, 2, 3, 3]) / 3
    result = nonnull_share(p_values, np.full(10, 3))
    assert result.share == pytest.approx(1 - 3 / (20 / 3))
    upper = beta.ppf(0.95, 3 + 1, 10 - 3)
    assert result.low == pytest.approx(max(0, 1 - upper * 10 / (20 / 3)))


@pytest.mark.parametrize("n_values", [2, 3, 4, 5, 51])
def test_the_grid_of_null_p_values_has_no_signal(n_values):
    # Each value of the grid once: an estimate that took P(p > 1/2) = 1/2 would err where n is odd.
    p_values = np.tile(np.arange(1, n_values + 1) / n_values, 20)
    assert nonnull_share(p_values, np.full(p_values.size, n_values)).share == pytest.approx(0)


def test_nonnull_share_is_clipped():
    assert nonnull_share(np.ones(20), np.full(20, 51)) == (0.0, 0.0)
    share, low = nonnull_share(np.full(400, FLOOR), np.full(400, 51))
    assert share == 1.0
    assert 0.98 < low < 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(2, 60), st.integers(1, 60)), min_size=1, max_size=60))
def test_the_bound_never_exceeds_the_estimate(pairs):
    n_values = np.array([n for n, _ in pairs])
    p_values = np.array([min(k, n) / n for n, k in pairs])
    share, low = nonnull_share(p_values, n_values)
    assert 0 <= low <= share <= 1


def test_nonnull_share_estimates_a_known_mixture_with_unequal_families(rng):
    n_values = rng.integers(3, 52, size=20_000)
    strong = rng.random(20_000) < 0.3
    p_values = np.where(strong, 1 / n_values, null_p_values(rng, n_values, 20_000))
    share, low = nonnull_share(p_values, n_values)
    assert share == pytest.approx(0.3, abs=0.025)
    assert low < share


@pytest.mark.parametrize("nonnull", [0.0, 0.3])
def test_lower_bound_holds_in_at_least_95_percent_of_data_sets(nonnull, rng):
    n_values = rng.integers(3, 52, size=80)
    n_missed = 0
    for _ in range(600):
        p_values = null_p_values(rng, n_values, 80)
        p_values[: round(nonnull * 80)] = 1 / n_values[: round(nonnull * 80)]
        n_missed += nonnull_share(p_values, n_values).low > nonnull
    assert binomtest(n_missed, 600, 0.05, alternative="greater").pvalue > 1e-3


def test_false_discoveries_stay_below_alpha(rng):
    shares = []
    for _ in range(400):
        p_values = null_p_values(rng, 51, 100)
        p_values[:40] = FLOOR
        rejected = significant(p_values)
        shares.append(rejected[40:].sum() / max(1, rejected.sum()))
    assert np.mean(shares) < 0.1
