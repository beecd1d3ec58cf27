import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, monte_carlo_test, percentileofscore, permutation_test, zmap

from ice_eval.errors import DataError
from ice_eval.stats import (
    Comparison,
    _values,
    compare,
    effect_size,
    mean_test,
    member_win_rates,
    upper_pvalue,
)

SCORES = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
GRID_SCORES = st.integers(min_value=-5, max_value=5)  # few values, so many ties


def families_of(scores):
    return [member_win_rates(np.asarray(row, dtype=float)) for row in scores]


def exact_mean_pvalue(families):
    """Share of all ways to choose one member per family with |T| at least as large as that of the first members."""
    statistics = []
    for choice in product(*families):
        rates = np.array(choice)
        distance, error = rates.mean() - 0.5, rates.std(ddof=1) / np.sqrt(rates.size)
        if error < 1e-12:
            statistics.append(0.0 if abs(distance) < 1e-12 else np.inf)
        else:
            statistics.append(abs(distance) / error)
    return np.mean([statistic >= statistics[0] - 1e-9 for statistic in statistics])


def test_counts_of_a_comparison_done_by_hand():
    result = compare(0.5, np.array([0.1, 0.5, 0.5, 0.9]))
    assert result == Comparison(0.5, result.null, 0.5, 0.25, 0.5, 4 / 5, 4 / 5)


def test_ties_count_one_half_but_lose_under_the_strict_formula():
    result = compare(1.0, np.ones(10))
    assert (result.win_rate, result.win_rate_strict, result.tie_rate) == (0.5, 0.0, 1.0)
    assert (result.p_value, result.p_lower) == (1.0, 1.0)


def test_pvalue_is_never_zero():
    null = np.zeros(50)
    assert upper_pvalue(1.0, null) == 1 / 51
    assert compare(-1.0, null).p_lower == 1 / 51


def test_the_paper_example_of_46_wins_out_of_50():
    result = compare(0.5, np.r_[np.linspace(0, 0.4, 46), np.linspace(0.6, 1, 4)])
    assert result.win_rate == result.win_rate_strict == 0.92
    assert result.p_value == 5 / 51


def test_round_off_does_not_break_ties():
    assert 0.1 + 0.2 != 0.3
    assert compare(0.3, np.array([0.1 + 0.2])).tie_rate == 1.0


def test_round_off_does_not_break_ties_at_zero():
    # Some signed sums that should be 0 are not, and a slack relative to the observed 0 would have no width.
    sums = np.array([np.dot(signs, [0.1, 0.2, 0.3, 0.7, 0.1]) for signs in product([-1, 1], repeat=5)])
    rounded = np.round(sums, 12)
    assert np.any((sums != 0) & (rounded == 0))
    result = compare(0.0, sums)
    assert result.tie_rate == np.mean(rounded == 0)
    assert result.p_value == (1 + np.count_nonzero(rounded >= 0)) / (sums.size + 1)


def test_enumerated_null_gives_the_exact_test():
    weights = np.array([0.3, -1.2, 2.0, 0.7, -0.4, 1.1])
    scores = np.array([weights[list(kept)].sum() for kept in combinations(range(6), 2)])
    for i, score in enumerate(scores):
        result = compare(score, np.delete(scores, i))
        assert result.p_value == np.count_nonzero(scores >= score - 1e-9) / scores.size
        assert result.p_lower == np.count_nonzero(scores <= score + 1e-9) / scores.size


def test_enumerated_null_agrees_with_the_exact_permutation_test_of_scipy():
    weights = np.array([0.3, -1.2, 2.0, 0.7, -0.4, 1.1])
    for kept in combinations(range(6), 2):
        rest = [i for i in range(6) if i not in kept]
        others = [weights[list(other)].sum() for other in combinations(range(6), 2) if other != kept]
        exact = permutation_test(
            (weights[list(kept)], weights[rest]),
            lambda x, y, axis: x.sum(axis=axis),
            vectorized=True,
            n_resamples=np.inf,
            alternative="greater",
        )
        assert compare(weights[list(kept)].sum(), np.array(others)).p_value == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("n_values", [3, 10_000])
def test_comparison_agrees_with_scipy(n_values, rng):
    for _ in range(50):
        observed, *null = rng.integers(0, n_values, size=31).astype(float)
        result = compare(observed, np.array(null))
        for tail, alternative in ((result.p_value, "greater"), (result.p_lower, "less")):
            draws = iter(null)
            theirs = monte_carlo_test(
                [observed],
                lambda size, draws=draws: np.array([[next(draws)] for _ in range(size[0])]),
                lambda x, axis: x.sum(axis=axis),
                vectorized=True,
                n_resamples=30,
                alternative=alternative,
            )
            assert tail == pytest.approx(theirs.pvalue)
        assert result.win_rate == pytest.approx(percentileofscore(null, observed, kind="mean") / 100)
        assert result.effect_size == pytest.approx(zmap(observed, null))


def test_comparison_keeps_the_null_it_was_computed_from():
    null = np.array([1.0, 2.0])
    np.testing.assert_array_equal(compare(0.0, null).null, null)


@settings(deadline=None)
@given(SCORES, st.lists(SCORES, min_size=1, max_size=30))
def test_win_rate_and_that_of_the_mirror_image_add_up_to_one(observed, null):
    there, back = compare(observed, np.array(null)), compare(-observed, -np.array(null))
    assert there.win_rate + back.win_rate == pytest.approx(1)
    assert there.p_value == back.p_lower
    assert there.tie_rate == back.tie_rate


@settings(deadline=None)
@given(SCORES, st.lists(SCORES, min_size=1, max_size=30))
def test_win_rate_is_the_strict_one_plus_half_the_ties(observed, null):
    result = compare(observed, np.array(null))
    assert result.win_rate == pytest.approx(result.win_rate_strict + result.tie_rate / 2)
    assert result.p_value == pytest.approx(1 - result.win_rate_strict * len(null) / (len(null) + 1))
    assert 0 < result.p_value <= 1
    assert 0 < result.p_lower <= 1


@settings(deadline=None)
@given(GRID_SCORES, st.lists(GRID_SCORES, min_size=1, max_size=30))
def test_increasing_transforms_change_nothing(observed, null):
    plain = compare(observed, np.array(null, dtype=float))
    curved = compare(np.exp(observed), np.exp(np.array(null, dtype=float)))
    assert (plain.win_rate, plain.tie_rate, plain.p_value) == (curved.win_rate, curved.tie_rate, curved.p_value)


@settings(deadline=None)
@given(GRID_SCORES, st.lists(GRID_SCORES, min_size=1, max_size=30), st.randoms())
def test_order_of_the_null_changes_nothing(observed, null, random):
    shuffled = random.sample(null, len(null))
    assert compare(observed, np.array(null, dtype=float)) == compare(observed, np.array(shuffled, dtype=float))


@pytest.mark.parametrize("test", [compare, upper_pvalue, effect_size])
def test_values_that_are_not_finite_or_not_there_are_refused(test):
    with pytest.raises(DataError, match="1 of 2 null scores that are NaN or infinite"):
        test(0.0, np.array([1.0, np.nan]))
    with pytest.raises(DataError, match="finite observed score, got inf"):
        test(np.inf, np.array([1.0]))
    with pytest.raises(DataError, match=r"at least one null score, got an array of shape \(0,\)"):
        test(0.0, np.array([]))
    with pytest.raises(DataError, match=r"shape \(2, 1\)"):
        test(0.0, np.ones((2, 1)))


def test_effect_size_counts_standard_deviations_of_the_null():
    assert effect_size(5.0, np.array([1.0, 3.0])) == pytest.approx(3.0)
    assert effect_size(-1.0, np.array([1.0, 3.0])) == pytest.approx(-3.0)


@pytest.mark.parametrize("null", [np.zeros(5), np.full(50, 0.1), np.array([0.3, 0.1 + 0.2])])
def test_effect_size_without_spread_is_undefined(null):
    assert effect_size(1.0, null) is None


def test_effect_size_of_a_distant_observation_keeps_the_spread_of_the_null():
    assert effect_size(1e15, np.array([0.0, 2.0])) == pytest.approx(1e15)


@settings(deadline=None)
@given(st.lists(st.one_of(SCORES, GRID_SCORES), min_size=2, max_size=40))
def test_member_win_rates_agree_with_compare_for_every_member(values):
    scores = np.array(values, dtype=float)
    rates = member_win_rates(scores)
    assert rates[0] == compare(scores[0], scores[1:]).win_rate
    for i, score in enumerate(scores):
        assert rates[i] == compare(score, np.delete(scores, i)).win_rate


@settings(deadline=None)
@given(st.lists(GRID_SCORES, min_size=2, max_size=40))
def test_win_rates_of_a_family_average_one_half(values):
    assert member_win_rates(np.array(values, dtype=float)).mean() == pytest.approx(0.5)


def test_members_within_the_slack_tie_pair_by_pair():
    step = 60 * np.finfo(float).eps
    rates = member_win_rates(np.array([1.0, 1.0 + step, 1.0 + 2 * step]))
    np.testing.assert_array_equal(rates, [0.25, 0.5, 0.75])  # the outer two are 120 epsilons apart


def test_a_family_needs_two_finite_members():
    with pytest.raises(DataError, match="at least two sets"):
        member_win_rates(np.array([1.0]))
    with pytest.raises(DataError, match="1 of 3 scores that are NaN or infinite"):
        member_win_rates(np.array([1.0, np.inf, 0.0]))


def test_mean_test_statistic_is_that_of_the_t_test(rng):
    families = families_of(rng.normal(size=(12, 8)))
    first = np.array([family[0] for family in families])
    expected = (first.mean() - 0.5) / (first.std(ddof=1) / np.sqrt(12))
    assert mean_test(families, rng=rng, n_draws=99).statistic == pytest.approx(expected)


@pytest.mark.parametrize(
    "scores",
    [
        [[4, 1, 2, 3], [3, 1, 2, 4], [9, 7, 8]],  # unequal families
        [[2, 1, 1, 1], [2, 2, 1, 0], [1, 1, 1, 0]],  # heavy ties
        [[4, 1, 2], [4, 1, 2], [4, 1, 2], [4, 1, 2]],  # all at the top: T is infinite
        [[2, 1, 3], [2, 1, 3], [2, 1, 3]],  # all at one half: T is 0
    ],
)
def test_mean_test_agrees_with_exact_enumeration(scores, rng):
    families = families_of(scores)
    exact = exact_mean_pvalue(families)
    result = mean_test(families, rng=rng, n_draws=19_999)
    assert binomtest(round(result.p_value * 20_000) - 1, 19_999, exact).pvalue > 1e-3


def test_mean_test_without_spread_is_infinite_off_one_half_and_zero_on_it(rng):
    top, middle = families_of([[3, 1, 2]] * 6), families_of([[2, 1, 3]] * 6)
    assert mean_test(top, rng=rng, n_draws=99).statistic == np.inf
    assert mean_test(families_of([[1, 2, 3]] * 6), rng=rng, n_draws=99).statistic == -np.inf
    on_half = mean_test(middle, rng=rng, n_draws=99)
    assert (on_half.statistic, on_half.p_value) == (0.0, 1.0)


def test_equal_win_rates_that_round_differently_have_no_spread(rng):
    # 0.1 + 0.2 - 0.3 is not 0 either: a spread of 1e-17 would make T a random huge number.
    families = [np.array([0.7, 0.3]), np.array([0.6 + 0.1, 0.3]), np.array([1 - 0.3, 0.3])]
    assert mean_test(families, rng=rng, n_draws=99).statistic == np.inf


def test_mean_test_finds_a_signal_on_either_side(rng):
    scores = rng.normal(size=(60, 21))
    scores[:, 0] += 1.0
    up, down = mean_test(families_of(scores), rng=rng), mean_test(families_of(-scores), rng=rng)
    assert up.statistic == pytest.approx(-down.statistic)
    assert up.p_value == pytest.approx(1e-4)
    assert down.p_value == pytest.approx(1e-4)


def test_mean_test_pvalue_is_never_zero(rng):
    families = families_of([np.arange(20)[::-1]] * 30)
    assert mean_test(families, rng=rng, n_draws=199).p_value == 1 / 200


@pytest.mark.parametrize("batch", [2, 6, 100, 5000])
def test_mean_test_does_not_depend_on_the_batch(batch, monkeypatch):
    draw = np.random.default_rng(3)
    families = families_of([draw.normal(size=size) for size in draw.integers(2, 30, size=40)])
    whole = mean_test(families, rng=np.random.default_rng(0), n_draws=999)
    monkeypatch.setattr(_values, "_CELLS_PER_BATCH", batch * len(families))
    assert mean_test(families, rng=np.random.default_rng(0), n_draws=999) == whole


def test_mean_test_memory_does_not_grow_with_the_number_of_draws(rng):
    families = families_of(rng.normal(size=(1000, 11)))
    tracemalloc.start()
    mean_test(families, rng=rng, n_draws=4999)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20  # all the swaps at once would be 40 MB, three times over


def test_mean_test_of_one_example_has_a_pvalue_but_no_power(rng):
    assert mean_test(families_of([[5, 1, 2, 3, 4]]), rng=rng, n_draws=999).p_value > 0.7


def test_mean_test_refuses_what_is_not_a_family_of_win_rates(rng):
    with pytest.raises(DataError, match="at least one example, got none"):
        mean_test([], rng=rng)
    with pytest.raises(DataError, match="at least one win rate"):
        mean_test([np.array([])], rng=rng)
    with pytest.raises(DataError, match=r"win rates lie in \[0, 1\], got values from -3.0 to 2.0"):
        mean_test([np.array([2.0, -3.0])], rng=rng)
    with pytest.raises(DataError, match="1 of 2 win rates that are NaN"):
        mean_test([np.array([np.nan, 0.5])], rng=rng)
    with pytest.raises(DataError, match="n_draws=0"):
        mean_test([np.array([0.0, 1.0])], rng=rng, n_draws=0)


def correlated_families(rng, *, n_groups, size, n_sets=11):
    """Random rationales; the examples of a group are copies of each other, rationale included."""
    families = families_of(rng.random((n_groups, n_sets)))
    return [family for family in families for _ in range(size)], np.repeat(np.arange(n_groups), size)


def test_mean_test_with_groups_of_one_is_the_test_without_groups():
    families = families_of(np.random.default_rng(0).random((20, 11)))
    alone = mean_test(families, rng=np.random.default_rng(1), n_draws=199)
    assert mean_test(families, rng=np.random.default_rng(1), n_draws=199, groups=list("abcdefghijklmnopqrst")) == alone


@pytest.mark.parametrize(("n_groups", "size"), [(20, 5), (40, 3)])
def test_mean_test_of_correlated_groups_holds_its_level_only_if_told(n_groups, size, rng):
    n_small = {"told": 0, "not told": 0}
    for _ in range(400):
        families, groups = correlated_families(rng, n_groups=n_groups, size=size)
        n_small["told"] += mean_test(families, rng=rng, n_draws=99, groups=groups).p_value <= 0.05
        n_small["not told"] += mean_test(families, rng=rng, n_draws=99).p_value <= 0.05
    assert binomtest(n_small["told"], 400, 0.05, alternative="greater").pvalue > 1e-3
    assert n_small["not told"] > 0.15 * 400


def test_mean_test_of_one_group_says_nothing(rng):
    families, groups = correlated_families(rng, n_groups=1, size=30)
    assert mean_test(families, rng=rng, n_draws=199, groups=groups).p_value > 0.9


def test_random_rationales_have_uniform_pvalues_and_win_half(rng):
    m, n = 19, 4000
    results = [compare(scores[0], scores[1:]) for scores in rng.normal(size=(n, m + 1))]
    for tail in ("p_value", "p_lower"):
        cells = np.rint([getattr(result, tail) * (m + 1) for result in results]).astype(int)
        assert chisquare(np.bincount(cells, minlength=m + 2)[1:]).pvalue > 1e-3
    rates = np.array([result.win_rate for result in results])
    assert abs(rates.mean() - 0.5) < 3.3 * rates.std() / np.sqrt(n)


def test_tied_random_rationales_still_win_half_and_stay_valid(rng):
    results = [compare(scores[0], scores[1:]) for scores in rng.integers(0, 4, size=(4000, 20)).astype(float)]
    rates = np.array([result.win_rate for result in results])
    assert abs(rates.mean() - 0.5) < 3.3 * rates.std() / np.sqrt(rates.size)
    assert np.mean([result.win_rate_strict for result in results]) < 0.45  # what ties do to the strict formula
    for alpha in (0.05, 0.1, 0.25, 0.5):
        n_small = sum(result.p_value <= alpha for result in results)
        assert binomtest(n_small, 4000, alpha, alternative="greater").pvalue > 1e-3


def normal_scores(rng):
    return rng.normal(size=(8, 6))


def tied_scores(rng):
    return rng.integers(0, 3, size=(10, 5)).astype(float)


def unequal_scores(rng):
    return [rng.integers(0, 9, size=size).astype(float) for size in rng.integers(2, 9, size=7)]


def skewed_scores(rng):
    return rng.pareto(1.0, size=(5, 11))


def p_values_of_random_rationales(make_scores, rng, *, n_data_sets):
    return np.array([mean_test(families_of(make_scores(rng)), rng=rng, n_draws=99).p_value for _ in range(n_data_sets)])


MAKERS = [normal_scores, tied_scores, unequal_scores, skewed_scores]


@pytest.mark.parametrize("make_scores", MAKERS)
def test_mean_test_holds_its_level(make_scores, rng):
    p_values = p_values_of_random_rationales(make_scores, rng, n_data_sets=1500)
    for alpha in (0.05, 0.2):
        assert binomtest(np.count_nonzero(p_values <= alpha), 1500, alpha, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("make_scores", MAKERS)
def test_mean_test_holds_its_level_over_many_data_sets(make_scores, rng):
    p_values = p_values_of_random_rationales(make_scores, rng, n_data_sets=20_000)
    for alpha in (0.01, 0.05, 0.1, 0.2, 0.5):
        assert binomtest(np.count_nonzero(p_values <= alpha), 20_000, alpha, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_mean_test_uses_its_level_up_where_scores_do_not_tie(rng):
    # Not the whole grid of p-values: a mean of exactly one half is as near as can be, and all of those have p = 1.
    p_values = p_values_of_random_rationales(lambda draw: draw.normal(size=(20, 21)), rng, n_data_sets=10_000)
    for alpha in (0.05, 0.1, 0.2):
        assert binomtest(np.count_nonzero(p_values <= alpha), 10_000, alpha).pvalue > 1e-3
