import itertools

import numpy as np
import pytest

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.explanations import ContiguityMeasure, chance_contiguity, contiguity

FIELDS = ["premise"] * 3 + ["claim"] * 4


@pytest.mark.parametrize(
    ("rationale", "share"), [((0, 1, 2), 1), ((0, 2), 0), ((2, 3), 0), ((3, 4, 6), 1 / 2), ((0, 1, 3, 4), 2 / 3)]
)
def test_neighbours_are_counted_within_fields(rationale, share):
    assert contiguity(rationale, FIELDS) == pytest.approx(share)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_chance_is_the_mean_over_all_sets(size):
    found = np.mean([contiguity(units, FIELDS) for units in itertools.combinations(range(7), size)])
    assert chance_contiguity(size, FIELDS) == pytest.approx(found)


def test_random_rationales_stand_together_as_often_as_chance_says(small):
    [part] = ContiguityMeasure().of(small.folder).parts
    found = {line["attribution"]: line for line in part.lines}
    low, high = found["hat"]["above_chance_ci"]
    assert low <= 0 <= high
    assert found["marked"]["above_chance"] > found["hat"]["above_chance"]  # people marked a phrase


def test_single_units_have_no_neighbours(unannotated):
    assert ContiguityMeasure().of(unannotated.folder) == Missing(
        "every rationale is a single unit; a larger --k gives longer ones"
    )
