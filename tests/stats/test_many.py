"""Functions of many examples say of each what the function of one says, and that is what a plain loop says."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.streams import sequential

from ice_eval.stats import (
    Families,
    all_member_win_rates,
    compare,
    compare_all,
    compare_all_sequentially,
    effect_size,
    effect_sizes,
    mean_test,
    mean_tests,
    member_win_rates,
)
from ice_eval.stats._values import ROUND_OFF

SCORES = st.one_of(
    st.integers(-4, 4).map(float),  # few values, so many ties
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.integers(-4, 4).map(lambda value: 0.1 * value + 0.2 - 0.2),  # ties that round differently
)
RAGGED = st.lists(st.tuples(SCORES, st.lists(SCORES, min_size=1, max_size=40)), min_size=1, max_size=8)
RATES = ("win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower")


def padded(rows, *, more=0):
    """Rows of different lengths as a matrix with NaN at the end, and their lengths."""
    n = np.array([len(row) for row in rows], dtype=np.int64)
    matrix = np.full((len(rows), int(n.max(initial=0)) + more), np.nan)
    for row, own in zip(rows, matrix, strict=True):
        own[: len(row)] = row
    return matrix, n


# --- rationales against their nulls --------------------------------------------------------------------------------


@given(RAGGED, st.integers(0, 5))
def test_many_comparisons_are_those_of_each_example(examples, more):
    null, n = padded([row for _, row in examples], more=more)
    found = compare_all(np.array([observed for observed, _ in examples]), null, n)
    for place, (observed, row) in enumerate(examples):
        alone = compare(observed, np.array(row))
        assert [getattr(found, name)[place] for name in RATES] == [getattr(alone, name) for name in RATES]


@given(RAGGED)
def test_many_comparisons_count_wins_and_ties(examples):
    null, n = padded([row for _, row in examples])
    found = compare_all(np.array([observed for observed, _ in examples]), null, n)
    for place, (observed, row) in enumerate(examples):
        slack = ROUND_OFF * max(map(abs, [observed, *row]))
        wins = sum(value < observed - slack for value in row)
        losses = sum(value > observed + slack for value in row)
        m, ties = len(row), len(row) - wins - losses
        expected = [
            (wins + ties / 2) / m,
            wins / m,
            ties / m,
            (1 + ties + losses) / (m + 1),
            (1 + ties + wins) / (m + 1),
        ]
        assert [getattr(found, name)[place] for name in RATES] == expected


@given(RAGGED, st.integers(0, 130))
def test_many_effect_sizes_are_those_of_each_example(examples, more):
    null, n = padded([row for _, row in examples], more=more)
    found = effect_sizes(np.array([observed for observed, _ in examples]), null, n)
    for size, (observed, row) in zip(found.tolist(), examples, strict=True):
        alone = effect_size(observed, np.array(row))
        assert math.isnan(size) if alone is None else size == alone


@pytest.mark.parametrize("n", [1, 7, 8, 13, 50, 127, 129, 500])
def test_an_effect_size_does_not_depend_on_how_many_sets_others_have(n):
    rng = np.random.default_rng(n)
    observed, row = rng.normal(), rng.normal(size=n)
    for more in (0, 1, 3, 8, 100, 1000):
        null, sizes = padded([row], more=more)
        [found] = effect_sizes(np.array([observed]), null, sizes)
        assert math.isnan(found) if n == 1 else found == effect_size(observed, row)


# --- all members of a family ---------------------------------------------------------------------------------------


def pair_by_pair(values):
    """Win rate of each member; two members tie when they differ by at most the slack of the family."""
    slack = ROUND_OFF * max(map(abs, values))
    rates = []
    for place, own in enumerate(values):
        others = [value for other, value in enumerate(values) if other != place]
        wins = sum(value < own - slack for value in others)
        losses = sum(value > own + slack for value in others)
        rates.append((wins + (len(others) - wins - losses) / 2) / len(others))
    return rates


FAMILIES = st.lists(st.lists(SCORES, min_size=2, max_size=30), min_size=1, max_size=8)


@given(FAMILIES, st.integers(0, 5))
def test_many_families_have_the_win_rates_of_each_of_them(families, more):
    values, n = padded(families, more=more)
    found = all_member_win_rates(values, n)
    assert found.shape == values.shape and np.array_equal(np.isnan(found), np.isnan(values))
    for rates, family in zip(found, families, strict=True):
        assert rates[: len(family)].tolist() == member_win_rates(np.array(family)).tolist()
        assert rates[: len(family)].tolist() == pair_by_pair(family)


STEP = 0.7 * ROUND_OFF
"""Of two values near 1 that are this far apart: they tie, and those two steps apart do not."""


def test_near_ties_are_not_chained():
    values = [1.0, 1.0 + STEP, 1.0 + 2 * STEP]
    assert values[0] < values[1] < values[2] and values[2] - values[0] > ROUND_OFF * values[2]
    assert values[1] - values[0] < ROUND_OFF * values[2] > values[2] - values[1]
    assert member_win_rates(np.array(values)).tolist() == [0.25, 0.5, 0.75]


@given(
    st.lists(
        st.lists(st.integers(0, 12).map(lambda steps: 1.0 + steps * STEP), min_size=2, max_size=20),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.sampled_from([0.25, 0.5, 1.0]), max_size=3),
    st.randoms(use_true_random=False),
)
def test_chains_of_near_ties_are_compared_pair_by_pair(families, others, random):
    """Some families hold chains, others only ties or none; each is as it would be alone."""
    families = [[*family, *others] for family in families] + [[0.0, 1.0, 1.0], [2.0, 2.0], [1.0, 2.0, 3.0]]
    for family in families:
        random.shuffle(family)
    found = all_member_win_rates(*padded(families, more=2))
    for rates, family in zip(found, families, strict=True):
        assert rates[: len(family)].tolist() == pair_by_pair(family)


# --- families that are held small ----------------------------------------------------------------------------------


def held(families, *, missing=()):
    """Families as they are held; at some places there is an example without one."""
    rates, members = padded(families)
    sizes = list(members)
    for place in missing:
        sizes.insert(place, 0)
    return Families.of(rates, members, np.array(sizes))


def assert_families(found, expected):
    assert len(found.rates()) == len(expected)
    for ours, theirs in zip(found.rates(), expected, strict=True):
        assert np.array_equal(ours, theirs)


TIED = st.lists(
    st.lists(st.integers(0, 6).map(float), min_size=2, max_size=300).map(lambda row: member_win_rates(np.array(row))),
    min_size=1,
    max_size=5,
)


@given(TIED, TIED, st.data())
def test_families_that_are_held_small_come_back_bit_for_bit(first, second, data):
    one, two = held(first), held(second, missing=[0, 1])
    assert_families(one, first)
    assert_families(two, second)
    joined = [np.concatenate([getattr(each, name) for each in (one, two)]) for name in ("beaten", "sizes")]
    both = Families(*joined)
    assert_families(both, [*first, *second])
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(both.sizes), max_size=len(both.sizes))))
    places = [*range(len(first)), None, None, *range(len(first), len(first) + len(second))]
    kept = [place for place, keep in zip(places, chosen, strict=True) if keep and place is not None]
    assert_families(both.select(chosen), [[*first, *second][place] for place in kept])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.booleans())
def test_families_that_are_held_small_have_the_same_test(seed, n_examples, grouped):
    rng = np.random.default_rng(seed)
    several = [random_families(rng, n_examples) for _ in range(3)]
    groups = rng.integers(0, 4, n_examples).tolist() if grouped else None
    make = partial(np.random.default_rng, 5)
    found = mean_tests([held(each) for each in several], rng=make, n_draws=199, groups=groups)
    assert found == mean_tests(several, rng=make, n_draws=199, groups=groups)


def test_variances_of_families_are_about_one_half():
    families = random_families(np.random.default_rng(0), 6)
    expected = [np.mean((family - 0.5) ** 2) for family in families]
    assert held(families, missing=[0, 3]).variances() == pytest.approx(expected)


# --- sequential tests ----------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=60)), min_size=1, max_size=8
    ),
    st.integers(2, 6),
    st.integers(0, 5),
)
def test_many_sequential_comparisons_are_those_of_each_example(examples, h, more):
    stream, n = padded([row for _, row in examples], more=more)
    found = compare_all_sequentially(np.array([float(observed) for observed, _ in examples]), stream, n, h=h)
    for place, (observed, row) in enumerate(examples):
        draws = np.array(row, dtype=float)
        alone = sequential(observed, draws, h=h)
        assert [getattr(found.rates, name)[place] for name in RATES] == [getattr(alone, name) for name in RATES]
        assert (found.n_upper[place], found.n_lower[place]) == (alone.n_upper, alone.n_lower)
        assert (found.n_used[place], found.n_rated[place]) == (alone.n_used, alone.n_rated)
        assert found.stopped[place] == alone.stopped


@given(st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.integers(2, 6))
def test_a_sequential_comparison_is_the_rule_applied_one_draw_at_a_time(observed, row, h):
    found = compare_all_sequentially(
        np.array([float(observed)]), np.array([row], dtype=float), np.array([len(row)]), h=h
    )
    stops = []
    for hits in ([draw >= observed for draw in row], [draw <= observed for draw in row]):
        places = [place for place, hit in enumerate(hits, start=1) if hit]
        stops.append(places[h - 1] if len(places) >= h else None)
    assert bool(found.stopped[0]) == (None not in stops)
    assert [int(found.n_upper[0]), int(found.n_lower[0])] == [len(row) if stop is None else stop for stop in stops]
    rated = row if None in stops else row[: max(stops) - 1]
    assert found.n_rated[0] == len(rated)
    wins, ties = sum(draw < observed for draw in rated), sum(draw == observed for draw in rated)
    assert found.rates.win_rate[0] == (wins + ties / 2) / len(rated)


# --- tests of the mean ---------------------------------------------------------------------------------------------


def random_families(rng, n_examples, *, sizes=None):
    sizes = rng.integers(2, 9, n_examples) if sizes is None else sizes
    return [member_win_rates(rng.integers(0, 6, size).astype(float)) for size in sizes]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.booleans())
def test_tests_of_several_configurations_are_those_of_each(seed, n_examples, grouped):
    rng = np.random.default_rng(seed)
    same = rng.integers(2, 9, n_examples)
    # The first, second and last have families of the same sizes, and so the same draws.
    several = [random_families(rng, n_examples, sizes=sizes) for sizes in (same, same, None, None, same)]
    groups = rng.integers(0, 4, n_examples).tolist() if grouped else None
    make = partial(np.random.default_rng, 5)
    found = mean_tests(several, rng=make, n_draws=199, groups=groups)
    assert found == [mean_test(each, rng=make(), n_draws=199, groups=groups) for each in several]


def test_families_stay_as_they_are():
    several = [random_families(np.random.default_rng(seed), 9) for seed in range(3)]
    before = [[family.copy() for family in families] for families in several]
    mean_tests(several, rng=partial(np.random.default_rng, 0), n_draws=99)
    for families, old in zip(several, before, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(families, old, strict=True))
