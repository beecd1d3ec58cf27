import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from ice_eval.errors import DataError
from ice_eval.stats import (
    Interval,
    Taxonomy,
    detectable_win_rate,
    effect_word,
    excludes_chance,
    mean_interval,
    mean_test,
    member_win_rates,
    reason_without_interval,
    taxonomy,
    verdict,
)
from ice_eval.stats.verdict import ALL_EQUAL, NOT_DISTINGUISHABLE

RATES = st.floats(min_value=0, max_value=1)


@pytest.mark.parametrize(
    ("win_rate", "word"),
    [
        (0.0, "anti-faithful"),
        (0.4999, "anti-faithful"),
        (0.5, "near-random"),
        (0.5499, "near-random"),
        (0.55, "weakly faithful"),
        (0.60, "weakly faithful"),
        (0.6001, "faithful"),
        (1.0, "faithful"),
    ],
)
def test_bands_of_the_taxonomy(win_rate, word):
    assert taxonomy(win_rate) == word
    assert word in typing.get_args(Taxonomy)


@pytest.mark.parametrize("limit", [0.5, 0.55, 0.6])
def test_round_off_does_not_move_a_mean_across_a_limit(limit):
    around = [np.nextafter(limit, 0), limit, np.nextafter(limit, 1), limit - 1e-15, limit + 1e-15]
    assert len({taxonomy(win_rate) for win_rate in around}) == 1


@pytest.mark.parametrize("bad", [-0.01, 1.01, 92.0, float("nan")])
def test_taxonomy_of_what_is_no_win_rate_is_refused(bad):
    with pytest.raises(DataError, match=r"a win rate lies in \[0, 1\]"):
        taxonomy(bad)


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(0.1, 0.3), "anti-faithful"),
        (Interval(0.51, 0.54), "near-random"),
        (Interval(0.56, 0.60), "weakly faithful"),
        (Interval(0.61, 0.7), "faithful"),
        (Interval(0.51, 0.58), "near-random to weakly faithful"),
        (Interval(0.52, 0.7), "near-random to faithful"),
        (Interval(0.58, 0.7), "weakly faithful to faithful"),
        (Interval(0.3, 0.7), "not distinguishable from random"),
        (Interval(0.3, 0.5), "not distinguishable from random"),
        (Interval(0.5, 0.7), "not distinguishable from random"),
        (Interval(0.3, 0.49), "anti-faithful"),
    ],
)
def test_verdict_is_one_word_only_if_the_whole_interval_is_in_its_band(interval, words):
    assert str(verdict(sum(interval) / 2, interval)) == words


def test_verdict_without_an_interval():
    assert str(verdict(0.5, None)) == "not distinguishable from random"
    assert str(verdict(0.7, None)) == "undetermined (too few examples)"
    assert str(verdict(0.0, None)) == "undetermined (too few examples)"
    assert str(verdict(0.5, None, without=ALL_EQUAL)) == "not distinguishable from random"


@pytest.mark.parametrize(
    ("rates", "groups", "why"),
    [
        ([0.7], None, "too few examples"),
        ([0.7, 0.9], ["a", "a"], "too few examples"),
        ([0.7] * 30, None, "all win rates are equal"),
        ([0.7] * 3, ["a", "b", "b"], "all win rates are equal"),
        ([0.6, 0.8, 0.8, 0.6], ["a", "a", "b", "b"], "all groups have the same win rate"),
    ],
)
def test_without_an_interval_the_true_reason_is_said(rates, groups, why):
    rates = np.array(rates)
    assert mean_interval(rates, rng=np.random.default_rng(0), groups=groups) is None
    reason = reason_without_interval(rates, groups=groups)
    assert reason == why
    assert str(verdict(1.0, None, without=reason)) == f"undetermined ({why})"


@settings(deadline=None)
@given(RATES, RATES)
def test_verdict_names_a_direction_only_if_chance_is_excluded(one, other):
    interval = Interval(min(one, other), max(one, other))
    words = str(verdict((one + other) / 2, interval))
    assert excludes_chance(interval) == (words != "not distinguishable from random")
    if interval.low <= 0.5 <= interval.high:
        assert not excludes_chance(interval)
        assert "anti-faithful" not in words


@pytest.mark.parametrize(
    ("effect", "word"),
    [
        (0.0, "negligible"),
        (0.1999, "negligible"),
        (-0.1999, "negligible"),
        (0.2, "small"),
        (-0.2, "small negative"),
        (0.4999, "small"),
        (0.5, "medium"),
        (-0.7999, "medium negative"),
        (0.8, "large"),
        (-3.0, "large negative"),
        (float("inf"), "large"),
    ],
)
def test_words_of_effect_sizes(effect, word):
    assert effect_word(effect) == word


@pytest.mark.parametrize("limit", [0.2, 0.5, 0.8])
def test_round_off_does_not_move_an_effect_across_a_limit(limit):
    for sign in (-1, 1):
        assert effect_word(sign * np.nextafter(limit, 0)) == effect_word(sign * limit)


def test_an_effect_size_that_is_no_number_is_refused():
    with pytest.raises(DataError, match="an effect size is a number, got nan"):
        effect_word(float("nan"))


def test_an_undefined_interval_does_not_exclude_chance():
    assert not excludes_chance(None)


def test_a_limit_that_is_one_half_up_to_round_off_does_not_exclude_chance():
    assert not excludes_chance(Interval(np.nextafter(0.5, 1), 0.7))
    assert not excludes_chance(Interval(0.2, np.nextafter(0.5, 0)))


@pytest.mark.parametrize(("n", "expected"), [(20, 0.68), (100, 0.58), (500, 0.537)])
def test_detectable_win_rate_of_uniform_win_rates(n, expected):
    assert detectable_win_rate(np.linspace(0, 1, n)) == pytest.approx(expected, abs=0.015)


def test_detectable_win_rate_done_by_hand():
    assert detectable_win_rate(np.array([0.0, 1.0])) == pytest.approx(0.5 + 2.80 * 0.5)


def test_one_example_has_no_detectable_win_rate():
    assert detectable_win_rate(np.array([0.7])) is None


def test_equal_win_rates_show_no_spread_to_reckon_with():
    assert detectable_win_rate(np.full(9, 0.7)) is None


def test_detectable_win_rate_of_groups_has_the_cluster_robust_error(rng):
    rates = rng.random((12, 5))
    error = rates.mean(axis=1).std(ddof=1) / np.sqrt(12)
    groups = np.repeat(np.arange(12), 5)
    assert detectable_win_rate(rates.ravel(), groups=groups) == pytest.approx(0.5 + 2.80 * error)
    copies = np.repeat(rng.random(12), 5)
    assert detectable_win_rate(copies, groups=groups) > 2 * detectable_win_rate(copies) - 0.5
    assert detectable_win_rate(copies, groups=["a"] * 60) is None


def test_detectable_win_rate_of_nothing_is_refused():
    with pytest.raises(DataError, match="at least one win rate"):
        detectable_win_rate(np.array([]))
    with pytest.raises(DataError, match="1 of 2 win rates that are NaN"):
        detectable_win_rate(np.array([0.1, np.nan]))


def test_mean_at_the_detectable_win_rate_is_detected_four_times_out_of_five(rng):
    spread, n = 0.3, 100
    truth = detectable_win_rate(rng.permutation(np.r_[np.full(n // 2, -spread), np.full(n // 2, spread)]))
    samples = truth + spread * rng.choice([-1, 1], size=(4000, n))
    statistics = (samples.mean(axis=1) - 0.5) / (samples.std(axis=1, ddof=1) / np.sqrt(n))
    assert np.mean(np.abs(statistics) > 1.96) == pytest.approx(0.8, abs=0.04)


def test_an_interval_that_the_test_does_not_bear_out_says_nothing():
    interval = Interval(0.485, 0.494)
    assert str(verdict(0.49, interval)) == "anti-faithful"
    assert verdict(0.49, interval, p_value=0.47).reason == NOT_DISTINGUISHABLE
    assert str(verdict(0.49, interval, p_value=0.05)) == "anti-faithful"


@pytest.mark.parametrize(("n_units", "m", "n"), [(20, 19, 40), (12, 11, 40)])
def test_random_explanations_of_mostly_tied_sets_are_rarely_called_anything(n_units, m, n, rng):
    # One word of a text decides, all others tie: most win rates lie just below one half, a few are 1.
    said, by_interval = 0, 0
    for _ in range(150):
        scores = np.zeros((n, m + 1))
        decisive = rng.integers(n_units, size=n)
        scores[np.arange(n)[decisive < m + 1], decisive[decisive < m + 1]] = 1.0
        families = [member_win_rates(row) for row in scores]
        rates = np.array([family[0] for family in families])
        interval = mean_interval(rates, rng=rng, n_resamples=999)
        p_value = mean_test(families, rng=rng, n_draws=999).p_value
        said += verdict(float(rates.mean()), interval, p_value=p_value).reason != NOT_DISTINGUISHABLE
        by_interval += verdict(float(rates.mean()), interval).reason != NOT_DISTINGUISHABLE
    assert binomtest(said, 150, 0.05, alternative="greater").pvalue > 0.001
    assert by_interval > said


def test_a_verdict_lists_the_words_from_its_lowest_to_its_highest():
    found = verdict(0.6, Interval(0.52, 0.7))
    assert found.words == ("near-random", "weakly faithful", "faithful")
    assert (found.word, found.reason, found.excludes_chance) == (None, None, True)
    assert verdict(0.7, Interval(0.65, 0.8)).word == "faithful"


def test_a_verdict_that_the_test_does_not_bear_out_still_says_where_its_interval_lies():
    found = verdict(0.49, Interval(0.45, 0.495), p_value=0.47)
    assert (found.words, found.reason, found.excludes_chance) == ((), NOT_DISTINGUISHABLE, True)
    assert not found.is_undetermined and verdict(0.7, None).is_undetermined
