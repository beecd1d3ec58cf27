"""A rationale picked at random ranks uniformly among its matched sets; one that is merely contiguous gains nothing."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.nulls.examples import COUNTS, item_of

from ice_eval.nulls import matched_sets, nulls
from ice_eval.nulls.strata import words_of
from ice_eval.seeding import rng_for

ITEM = item_of("it isn't a well-made film,", "it's so warm and witty")
N_SETS = 19


def score(units):
    """Early units, neighbours and one pair count, and the rest is noise that belongs to the set."""
    noise = zlib.crc32(repr(units).encode()) / 2**32
    neighbours = sum(unit + 1 in units for unit in units)
    return sum(2.0 / (1 + unit) for unit in units) + 0.7 * neighbours + 1.5 * ({2, 9} <= set(units)) + noise


def runs(units):
    """The fewer runs the better."""
    return -sum(unit - 1 not in units for unit in units)


def randomised_rank(name, example, rationale, value, rng):
    """Share of the null below the rationale, ties broken at random: uniform on (0, 1) if it is picked at random."""
    item = replace(ITEM, example_id=str(example))
    null = np.array([value(units) for units in matched_sets(name, item, rationale, N_SETS, seed=0, counts=COUNTS)])
    below, tied = np.sum(null < value(rationale)), np.sum(null == value(rationale))
    return (below + rng.random() * (tied + 1)) / (null.size + 1)


@pytest.mark.parametrize("value", [score, runs])
@pytest.mark.parametrize("name", nulls.names())
def test_a_rationale_picked_at_random_ranks_uniformly(name, value):
    rng = rng_for(0, name, "calibration")
    ranks = []
    for example in range(1000):
        size = int(rng.integers(1, 6))
        rationale = tuple(sorted(rng.permutation(ITEM.n_units)[:size].tolist()))
        ranks.append(randomised_rank(name, example, rationale, value, rng))
    assert stats.chisquare(np.histogram(ranks, bins=10, range=(0, 1))[0]).pvalue > 1e-3


TRAITS = {
    "contiguity": ((2, 3, 4, 5), runs),
    "frequency": ((0, 2, 4, 10, 11), lambda units: sum(COUNTS.get(ITEM.texts[unit], 0) > 3 for unit in units)),
    "position": ((0, 1, 2), lambda units: sum(4 * unit < ITEM.n_units for unit in units)),
    "sub-word": ((1, 2, 3), lambda units: -sum(not {*word}.isdisjoint(units) for word in words_of(ITEM))),
}


@pytest.mark.parametrize("name", TRAITS)
def test_what_a_null_matches_wins_against_sets_of_any_kind_and_nothing_against_its_own(name):
    rationale, trait = TRAITS[name]
    against = {null: matched_sets(null, ITEM, rationale, 100, seed=0, counts=COUNTS) for null in ("size", name)}
    wins = {null: np.mean([trait(rationale) > trait(units) for units in sets]) for null, sets in against.items()}
    assert wins["size"] > 0.9
    assert against[name]
    assert {trait(units) for units in against[name]} == {trait(rationale)}
