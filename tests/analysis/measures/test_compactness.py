import numpy as np
import pytest

from ice_eval.analysis.measures.explanations import entropy, half_mass


@pytest.mark.parametrize(
    ("vector", "share"),
    [
        ([1, 1, 1, 1], 2 / 4),
        ([0, 5, 0, 0], 1 / 4),
        ([3, -3, 1, 1], 2 / 4),  # magnitudes: 3 of 8 is less than half, 6 of 8 is not
        ([4, 2, 1, 1], 1 / 4),  # 4 of 8 is half
        ([0.1] * 10, 5 / 10),  # in floating point five tenths of 0.1 are less than half of their sum
    ],
)
def test_units_for_half_of_the_mass(vector, share):
    assert half_mass(np.array(vector, dtype=float)) == share


def test_entropy_lies_between_one_unit_and_all_alike():
    assert entropy(np.array([0.0, -7.0, 0.0])) == 0
    assert entropy(np.array([2.0, -2.0, 2.0, 2.0])) == pytest.approx(1)
    # Two of four units share the mass: log 2 / log 4.
    assert entropy(np.array([1.0, 1.0, 0.0, 0.0])) == pytest.approx(0.5)
