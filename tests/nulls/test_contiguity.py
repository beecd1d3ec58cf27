import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nulls.examples import ITEMS, class_of
from tests.nulls.test_laws import uniformity

from ice_eval.nulls import contiguity
from ice_eval.nulls.contiguity import Runs, n_placings
from ice_eval.seeding import rng_for


def n_runs(units, borders=()):
    return sum(unit in borders or unit - 1 not in units for unit in units)


@given(st.integers(1, 12), st.data())
def test_the_number_of_sets_in_a_line_is_the_closed_form(n, data):
    size = data.draw(st.integers(0, n))
    found = [n_runs(units) for units in itertools.combinations(range(n), size)]
    assert all(n_placings(n, size, runs) == found.count(runs) for runs in range(n + 2))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_sets_in_several_lines_are_those_whose_runs_end_at_the_borders(lengths, data):
    ends = list(itertools.accumulate(lengths))
    lines = tuple(range(end - length, end) for end, length in zip(ends, lengths, strict=True))
    size = data.draw(st.integers(1, ends[-1]))
    rationale = data.draw(st.sampled_from(list(itertools.combinations(range(ends[-1]), size))))
    runs = n_runs(rationale, borders=ends)
    alike = Runs(lines, size, runs)
    expected = [units for units in itertools.combinations(range(ends[-1]), size) if n_runs(units, borders=ends) == runs]
    assert sorted(alike.every()) == expected
    assert alike.count == len(expected)
    assert alike.draw(rng_for(0)) in expected


def test_a_run_does_not_cross_from_one_field_into_the_next():
    item = ITEMS["two-fields"]  # a man plays music | he isn't asleep
    assert class_of("contiguity", item, (2, 3)).key == (9, 2, 1)
    assert class_of("contiguity", item, (3, 4)).key == (9, 2, 2)
    assert (3, 4) not in class_of("contiguity", item, (2, 3)).every()
    assert class_of("contiguity", item, (2, 3)).count == 3 + 4


def test_a_field_that_the_prompt_shows_again_begins_a_line_of_its_own():
    assert class_of("contiguity", ITEMS["three-lines"], (2, 3)).key == (9, 2, 2)


@pytest.mark.parametrize("borders", [[], [256], [100, 101], [128, 256, 384]], ids=len)
def test_long_texts_have_exact_counts(borders):
    lines = tuple(range(start, end) for start, end in itertools.pairwise([0, *borders, 512]))
    total = sum(Runs(lines, 40, runs).count for runs in range(1, 41))
    assert total == math.comb(512, 40)


def test_units_at_the_edge_of_a_field_are_drawn_as_often_as_the_class_has_them():
    lines = (range(0, 10), range(10, 30))
    alike = Runs(lines, 6, 3)
    rng, seen = rng_for(0, "edges"), np.zeros(30)
    for _ in range(4000):
        seen[list(alike.draw(rng))] += 1
    exact = np.zeros(30)
    for units in alike.every():
        exact[list(units)] += 1
    expected = exact / alike.count
    assert np.abs((seen / 4000 - expected) / np.sqrt(expected * (1 - expected) / 4000)).max() < 4


def broken_stick(size, runs, rng):
    """Each run takes any length that the others leave, so the first ones get too much."""
    lengths = []
    for left in range(runs - 1, 0, -1):
        lengths.append(int(rng.integers(1, size - sum(lengths) - left + 1)))
    return [*lengths, size - sum(lengths)]


def one_long_run(size, runs, rng):
    return rng.permutation([size - runs + 1, *[1] * (runs - 1)]).tolist()


@pytest.mark.parametrize("biased", [broken_stick, one_long_run])
def test_lengths_that_are_not_cut_uniformly_would_be_noticed(monkeypatch, biased):
    alike = Runs((range(10),), 6, 3)
    assert uniformity(alike, rng_for(0, "uniform")) > 1e-3
    monkeypatch.setattr(contiguity, "_lengths", biased)
    assert uniformity(alike, rng_for(0, "uniform")) < 1e-9


def test_fields_that_get_equal_shares_would_be_noticed(monkeypatch):
    lines = (range(0, 3), range(3, 10))
    fair = Runs(lines, 4, 2)
    assert uniformity(fair, rng_for(0, "uniform")) > 1e-3
    ways = Runs._ways
    monkeypatch.setattr(Runs, "_ways", lambda *state: np.minimum(ways(*state), 1))
    monkeypatch.setattr(Runs, "count", fair.count)
    assert uniformity(Runs(lines, 4, 2), rng_for(0, "uniform")) < 1e-9


@given(st.integers(1, 2**200), st.integers(0, 99))
def test_large_numbers_are_drawn_below_their_bound(bound, seed):
    assert 0 <= contiguity._below(bound, rng_for(seed)) < bound
