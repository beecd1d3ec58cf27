"""Outcomes as columns: nothing is rounded, and nothing is lost."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ice_eval.results import InputRow
from ice_eval.results.examples import Examples
from ice_eval.results.outcomes import GrowingOutcomes, Outcomes, groups_of
from ice_eval.stats import member_win_rates


def outcomes(families=(), *, n=None, groups=None, errors=None, rationales=(), first=0, **numbers):
    """Columns of examples; `families` and `numbers` are those of the examples without an error."""
    errors = errors or {}
    n = n or len(families) + len(errors)
    members = np.array([len(family) for family in families], dtype=np.int64)
    padded = np.full((len(families), members.max(initial=0)), np.nan)
    for family, own in zip(families, padded, strict=True):
        own[: len(family)] = family
    sound = np.array([place not in errors for place in range(n)])
    if not len(families):
        members, padded = np.zeros(int(sound.sum()), dtype=np.int64), np.full((int(sound.sum()), 0), np.nan)
    columns = {name: np.array(values, dtype=np.float64) for name, values in numbers.items()}
    shared = {"gold": np.full(n, np.nan), "target": np.ones(n)}
    examples = examples_of(n, first, None if groups is None else tuple(groups))
    return Outcomes.of(examples, sound, columns, padded, members, errors, rationales, shared)


@cache
def examples_of(n, first, groups):
    groups = groups or [None] * n
    rows = [InputRow(f"e{first + place}", {"text": ""}, target=1, group=groups[place]) for place in range(n)]
    return Examples.of(rows)


def joined(*parts):
    """Outcomes of one configuration, gathered part by part."""
    gathered = GrowingOutcomes()
    for part in parts:
        gathered.add({"cell": part})
    return gathered.joined()["cell"]


def random_families(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [member_win_rates(rng.integers(0, size, size).astype(float)) for size in sizes]  # with ties


@pytest.mark.parametrize("sizes", [[2, 51, 7], [500, 2], [40_000, 3]], ids=str)
def test_families_come_back_bit_for_bit(sizes):
    families = random_families(sizes)
    gathered = outcomes(families)
    assert all(np.array_equal(a, b) for a, b in zip(gathered.families.rates(), families, strict=True))


def test_numbers_that_are_not_there_are_nan_and_can_be_left_out():
    gathered = outcomes(n=2, effect_size=[np.nan, 0.1 + 0.2], m=[7, 0], exact=[1, 0])
    assert np.isnan(gathered.column("effect_size")).tolist() == [True, False]
    assert gathered.known("effect_size").tolist() == [0.1 + 0.2]
    assert gathered.flag("exact").tolist() == [True, False] and gathered.column("m").tolist() == [7, 0]
    assert np.isnan(gathered.column("gold")).all() and gathered.column("target").tolist() == [1, 1]


def test_an_example_that_failed_has_no_number_and_no_family():
    families = random_families([3, 5])
    gathered = outcomes(families, errors={1: "spoilt"}, m=[2, 4], exact=[1, 0])
    assert gathered.sound.tolist() == [True, False, True] and gathered.errors == {1: "spoilt"}
    assert np.array_equal(gathered.column("m"), [2, np.nan, 4], equal_nan=True)
    assert gathered.flag("exact").tolist() == [True, False, False]
    assert [each.tolist() for each in gathered.families.rates()] == [each.tolist() for each in families]


def test_some_outcomes_keep_their_numbers_families_and_groups():
    families = [member_win_rates(np.arange(size, dtype=float)) for size in (3, 5)]
    rates = [family[0] for family in families]
    gathered = outcomes(families, win_rate=rates, groups=["g"] * 3, errors={1: "spoilt"}, rationales=[(0,), (1, 2)])
    used = gathered.select(gathered.sound)
    assert (list(used.ids), len(used), used.column("win_rate").tolist()) == (["e0", "e2"], 2, rates)
    assert [each.tolist() for each in used.families.rates()] == [each.tolist() for each in families]
    assert groups_of(used) == [("g", ""), ("g", "")]
    assert used.rationales == {0: (0,), 1: (1, 2)} and used.errors == {}
    last = gathered.select(np.array([False, True, True]))
    assert (list(last.ids), last.errors, last.rationales) == (["e1", "e2"], {0: "spoilt"}, {1: (1, 2)})
    assert [each.tolist() for each in last.families.rates()] == [families[1].tolist()]
    assert gathered.select(np.ones(3, dtype=bool)) is gathered


def test_outcomes_of_parts_are_joined_in_order():
    # The second part has a family that needs wider numbers than those of the first.
    sizes = [[2, 51], [40_000], [7, 3]]
    families = [random_families(each, seed) for seed, each in enumerate(sizes)]
    parts = [
        outcomes(own, errors={1: f"spoilt {place}"}, m=[size - 1 for size in each], first=10 * place)
        for place, (own, each) in enumerate(zip(families, sizes, strict=True))
    ]
    found = joined(*parts)
    assert list(found.ids) == ["e0", "e1", "e2", "e10", "e11", "e20", "e21", "e22"]
    assert found.errors == {1: "spoilt 0", 4: "spoilt 1", 6: "spoilt 2"}
    assert np.array_equal(found.column("m"), [1, np.nan, 50, 39_999, np.nan, 6, np.nan, 2], equal_nan=True)
    known = [family for own in families for family in own]
    assert all(np.array_equal(a, b) for a, b in zip(found.families.rates(), known, strict=True))


@pytest.mark.parametrize("n_numbers", [1, 3, 65_535, 65_536, 70_000])
def test_columns_of_few_numbers_are_held_small_and_come_back_bit_for_bit(n_numbers):
    """A win rate is held as a code of two bytes, as long as there are no more different ones than codes."""
    rng = np.random.default_rng(n_numbers)
    rates = rng.permutation(np.append(rng.random(n_numbers - 1), 1 / 3))
    parts = [rates[: n_numbers // 2], rates[n_numbers // 2 :], rates[:1]]
    several = [outcomes(n=len(part), win_rate=part, m=np.arange(len(part)) % 5) for part in parts if len(part)]
    found = joined(*several)
    assert np.array_equal(found.column("win_rate"), np.concatenate(parts))
    chosen = rng.random(len(found)) < 0.5
    assert np.array_equal(found.select(chosen).column("win_rate"), np.concatenate(parts)[chosen])


def test_long_columns_come_back_bit_for_bit():
    """Numbers are held in one buffer that grows."""
    effects = np.random.default_rng(0).random((3, 100_000))
    families = random_families([1200, 1200])
    parts = [outcomes(n=100_000, effect=own) for own in effects]
    assert np.array_equal(joined(*parts).column("effect"), effects.ravel())
    several = joined(*(outcomes(families, m=[1199, 1199]) for _ in range(300)))  # 1.4 MB of two bytes each
    assert all(np.array_equal(rates, families[place % 2]) for place, rates in enumerate(several.families.rates()))
    assert len(several.families.rates()) == 600


def test_columns_that_follow_from_others_are_not_held():
    full, empty, score = np.array([0.9, 0.52, 0.2]), np.array([0.1, 0.5, 0.8]), np.array([0.5, 0.6, 0.5])
    found = outcomes(n=3, score=score, score_full=full, score_empty=empty)
    assert np.array_equal(found.column("signal"), full - empty)
    assert found.column("nsr").tolist() == pytest.approx([0.5, np.nan, 0.5], nan_ok=True)


def test_what_configurations_share_is_held_once():
    gathered = GrowingOutcomes()
    for place in range(2):
        part = outcomes(n=2, first=10 * place, win_rate=[0.5, 1.0])
        # The same columns but for one, as a second configuration of the same examples has them.
        other = replace(part, _numbers={**part._numbers, "win_rate": np.array([0.25, place])})
        gathered.add({"one": part, "two": other})
    one, two = gathered.joined().values()
    assert one.ids is two.ids and one.column("target") is two.column("target")
    assert list(two.ids) == ["e0", "e1", "e10", "e11"]
    assert one.column("win_rate").tolist() == [0.5, 1.0] * 2 and two.column("win_rate").tolist() == [0.25, 0, 0.25, 1]


def test_examples_of_their_own_have_no_groups():
    assert groups_of(outcomes(n=2)) is None
    assert groups_of(outcomes(n=2, groups=["a", "b"])) is None
    assert groups_of(outcomes(n=3, groups=["a", None, "a"])) is not None
