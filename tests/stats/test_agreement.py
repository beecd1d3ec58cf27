import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap, spearmanr
from sklearn.metrics import cohen_kappa_score

from ice_eval.errors import DataError
from ice_eval.stats import TAXONOMY, agreement, ceiling, kappa, reliability, robustness, sides_differ, taxonomy

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
    with pytest.raises(DataError, match="at least one win rate"):
        agreement(np.array([]), np.array([]), rng=rng)
    with pytest.raises(DataError, match="1 of 2 win rates that are NaN"):
        agreement(np.array([0.1, np.nan]), np.ones(2), rng=rng)


@pytest.mark.parametrize("n", [20, 60])
def test_operators_depend_where_a_pairwise_crossing_is_confirmed(n):
    words = set()
    for seed in range(60):
        draw = np.random.default_rng(seed)
        rates = np.clip(draw.uniform(0.45, 0.75, size=3) + draw.uniform(-0.3, 0.3, size=(n, 3)), 0, 1)
        result = robustness(rates, rng=np.random.default_rng(1), n_resamples=499)
        confirmed = [
            agreement(rates[:, i], rates[:, j], rng=np.random.default_rng(1), n_resamples=499).crosses_threshold
            for i, j in [(0, 1), (0, 2), (1, 2)]
        ]
        assert (result.word == "operator-dependent") == ("confirmed" in confirmed)
        words.add(result.word)
    assert words == {"robust", "operator-dependent", "inconclusive"}


@pytest.mark.parametrize(
    ("means", "word", "sides"),
    [
        ((0.8, 0.7, 0.65), "robust", ("above", "above", "above")),
        ((0.3, 0.4), "robust", ("below", "below")),
        ((0.8, 0.55, 0.4), "operator-dependent", ("above", "unclear", "below")),
        ((0.8, 0.55), "inconclusive", ("above", "unclear")),
        ((0.55, 0.55, 0.4), "inconclusive", ("unclear", "unclear", "below")),
    ],
)
def test_words_of_robustness(means, word, sides, rng):
    rates = np.stack([rates_around(mean, seed=seed) for seed, mean in enumerate(means)], axis=1)
    result = robustness(rates, rng=rng, n_resamples=999)
    assert (result.word, result.sides) == (word, sides)
    assert result.spread == pytest.approx(max(means) - min(means))


def test_operators_without_spread_are_inconclusive_off_the_ends_of_the_scale(rng):
    assert robustness(np.full((40, 2), 0.9), rng=rng, n_resamples=9).word == "inconclusive"
    assert robustness(np.ones((40, 2)), rng=rng, n_resamples=9).word == "robust"


def test_threshold_of_robustness_can_be_moved(rng):
    rates = np.stack([rates_around(0.8), rates_around(0.7, seed=1)], axis=1)
    assert robustness(rates, rng=rng, n_resamples=999, threshold=0.75).word == "operator-dependent"


def test_groups_that_are_copies_make_robustness_inconclusive(rng):
    few = np.stack([rates_around(0.58, n=6, spread=0.3), rates_around(0.57, n=6, spread=0.3, seed=1)], axis=1)
    copies, groups = np.repeat(few, 200, axis=0), np.repeat(np.arange(6), 200)
    assert robustness(copies, rng=rng, n_resamples=999).word == "robust"
    assert robustness(copies, rng=rng, n_resamples=999, groups=groups).word == "inconclusive"


def test_robustness_needs_two_operators(rng):
    for bad in (np.ones(5), np.ones((5, 1))):
        with pytest.raises(DataError, match="one column of win rates per operator, two at least"):
            robustness(bad, rng=rng)
    with pytest.raises(DataError, match="1 of 4 values that are NaN"):
        robustness(np.array([[0.1, 0.2], [np.nan, 0.3]]), rng=rng)


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
