import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from ice_eval.errors import DataError
from ice_eval.stats import (
    ANTI_FAITHFUL,
    NOT_DISTINGUISHABLE,
    POSITIVE,
    RANDOM,
    UNDECIDABLE,
    WORDS,
    Interval,
    Taxonomy,
    all_member_win_rates,
    excludes_chance,
    mean_interval,
    point_verdict,
    taxonomy,
    verdict,
)

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


@pytest.mark.parametrize(
    ("win_rate", "word"),
    [(0.49, "anti-faithful"), (0.5, "near-random"), (0.55, "weakly faithful"), (0.61, "faithful")],
)
def test_a_verdict_on_the_estimate_is_the_papers_word_whatever_the_interval(win_rate, word):
    for interval in (Interval(0.0, 1.0), Interval(win_rate, win_rate)):
        found = point_verdict(win_rate, interval)
        assert str(found) == found.word == word and word in WORDS
        assert found.excludes_chance == (interval.low == win_rate != 0.5)
    assert (word in POSITIVE) == (win_rate >= 0.55)


@pytest.mark.parametrize("bad", [-0.01, 1.01, 92.0, float("nan")])
def test_taxonomy_of_what_is_no_win_rate_is_refused(bad):
    with pytest.raises(DataError, match=r"a win rate lies in \[0, 1\]"):
        taxonomy(bad)


@pytest.mark.parametrize(
    ("interval", "word"),
    [
        (Interval(0.1, 0.3), "anti-faithful"),
        (Interval(0.3, 0.49), "anti-faithful"),
        (Interval(0.44, 0.49), "anti-faithful"),
        (Interval(0.45, 0.49), "random within ±5 pp"),
        (Interval(0.47, 0.53), "random within ±5 pp"),
        (Interval(0.51, 0.54), "random within ±5 pp"),
        (Interval(0.45, 0.55), "random within ±5 pp"),
        (Interval(0.51, 0.58), "better than random"),
        (Interval(0.52, 0.7), "better than random"),
        (Interval(0.55, 0.60), "weakly faithful"),
        (Interval(0.58, 0.7), "weakly faithful"),
        (Interval(0.60, 0.7), "weakly faithful"),
        (Interval(0.61, 0.7), "faithful"),
        (Interval(0.3, 0.7), "not distinguishable from random"),
        (Interval(0.3, 0.5), "not distinguishable from random"),
        (Interval(0.5, 0.7), "not distinguishable from random"),
    ],
)
def test_a_verdict_is_the_strongest_word_for_all_of_the_interval(interval, word):
    found = verdict(interval)
    assert (found.word, str(found)) == (word, word)
    assert word in WORDS
    assert found.excludes_chance == (not interval.low <= 0.5 <= interval.high)


@pytest.mark.parametrize("limit", [0.45, 0.5, 0.55, 0.6])
def test_round_off_does_not_move_a_limit_across_a_band(limit):
    for other in (0.1, 0.48, 0.52, 0.9):
        ends = [sorted((end, other)) for end in (np.nextafter(limit, 0), limit, np.nextafter(limit, 1), limit - 1e-15)]
        assert len({verdict(Interval(*each)).word for each in ends}) == 1


def test_so_many_ties_that_nothing_can_be_faithful_are_undecidable():
    found = verdict(Interval(0.52, 0.58), tie_rate=0.886)
    assert (found.word, str(found)) == (UNDECIDABLE, "undecidable: 89 % of sets tie")
    assert found.excludes_chance
    # At 80 % an explanation that never loses wins 60 %, and faithful is above that.
    assert verdict(Interval(0.62, 0.7), tie_rate=0.8).word == UNDECIDABLE
    assert verdict(Interval(0.62, 0.7), tie_rate=0.79).word == "faithful"


RANK = {
    ANTI_FAITHFUL: -1,
    UNDECIDABLE: 0,
    NOT_DISTINGUISHABLE: 0,
    RANDOM: 0,
    **{w: i + 1 for i, w in enumerate(POSITIVE)},
}


@settings(deadline=None)
@given(RATES, RATES, RATES, RATES)
def test_a_verdict_never_gets_worse_as_the_limits_rise(low, high, more, much):
    low, high = sorted((low, high))
    raised = sorted((low + more * (1 - low), high + much * (1 - high)))
    assert RANK[verdict(Interval(*raised)).word] >= RANK[verdict(Interval(low, high)).word]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=70), st.data())
def test_raising_a_win_rate_never_weakens_a_verdict(grid, data):
    raised, place = list(grid), data.draw(st.integers(0, len(grid) - 1))
    raised[place] = data.draw(st.integers(grid[place], 20))
    before, after = (verdict(mean_interval(np.array(each) / 20)).word for each in (grid, raised))
    assert RANK[after] >= RANK[before]


def test_five_texts_are_too_few_and_one_that_was_lost_makes_them_no_better():
    for rates in (np.ones(5), np.array([1, 1, 1, 1, 0.9]), np.ones(6)):
        assert verdict(mean_interval(rates)).word == NOT_DISTINGUISHABLE


@settings(deadline=None)
@given(RATES, RATES)
def test_a_verdict_names_a_direction_only_if_chance_is_excluded(one, other):
    interval = Interval(min(one, other), max(one, other))
    found = verdict(interval)
    assert found.excludes_chance == excludes_chance(interval)
    if found.word in (ANTI_FAITHFUL, *POSITIVE):
        assert found.excludes_chance
    if found.word == NOT_DISTINGUISHABLE:
        assert interval.low <= 0.5 <= interval.high or not found.excludes_chance


def test_a_limit_that_is_one_half_up_to_round_off_does_not_exclude_chance():
    assert not excludes_chance(Interval(np.nextafter(0.5, 1), 0.7))
    assert not excludes_chance(Interval(0.2, np.nextafter(0.5, 0)))


@pytest.mark.parametrize(("n_units", "m", "n"), [(20, 19, 40), (12, 11, 40), (12, 11, 80)])
def test_random_explanations_of_mostly_tied_sets_are_rarely_called_anything(n_units, m, n, rng):
    # One word of a text decides, all others tie: most win rates lie just below one half, a few are 1.
    said = 0
    for _ in range(300):
        scores = np.zeros((n, m + 1))
        decisive = rng.integers(n_units, size=n)
        scores[np.arange(n)[decisive < m + 1], decisive[decisive < m + 1]] = 1.0
        rates = all_member_win_rates(scores, np.full(n, m + 1))[:, 0]
        said += verdict(mean_interval(rates)).word in (ANTI_FAITHFUL, *POSITIVE)
    assert binomtest(said, 300, 0.05, alternative="greater").pvalue > 0.001
