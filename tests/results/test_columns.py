"""Outcomes as columns: nothing is rounded, and nothing is lost."""

import numpy as np
import pytest

from ice_eval.results.columns import Gathering, groups_of
from ice_eval.results.outcomes import Configuration, Outcome
from ice_eval.stats import member_win_rates

CELL = Configuration("mine", "delete", "sufficiency", 0.2)


def outcome(number, **values):
    return Outcome(example_id=f"e{number}", configuration=CELL, n_units=9, target=1, gold=None, **values)


@pytest.mark.parametrize("sizes", [[2, 51, 7], [500, 2], [40_000, 3]], ids=str)
def test_families_come_back_bit_for_bit(sizes):
    rng = np.random.default_rng(0)
    families = [member_win_rates(rng.integers(0, size, size).astype(float)) for size in sizes]  # with ties
    gathered = Gathering(outcome(number, family=family) for number, family in enumerate(families)).outcomes()
    assert all(np.array_equal(a, b) for a, b in zip(gathered.families(), families, strict=True))


def test_what_is_no_family_of_win_rates_is_a_mistake():
    with pytest.raises(AssertionError, match="a family of win rates"):
        Gathering([outcome(0, family=np.array([0.3, 0.7, 0.1]))])


def test_numbers_that_are_not_there_are_nan_and_can_be_left_out():
    gathered = Gathering([outcome(0, effect_size=None, m=7, exact=True), outcome(1, effect_size=0.1 + 0.2)]).outcomes()
    assert np.isnan(gathered.column("effect_size")).tolist() == [True, False]
    assert gathered.known("effect_size").tolist() == [0.1 + 0.2]
    assert gathered.flag("exact").tolist() == [True, False] and gathered.column("m").tolist() == [7, 0]
    assert np.isnan(gathered.column("gold")).all()


def test_some_outcomes_keep_their_numbers_families_and_groups():
    families = [member_win_rates(np.arange(size, dtype=float)) for size in (3, 4, 5)]
    rates = [family[0] for family in families]
    gathered = Gathering(
        outcome(
            number, family=families[number], win_rate=rates[number], group="g", error="spoilt" if number == 1 else None
        )
        for number in range(3)
    ).outcomes()
    used = gathered.select(gathered.sound)
    assert (list(used.ids), len(used), used.column("win_rate").tolist()) == (["e0", "e2"], 2, [rates[0], rates[2]])
    assert [each.tolist() for each in used.families()] == [families[0].tolist(), families[2].tolist()]
    assert groups_of(used) == [("g", ""), ("g", "")]
    assert gathered.select(np.ones(3, dtype=bool)) is gathered


def test_examples_of_their_own_have_no_groups():
    assert groups_of(Gathering([outcome(0), outcome(1)]).outcomes()) is None
    assert groups_of(Gathering([outcome(0, group="a"), outcome(1, group="b")]).outcomes()) is None
    assert groups_of(Gathering([outcome(0, group="a"), outcome(1), outcome(2, group="a")]).outcomes()) is not None
