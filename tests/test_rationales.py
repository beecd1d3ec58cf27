import hashlib
import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.stats.known_words import generator_of, words_used

from ice_eval import rationales
from ice_eval.errors import DataError
from ice_eval.rationales import (
    independent_sets,
    keep_mask,
    n_sets,
    null_of,
    place_of,
    positive,
    random_sets,
    set_size,
    top_k,
    units_of,
)
from ice_eval.seeding import rng_for


def all_units(masks):
    """The units of each set."""
    return [units_of(mask) for mask in masks]


def masks_of(sets, n):
    return np.array([keep_mask(units, n) for units in sets]).reshape(len(sets), n)


def top_units(values, size, *, rng):
    return units_of(top_k(values, size, rng=rng))


def sets_of(*args, **keys):
    return all_units(random_sets(*args, **keys))


@pytest.mark.parametrize(
    ("k", "n", "size"),
    [
        (0.2, 10, 2), (0.2, 14, 2), (0.2, 15, 3), (0.2, 4, 1), (0.2, 1, 1), (0.01, 10, 1), (0.99, 100, 99),
        (0.3, 10, 3), (0.7, 10, 7), (0.1, 30, 3), (0.29, 100, 29), (0.57, 100, 57), (0.6, 5, 3), (1 / 3, 3, 1),
    ],
)  # fmt: skip
def test_size_is_the_floor_of_k_times_n_and_at_least_one(k, n, size):
    assert set_size(n, k) == size


@given(st.integers(1, 999), st.integers(1, 2000))
def test_size_is_right_where_floating_point_is_not(thousandths, n):
    assert set_size(n, thousandths / 1000) == max(1, math.floor(Fraction(thousandths, 1000) * n))


def test_number_of_sets_is_the_binomial_coefficient():
    assert [n_sets(5, size) for size in range(6)] == [1, 5, 10, 10, 5, 1]


def test_top_k_takes_the_largest_values_and_lists_them_in_text_order():
    assert top_units(np.array([0.1, 0.9, -3.0, 0.5, 0.2]), 3, rng=rng_for(0)) == (1, 3, 4)


def test_top_k_ranks_by_value_not_by_size_of_the_value():
    assert top_units(np.array([-9.0, 0.0, 1.0]), 2, rng=rng_for(0)) == (1, 2)


def test_units_above_the_boundary_are_always_in():
    values = np.array([0.0, 1.0, 0.0, 2.0, 0.0])
    chosen = [top_units(values, 3, rng=rng_for(seed)) for seed in range(50)]
    assert all({1, 3} < set(units) for units in chosen)


def test_ties_at_the_boundary_are_broken_uniformly_and_not_by_position():
    values = np.array([1.0, 0.0, 5.0, 0.0, 0.0, -1.0, 0.0])  # two places for units 0 and 2, then one of four zeros
    chosen = Counter(top_units(values, 3, rng=rng_for(seed, "ties")) for seed in range(2000))
    assert set(chosen) == {(0, 1, 2), (0, 2, 3), (0, 2, 4), (0, 2, 6)}
    assert stats.chisquare(list(chosen.values())).pvalue > 1e-3


def test_a_constant_attribution_gives_a_uniform_set():
    chosen = Counter(top_units(np.zeros(5), 2, rng=rng_for(seed)) for seed in range(3000))
    assert len(chosen) == 10
    assert stats.chisquare(list(chosen.values())).pvalue > 1e-3


def test_negative_zero_ties_with_zero():
    chosen = {top_units(np.array([0.0, -0.0]), 1, rng=rng_for(seed)) for seed in range(50)}
    assert chosen == {(0,), (1,)}


def test_the_same_generator_breaks_ties_the_same_way():
    assert top_units(np.zeros(30), 7, rng=rng_for(4)) == top_units(np.zeros(30), 7, rng=rng_for(4))


def test_a_generator_may_be_made_only_where_there_is_a_tie():
    def never():
        pytest.fail("there is no tie to break")

    assert top_units(np.array([0.0, 3.0, 3.0, 1.0]), 2, rng=never) == (1, 2)
    values = np.array([2.0, 0.0, 5.0, 0.0, 0.0])
    for seed in range(20):
        assert top_units(values, 3, rng=lambda seed=seed: rng_for(seed)) == top_units(values, 3, rng=rng_for(seed))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.data())
def test_top_k_is_a_stable_choice_of_the_largest(values, data):
    size = data.draw(st.integers(1, len(values)))
    chosen = top_units(np.array(values, dtype=float), size, rng=rng_for(0))
    assert len(chosen) == size
    assert sorted((values[unit] for unit in chosen), reverse=True) == sorted(values, reverse=True)[:size]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_top_k_refuses_values_that_are_not_finite(bad):
    with pytest.raises(DataError, match="not finite"):
        top_k(np.array([1.0, bad]), 1, rng=rng_for(0))


@pytest.mark.parametrize("size", [0, 3])
def test_top_k_refuses_a_size_that_the_text_does_not_have(size):
    with pytest.raises(DataError, match=f"a rationale of {size} units was asked for, and the text has 2"):
        top_k(np.array([1.0, 2.0]), size, rng=rng_for(0))


@pytest.mark.parametrize(("n", "size"), [(8, 3), (60, 12)], ids=["listed", "drawn"])
def test_random_sets_are_distinct_sorted_and_of_the_size(n, size):
    sets = sets_of(n, size, 50, seed=0, example_id="a")
    assert len(set(sets)) == len(sets) == 50
    for units in sets:
        assert len(set(units)) == size
        assert list(units) == sorted(units)
        assert all(type(unit) is int and 0 <= unit < n for unit in units)


def test_all_sets_are_given_when_there_are_fewer_than_asked_for():
    sets = sets_of(5, 2, 51, seed=0, example_id="a")
    assert sorted(sets) == list(itertools.combinations(range(5), 2))


def test_sets_that_are_drawn_are_never_given_twice():
    sets = sets_of(25, 4, 2000, seed=0, example_id="a")  # of 12,650, so that many draws repeat
    assert len(set(sets)) == len(sets) == 2000


def test_all_sets_are_given_where_they_are_drawn_too(monkeypatch):
    class Limited:
        """A generator that gives up: a loop that waits for an eleventh set of ten would never end."""

        def __init__(self, *keys):
            self.rng, self.left = rng_for(*keys), 10_000

        def __getattr__(self, name):
            self.left -= 1
            assert self.left, "draws without end"
            return getattr(self.rng, name)

    monkeypatch.setattr(rationales, "_ENUMERATE", 0)
    monkeypatch.setattr(rationales, "rng_for", Limited)
    sets = sets_of(5, 2, 51, seed=0, example_id="a")
    assert sorted(sets) == list(itertools.combinations(range(5), 2))


def test_all_sets_come_in_a_random_order():
    orders = {tuple(sets_of(4, 2, 51, seed=0, example_id=str(index))) for index in range(20)}
    assert len(orders) > 15


def test_the_first_set_is_uniform_over_examples():
    counts = Counter(sets_of(5, 2, 1, seed=0, example_id=str(index))[0] for index in range(4000))
    assert len(counts) == 10
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_the_last_of_the_first_sets_is_uniform_too():
    counts = Counter(sets_of(5, 2, 4, seed=0, example_id=str(index))[3] for index in range(4000))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_units_of_drawn_sets_are_uniform():
    counts = np.zeros(40)
    for index in range(300):
        for units in sets_of(40, 8, 2, seed=0, example_id=str(index)):
            counts[list(units)] += 1
    # Units of one set are drawn without replacement, so their counts vary less than a multinomial's.
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum() / (1 - 8 / 40) * 39 / 40
    assert 1e-3 < stats.chi2.sf(statistic, 39) < 1 - 1e-3


@pytest.mark.parametrize(("n", "size"), [(12, 3), (60, 12)], ids=["listed", "drawn"])
def test_a_larger_count_only_makes_the_order_longer(n, size):
    long = sets_of(n, size, 120, seed=3, example_id="a")
    assert all(sets_of(n, size, count, seed=3, example_id="a") == long[:count] for count in (1, 2, 50, 119))


def test_the_order_depends_on_seed_example_and_size_alone():
    base = sets_of(20, 4, 10, seed=0, example_id="a")
    assert sets_of(20, 4, 10, seed=0, example_id="a") == base
    assert sets_of(20, 4, 10, seed=1, example_id="a") != base
    assert sets_of(20, 4, 10, seed=0, example_id="b") != base
    larger = sets_of(20, 5, 10, seed=0, example_id="a")
    assert not all(set(four) < set(five) for four, five in zip(base, larger, strict=True))


def test_random_sets_are_the_ones_that_earlier_versions_drew():
    assert sets_of(6, 2, 4, seed=0, example_id="a") == [(0, 4), (3, 4), (4, 5), (1, 4)]
    assert sets_of(60, 12, 1, seed=0, example_id="a") == [(0, 1, 7, 11, 18, 21, 33, 37, 40, 42, 43, 56)]


def test_whole_orders_of_sets_are_the_ones_that_earlier_versions_drew():
    places = [(6, 2, 0), (9, 4, 1), (25, 4, 2), (60, 12, 3), (512, 102, 4)]  # listed twice, then drawn
    orders = [sets_of(n, size, 500, seed=seed, example_id="a") for n, size, seed in places]
    assert hashlib.sha256(json.dumps(orders).encode()).hexdigest().startswith("14fab8a199d28565")
    places = [(6, 2, 0), (60, 12, 3)]
    draws = [independent_sets(n, size, 50, seed=seed, example_id="a", attribution="x") for n, size, seed in places]
    drawn = [all_units(each) for each in draws]
    assert hashlib.sha256(json.dumps(drawn).encode()).hexdigest().startswith("f9b0d43010663d06")


def one_by_one(n, size, count, rng):
    """Sets as numpy draws them."""
    return masks_of([rng.choice(n, size, replace=False) for _ in range(count)], n)


@given(st.integers(1, 200), st.integers(0, 2**32 - 1), st.integers(0, 30), st.data())
def test_sets_drawn_at_once_are_those_that_numpy_draws_one_by_one(n, seed, count, data):
    size = data.draw(st.integers(1, n))
    at_once, alone = np.random.default_rng(seed), np.random.default_rng(seed)
    assert np.array_equal(rationales._drawn(n, size, count, at_once), one_by_one(n, size, count, alone))
    # Both are in the same place of the stream: what is drawn next is the same too.
    assert np.array_equal(rationales._drawn(n, size, 3, at_once), one_by_one(n, size, 3, alone))


@pytest.mark.parametrize(
    ("n", "size"),
    [(1, 1), (2, 1), (2, 2), (512, 102), (9_999, 40), (10_000, 150), (10_000, 600), (10_001, 3), (20_000, 700)],
)
def test_sets_of_long_texts_are_those_that_numpy_draws_one_by_one(n, size):
    at_once, alone = np.random.default_rng(7), np.random.default_rng(7)
    assert np.array_equal(rationales._drawn(n, size, 9, at_once), one_by_one(n, size, 9, alone))
    assert np.array_equal(rationales._drawn(n, size, 2, at_once), one_by_one(n, size, 2, alone))


@pytest.mark.parametrize("place", range(10))
def test_sets_are_those_of_numpy_where_a_word_is_refused(place):
    words = np.random.default_rng(3).integers(1, 2**32, 40).tolist()
    words[place] = 0  # refused for every bound that is no power of 2
    assert generator_of(words).integers(0, 2**32, 40, dtype=np.uint32).tolist() == words
    at_once, alone = generator_of(words), generator_of(words)
    assert np.array_equal(rationales._drawn(11, 3, 5, at_once), one_by_one(11, 3, 5, alone))
    assert words_used(at_once) == words_used(alone) == 5 * 5 + (place % 5 != 4)  # the last bound of a set is 2
    assert np.array_equal(rationales._drawn(11, 3, 5, at_once), one_by_one(11, 3, 5, alone))


def test_a_word_that_is_refused_moves_all_sets_after_it():
    words = np.random.default_rng(3).integers(1, 2**32, 40).tolist()
    plain = rationales._drawn(11, 3, 5, generator_of(words))
    words[2] = 0  # the bound of the third unit is 11
    found = rationales._drawn(11, 3, 5, generator_of(words))
    shifted = rationales._drawn(11, 3, 5, generator_of([*words[:2], *words[3:]]))
    assert np.array_equal(found, shifted) and not np.array_equal(found, plain)


def test_the_null_leaves_out_the_rationale_itself_and_nothing_else():
    sets = masks_of([(0, 1), (0, 2), (1, 2), (2, 3)], 4)
    assert null_of(keep_mask((0, 2), 4), sets, 3).tolist() == [0, 2, 3]


def test_the_null_is_the_first_m_sets_when_the_rationale_is_not_among_them():
    sets = masks_of([(0, 1), (0, 2), (1, 2)], 9)
    assert null_of(keep_mask((7, 8), 9), sets, 2).tolist() == [0, 1]


@given(st.integers(2, 9), st.data())
def test_the_null_holds_m_sets_or_all_others(n, data):
    size = data.draw(st.integers(1, n - 1))
    m = data.draw(st.integers(1, 60))
    sets = random_sets(n, size, m + 1, seed=0, example_id="a")
    rationale = data.draw(st.sampled_from(list(itertools.combinations(range(n), size))))
    null = [units_of(sets[index]) for index in null_of(keep_mask(rationale, n), sets, m)]
    assert rationale not in null
    assert len(null) == min(m, math.comb(n, size) - 1)


@given(st.integers(2, 9), st.data())
def test_the_place_of_a_rationale_is_where_its_set_is(n, data):
    size = data.draw(st.integers(1, n - 1))
    sets = random_sets(n, size, data.draw(st.integers(1, 60)), seed=0, example_id="a")
    rationale = data.draw(st.sampled_from(list(itertools.combinations(range(n), size))))
    listed = all_units(sets)
    expected = listed.index(rationale) if rationale in listed else None
    assert place_of(keep_mask(rationale, n), sets) == expected


def test_keep_mask_marks_just_the_units():
    assert keep_mask((1, 3), 5).tolist() == [False, True, False, True, False]
    assert not keep_mask((), 3).any()


@given(st.lists(st.booleans(), max_size=20))
def test_a_mask_and_its_units_are_the_same(mask):
    units = units_of(np.array(mask, dtype=bool))
    assert units == tuple(unit for unit, kept in enumerate(mask) if kept)
    assert keep_mask(units, len(mask)).tolist() == mask


def test_positive_units_are_those_above_zero():
    assert units_of(positive(np.array([0.0, 1e-300, -1.0, -0.0, 2.0]))) == (1, 4)
