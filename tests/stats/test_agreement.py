import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import cohen_kappa_score

from ice_eval.errors import DataError
from ice_eval.stats import (
    TAXONOMY,
    agreement,
    ceiling,
    kappa,
    mean_interval,
    paired_difference,
    reliability,
    robustness,
    sides_differ,
    taxonomy,
)

WIN_RATES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=25)


def rates_around(mean, *, n=200, spread=0.1, seed=0):
    noise = np.random.default_rng(seed).uniform(-spread, spread, size=n)
    return mean + noise - noise.mean()


def test_gap_and_its_interval_are_those_of_the_paired_differences():
    first, second = np.random.default_rng(0).random((2, 25))
    result = agreement(first, second)
    assert result.gap == pytest.approx(first.mean() - second.mean())
    assert result.gap_ci == paired_difference(second, first).interval
    assert result.rank_correlation == pytest.approx(spearmanr(first, second).statistic)


def test_operators_far_apart_cross_the_threshold_for_certain():
    result = agreement(rates_around(0.8), rates_around(0.4, seed=1))
    assert (result.crosses_threshold, result.same_taxonomy) == ("yes", False)
    swapped = agreement(rates_around(0.4, seed=1), rates_around(0.8))
    assert (swapped.crosses_threshold, swapped.gap) == ("yes", pytest.approx(-result.gap))


def test_operators_on_the_same_side_do_not_cross():
    for means in ((0.8, 0.7), (0.4, 0.3)):
        result = agreement(rates_around(means[0]), rates_around(means[1], seed=1))
        assert (result.crosses_threshold, result.same_taxonomy) == ("no", True)


def test_a_mean_near_the_threshold_is_unclear():
    for near in (0.5501, 0.5499):
        assert agreement(rates_around(0.8), rates_around(near, seed=1)).crosses_threshold == "unclear"
    # Both at 0.60, of few examples: nothing shows that they differ, and nothing that they do not.
    few = [rates_around(0.6, n=20, spread=0.3, seed=seed) for seed in (0, 1)]
    assert agreement(*few).crosses_threshold == "unclear"


def test_sides_are_those_of_the_printed_intervals(rng):
    for _ in range(40):
        rates = np.clip(rng.uniform(0.4, 0.8, size=2) + rng.uniform(-0.2, 0.2, size=(60, 2)), 0, 1)
        sides = []
        for low, high in map(mean_interval, rates.T):
            sides.append("above" if low >= 0.55 else "below" if high < 0.55 else "unclear")
        expected = "unclear" if "unclear" in sides else "no" if sides[0] == sides[1] else "yes"
        assert agreement(*rates.T).crosses_threshold == expected
        assert robustness(rates).sides == tuple(sides)


def test_all_wins_against_all_losses_cross():
    result = agreement(np.ones(40), np.zeros(40))
    assert (result.gap, result.crosses_threshold) == (1.0, "yes")
    assert 0.7 < result.gap_ci.low < result.gap_ci.high == 1.0


def test_equal_win_rates_cross_as_others_do():
    assert agreement(np.full(40, 0.9), np.full(40, 0.3)).crosses_threshold == "yes"
    assert agreement(np.full(5, 0.9), np.full(5, 0.3)).crosses_threshold == "unclear"


def test_identical_operators_agree(rng):
    values = rng.random(50)
    result = agreement(values, values)
    assert (result.gap, result.same_taxonomy) == (0.0, True)
    assert result.gap_ci.low == pytest.approx(-result.gap_ci.high)
    assert result.rank_correlation == pytest.approx(1)


def test_threshold_can_be_moved():
    first, second = rates_around(0.8), rates_around(0.7, seed=1)
    assert agreement(first, second, threshold=0.75).crosses_threshold == "yes"


@pytest.mark.parametrize(("first", "second"), [([0.5] * 4, [0.1, 0.2, 0.3, 0.4]), ([0.1], [0.9])])
def test_rank_correlation_of_a_constant_is_undefined_and_does_not_warn(first, second):
    for one, other in ((first, second), (second, first)):
        assert agreement(np.array(one), np.array(other)).rank_correlation is None


def test_two_examples_have_a_rank_correlation():
    result = agreement(np.array([0.1, 0.9]), np.array([0.8, 0.2]))
    assert result.rank_correlation == pytest.approx(-1)


@settings(deadline=None)
@given(WIN_RATES)
def test_swapping_the_operators_mirrors_the_gap_and_keeps_the_rest(pairs):
    first, second = np.array(pairs).T / 50
    there, back = agreement(first, second), agreement(second, first)
    assert there.gap == pytest.approx(-back.gap)
    assert (there.crosses_threshold, there.same_taxonomy) == (back.crosses_threshold, back.same_taxonomy)
    assert there.gap_ci == pytest.approx((-back.gap_ci.high, -back.gap_ci.low), abs=1e-9)


def test_a_true_mean_on_one_side_is_seldom_said_to_cross(rng):
    # The second operator sits on the threshold: its upper limit errs 2.5 % of the time.
    n_crossing = 0
    for _ in range(300):
        first, second = rng.beta(8, 2, size=60), 0.55 + rng.uniform(-0.4, 0.4, size=60)
        n_crossing += agreement(first, second).crosses_threshold == "yes"
    assert n_crossing / 300 < 0.06


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="same examples on both sides, got 2 and 3"):
        agreement(np.ones(2), np.ones(3))
    with pytest.raises(DataError, match="at least one win rate"):
        agreement(np.array([]), np.array([]))
    with pytest.raises(DataError, match="1 of 2 win rates that are NaN"):
        agreement(np.array([0.1, np.nan]), np.ones(2))


@pytest.mark.parametrize("n", [60, 200])
def test_operators_depend_where_two_of_them_cross(n):
    words = set()
    for seed in range(60):
        draw = np.random.default_rng(seed)
        rates = np.clip(draw.uniform(0.4, 0.75, size=3) + draw.uniform(-0.3, 0.3, size=(n, 3)), 0, 1)
        result = robustness(rates)
        crossings = [agreement(rates[:, i], rates[:, j]).crosses_threshold for i, j in [(0, 1), (0, 2), (1, 2)]]
        assert (result.word == "operator-dependent") == ("yes" in crossings)
        words.add(result.word)
    assert {"robust", "operator-dependent", "inconclusive"} <= words


@pytest.mark.parametrize(
    ("means", "word", "sides"),
    [
        ((0.8, 0.7, 0.65), "robust", ("above", "above", "above")),
        ((0.3, 0.4), "weak under all operators", ("below", "below")),
        ((0.8, 0.55, 0.4), "operator-dependent", ("above", "unclear", "below")),
        ((0.8, 0.55), "inconclusive", ("above", "unclear")),
        ((0.55, 0.55, 0.4), "inconclusive", ("unclear", "unclear", "below")),
    ],
)
def test_words_of_robustness(means, word, sides):
    rates = np.stack([rates_around(mean, seed=seed) for seed, mean in enumerate(means)], axis=1)
    result = robustness(rates)
    assert (result.word, result.sides) == (word, sides)
    assert result.spread == pytest.approx(max(means) - min(means))


def test_a_control_that_is_random_is_not_robust():
    rates = np.stack([rates_around(0.5), rates_around(0.49, seed=1)], axis=1)
    assert robustness(rates).word == "weak under all operators"
    assert robustness(np.ones((40, 2))).word == "robust"


def test_threshold_of_robustness_can_be_moved():
    rates = np.stack([rates_around(0.8), rates_around(0.7, seed=1)], axis=1)
    assert robustness(rates, threshold=0.75).word == "operator-dependent"


def test_groups_that_are_copies_make_robustness_inconclusive():
    few = np.stack([rates_around(0.68, n=6, spread=0.3), rates_around(0.67, n=6, spread=0.3, seed=1)], axis=1)
    copies, groups = np.repeat(few, 200, axis=0), np.repeat(np.arange(6), 200)
    assert robustness(copies).word == "robust"
    assert robustness(copies, groups=groups).word == "inconclusive"


def test_robustness_needs_two_operators():
    for bad in (np.ones(5), np.ones((5, 1))):
        with pytest.raises(DataError, match="one column of win rates per operator, two at least"):
            robustness(bad)
    with pytest.raises(DataError, match="1 of 2 values that are NaN"):
        robustness(np.array([[0.1, 0.2], [np.nan, 0.3]]))


@pytest.mark.parametrize("n", [2, 5, 30, 200])
def test_kappa_is_that_of_sklearn(n, rng):
    for _ in range(30):
        rates = rng.random(n)
        first = [taxonomy(rate) for rate in 0.45 + 0.2 * rates]
        second = [taxonomy(rate) for rate in 0.45 + 0.2 * np.clip(rates + 0.3 * rng.normal(size=n), 0, 1)]
        if len({*first, *second}) > 1:
            theirs = cohen_kappa_score(first, second, labels=list(TAXONOMY), weights="linear")
            assert kappa(first, second) == pytest.approx(theirs)


def test_kappa_of_full_agreement_is_one_and_of_chance_zero():
    assert kappa(TAXONOMY, TAXONOMY) == 1.0
    assert kappa(["faithful", "faithful"] * 2, ["faithful", "near-random"] * 2) == 0.0


def test_kappa_without_chance_disagreement_is_undefined():
    assert kappa([], []) is None
    assert kappa(["faithful"] * 5, ["faithful"] * 5) is None
    assert kappa(["faithful"] * 5, ["near-random"] * 5) == 0.0


def test_neighbouring_words_disagree_less_than_distant_ones():
    words = [*TAXONOMY, *TAXONOMY]
    near, far = [*words[:-1], "weakly faithful"], [*words[:-1], "anti-faithful"]
    assert kappa(words, far) < kappa(words, near) < 1
    assert kappa(["low", "high"], ["low", "high"], categories=("low", "high")) == 1.0


def test_kappa_refuses_other_words_and_lengths():
    with pytest.raises(DataError, match="no word 'good' among the categories; known: anti-faithful, near-random"):
        kappa(["good"], ["faithful"])
    with pytest.raises(DataError, match="same configurations on both sides, got 1 and 2"):
        kappa(["faithful"], ["faithful"] * 2)


def test_reliability_is_the_stepped_up_rank_correlation(rng):
    first = rng.random(50)
    second = first + 0.3 * rng.normal(size=50)
    correlation = spearmanr(first, second).statistic
    assert reliability(first, second) == pytest.approx(2 * correlation / (1 + correlation))
    assert reliability(first, first) == pytest.approx(1)


def test_reliability_of_noise_is_zero_and_of_a_constant_undefined():
    rising = np.array([0.1, 0.2, 0.3])
    assert reliability(rising, rising[::-1]) == 0.0  # a correlation of -1
    assert reliability(rising, np.full(3, 0.5)) is None
    assert reliability(np.array([0.5]), np.array([0.6])) is None
    with pytest.raises(DataError, match="same examples on both sides, got 3 and 2"):
        reliability(rising, rising[:2])


def test_reliability_foretells_the_correlation_with_a_second_null(rng):
    # Uniform win rates, for which rank correlation is nearly plain correlation.
    truth = rng.random(20_000)
    halves = rng.binomial(10, truth[:, None], size=(20_000, 4)) / 10
    first, second = halves[:, :2].mean(axis=1), halves[:, 2:].mean(axis=1)
    again = spearmanr(first, second).statistic
    foretold = reliability(halves[:, 0], halves[:, 1])
    assert foretold == pytest.approx(again, abs=0.01)
    assert ceiling(foretold, reliability(halves[:, 2], halves[:, 3])) == pytest.approx(again, abs=0.01)


def test_ceiling_is_the_geometric_mean_of_the_reliabilities():
    assert ceiling(0.9, 0.4) == pytest.approx(0.6)
    assert ceiling(1.0, 0.0) == 0.0
    assert ceiling(None, 0.5) is None
    assert ceiling(0.5, None) is None
    with pytest.raises(DataError, match=r"a reliability lies in \[0, 1\], got 1.5 and 0.5"):
        ceiling(1.5, 0.5)


@pytest.mark.parametrize(("m_a", "m_b"), [(20, 20), (50, 9)])
def test_sides_differ_where_the_wilson_intervals_of_scipy_do(m_a, m_b):
    wins_a, wins_b = (grid.ravel() for grid in np.meshgrid(np.arange(m_a + 1), np.arange(m_b + 1)))
    limits_a = [binomtest(k, m_a).proportion_ci(0.95, method="wilson") for k in range(m_a + 1)]
    limits_b = [binomtest(k, m_b).proportion_ci(0.95, method="wilson") for k in range(m_b + 1)]
    expected = [
        (limits_a[a].low > 0.5 and limits_b[b].high < 0.5) or (limits_a[a].high < 0.5 and limits_b[b].low > 0.5)
        for a, b in zip(wins_a, wins_b, strict=True)
    ]
    differ = sides_differ(wins_a / m_a, wins_b / m_b, m_a, m_b)
    assert differ.tolist() == expected
    assert 0 < differ.sum() < differ.size
    per_example = sides_differ(wins_a / m_a, wins_b / m_b, np.full(wins_a.size, m_a), np.full(wins_a.size, m_b))
    assert per_example.tolist() == expected


def test_rationales_in_the_middle_of_their_null_seldom_have_sides_that_differ(rng):
    rates = rng.binomial(50, 0.5, size=(2, 20_000)) / 50
    assert sides_differ(*rates, 50, 50).mean() < 0.005


def test_sides_need_random_sets_behind_them():
    half = np.array([0.5, 0.5])
    with pytest.raises(DataError, match="at least one random set behind a win rate, got 0"):
        sides_differ(half, half, 0, 5)
    with pytest.raises(DataError, match="one number of random sets per example, got 3 for 2"):
        sides_differ(half, half, 5, np.array([5, 5, 5]))
    with pytest.raises(DataError, match="same examples on both sides, got 2 and 1"):
        sides_differ(half, half[:1], 5, 5)
