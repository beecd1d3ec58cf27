"""What every null obeys, run over the whole registry: a new one is held to it by being there."""

import itertools
import json
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.nulls.examples import COUNTS, ITEMS, class_of, item_of, subsets

from ice_eval import rationales
from ice_eval.errors import ConfigError
from ice_eval.nulls import matched_sets, nulls
from ice_eval.seeding import rng_for

every_null = pytest.mark.parametrize("name", nulls.names())
every_item = pytest.mark.parametrize("item", ITEMS)
every_large_item = pytest.mark.parametrize("item", [key for key, item in ITEMS.items() if item.n_units > 5])
LONG = item_of(
    "it isn't a well-made film, and it's so-so at best, but the cast is warm and witty in a well-worn sort of way; "
    "don't see it for the plot, which isn't there, or the score, which won't stop"
)


@cache
def classes(name, item):
    """Each class of an example, with the sets of units that have its key, found by trying them all."""
    found = defaultdict(list)
    for units in subsets(ITEMS[item]):
        found[class_of(name, ITEMS[item], units).key].append(units)
    return [(class_of(name, ITEMS[item], sets[0]), sets) for sets in found.values()]


def matched(name, item, rationale, count=50, seed=0):
    return matched_sets(name, item, rationale, count, seed=seed, counts=COUNTS)


def uniformity(alike, rng):
    """P-value of the hypothesis that all sets of a class are drawn equally often, and that no other is."""
    drawn = Counter(alike.draw(rng) for _ in range(20 * alike.count))
    expected = set(alike.every())
    assert set(drawn) <= expected
    return stats.chisquare([drawn[units] for units in expected]).pvalue if len(expected) > 1 else 1.0


@every_null
@every_item
def test_a_class_lists_each_set_that_has_its_key_once(name, item):
    for alike, sets in classes(name, item):
        assert sorted(alike.every()) == sorted(sets)
        assert alike.count == len(sets)
        assert type(alike.count) is int


@every_null
@every_item
def test_all_sets_of_a_class_are_as_large_as_the_rationale(name, item):
    for _, sets in classes(name, item):
        assert len(set(map(len, sets))) == 1


@every_null
@every_item
def test_sets_are_listed_and_drawn_as_ascending_whole_numbers(name, item):
    for alike, _ in classes(name, item):
        for units in [*itertools.islice(alike.every(), 5), alike.draw(rng_for(0))]:
            assert type(units) is tuple
            assert list(units) == sorted(set(units))
            assert all(type(unit) is int for unit in units)


@every_null
@every_item
def test_a_key_can_be_hashed_and_written_as_json(name, item):
    keys = [alike.key for alike, _ in classes(name, item)]
    assert len({json.dumps(key) for key in keys}) == len(set(keys)) == len(keys)


@every_null
@every_large_item
def test_every_set_of_a_class_is_drawn_equally_often(name, item):
    largest = sorted(classes(name, item), key=lambda each: len(each[1]))[-4:]
    for alike, _ in largest:
        assert uniformity(alike, rng_for(0, name, item, json.dumps(alike.key))) > 1e-3


@every_null
@every_large_item
def test_what_is_drawn_does_not_depend_on_which_set_of_the_class_the_rationale_is(name, item):
    for first, sets in classes(name, item):
        last = class_of(name, ITEMS[item], sets[-1])
        assert first.key == last.key
        assert list(first.every()) == list(last.every())
        assert first.draw(rng_for(0)) == last.draw(rng_for(0))


@every_null
@every_item
def test_matched_sets_are_the_other_sets_of_the_class_where_these_are_few(name, item):
    for _, sets in classes(name, item):
        assert sorted(matched(name, ITEMS[item], sets[0], count=1000)) == sorted(sets[1:])


@every_null
def test_a_class_of_one_has_nothing_to_compare_with(name):
    item = ITEMS["words"]
    everything = tuple(range(item.n_units))
    assert class_of(name, item, everything).count == 1
    assert matched(name, item, everything) == []
    assert matched(name, ITEMS["one-unit"], (0,)) == []


@st.composite
def rationales_of(draw, item=LONG):
    return tuple(sorted(draw(st.sets(st.sampled_from(range(item.n_units)), min_size=1, max_size=20))))


@every_null
@settings(max_examples=25)
@given(rationale=rationales_of(), seed=st.integers(0, 99))
def test_matched_sets_are_distinct_members_and_never_the_rationale(name, rationale, seed):
    sets = matched(name, LONG, rationale, seed=seed)
    alike = class_of(name, LONG, rationale)
    assert rationale not in sets
    assert len(set(sets)) == len(sets) == min(50, alike.count - 1)
    assert {class_of(name, LONG, units).key for units in sets} <= {alike.key}
    assert matched(name, LONG, rationale, seed=seed) == sets


@every_null
@settings(max_examples=25)
@given(rationale=rationales_of(), count=st.integers(0, 50))
def test_a_larger_count_only_makes_the_order_longer(name, rationale, count):
    assert matched(name, LONG, rationale, count) == matched(name, LONG, rationale, 50)[:count]


@every_null
@settings(max_examples=25)
@given(rationale=rationales_of(), data=st.data())
def test_rationales_of_one_class_share_the_order(name, rationale, data):
    sets = matched(name, LONG, rationale, 30)
    if sets:
        other = data.draw(st.sampled_from(sets))
        common = [units for units in matched(name, LONG, other, 30) if units != rationale]
        assert [units for units in sets if units != other] == common[: len(sets) - 1]


@every_null
@pytest.mark.parametrize("rationale", [(1,), (3, 4, 5, 9, 20, 21)], ids=["listed", "drawn"])
def test_the_order_depends_on_seed_and_example(name, rationale):
    base = matched(name, LONG, rationale)
    assert len(base) > 5
    assert matched(name, LONG, rationale, seed=1) != base
    assert matched(name, replace(LONG, example_id="1"), rationale) != base


@every_null
def test_the_order_of_drawn_sets_ends_with_the_class(name, monkeypatch):
    monkeypatch.setattr(rationales, "_ENUMERATE", 0)
    for _, sets in classes(name, "two-fields")[:20]:
        assert sorted(matched(name, ITEMS["two-fields"], sets[0], count=1000)) == sorted(sets[1:])


@every_null
def test_a_null_may_be_given_by_name_or_itself(name):
    chosen = nulls.get(name)()
    assert chosen.name == name
    assert matched(chosen, LONG, (1, 2, 5)) == matched(name, LONG, (1, 2, 5))


def test_nulls_have_orders_of_their_own():
    item = ITEMS["words"]  # every word is one unit: the classes of "size" and "sub-word" hold the same sets
    assert sorted(class_of("size", item, (1, 2)).every()) == sorted(class_of("sub-word", item, (1, 2)).every())
    assert matched("size", item, (1, 2)) != matched("sub-word", item, (1, 2))


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(ConfigError, match="no null named 'continuity'; did you mean 'contiguity'"):
        matched("continuity", LONG, (1,))


@every_null
def test_neither_the_example_nor_the_counts_are_changed(name):
    before = [LONG.ids.copy(), LONG.unit_of.copy(), dict(COUNTS)]
    matched(name, LONG, (1, 2, 5))
    assert LONG.ids.tolist() == before[0].tolist()
    assert LONG.unit_of.tolist() == before[1].tolist()
    assert before[2] == COUNTS


@every_null
def test_a_null_has_defaults_for_all_its_fields_and_cannot_be_changed(name):
    chosen = nulls.get(name)()
    assert chosen == nulls.get(name)()
    with pytest.raises(AttributeError, match="cannot assign to field"):
        chosen.needs_counts = True
