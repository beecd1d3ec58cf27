"""The nulls that take as many units from each part: size, position and frequency."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nulls.examples import ITEMS, class_of, item_of

from ice_eval.errors import DataError
from ice_eval.nulls import matched_sets, unit_counts
from ice_eval.nulls.strata import Frequency, Strata


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=9), st.data())
def test_strata_hold_the_sets_with_as_many_units_of_each(stratum_of, data):
    units = range(len(stratum_of))
    rationale = tuple(sorted(data.draw(st.sets(st.sampled_from(units)))))
    alike = Strata.of(stratum_of, rationale)
    ours = sorted(stratum_of[unit] for unit in rationale)
    expected = [
        chosen
        for chosen in itertools.combinations(units, len(rationale))
        if sorted(stratum_of[unit] for unit in chosen) == ours
    ]
    assert sorted(alike.every()) == expected
    assert alike.count == len(expected)


def test_size_is_the_null_of_the_paper():
    alike = class_of("size", ITEMS["words"], (1, 2, 5))
    assert alike.key == (9, 3)
    assert alike.count == math.comb(9, 3)


@pytest.mark.parametrize(
    ("n", "strata"),
    [
        (1, [(0,)]),
        (2, [(0,), (1,)]),
        (5, [(0, 1), (2,), (3,), (4,)]),
        (8, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (10, [(0, 1, 2), (3, 4), (5, 6, 7), (8, 9)]),
    ],
)
def test_a_text_has_four_quarters_or_as_many_as_it_has_units(n, strata):
    assert list(class_of("position", item_of(" ".join(["film"] * n)), (0,)).strata) == strata


def test_position_takes_as_many_units_from_each_quarter():
    alike = class_of("position", item_of("one two three four five six seven eight"), (0, 1, 4))
    assert alike.key == (2, 2, 2, 0, 2, 1, 2, 0)
    assert sorted(alike.every()) == [(0, 1, 4), (0, 1, 5)]


def test_frequency_bands_are_whole_powers_of_four():
    words = "unseen once thrice four fifteen sixteen lots"
    counts = {"once": 1, "thrice": 3, "four": 4, "fifteen": 15, "sixteen": 16, "lots": 4**30}
    alike = Frequency().class_of(item_of(words), (1, 3), counts=counts)
    assert alike.strata == ((0,), (1, 2), (3, 4), (5,), (6,))
    assert sorted(alike.every()) == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_units_are_counted_over_all_examples_whatever_their_case_and_spaces():
    assert unit_counts([("The", " the", "film"), ["THE ", "straße"], []]) == {"the": 3, "film": 1, "strasse": 1}


def test_frequency_looks_units_up_as_they_were_counted():
    item = item_of("The STRASSE film")
    alike = Frequency().class_of(item, (0,), counts=unit_counts([["the"], ["Straße"], ["more"]]))
    assert alike.strata == ((2,), (0, 1))


def test_frequency_without_counts_is_refused():
    with pytest.raises(DataError, match="the null 'frequency' needs to know how often units occur"):
        matched_sets("frequency", ITEMS["words"], (1,), 5, seed=0, counts={})
