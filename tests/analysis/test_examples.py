import numpy as np
import pytest

from ice_eval.analysis._base import quantiles, shares, shares_by_chance


def test_a_value_on_a_limit_belongs_to_the_bin_below():
    assert shares(np.array([0.0, 0.1, 0.25, 0.5, 0.51, 1.0]), 4).tolist() == pytest.approx([3 / 6, 1 / 6, 1 / 6, 1 / 6])


def test_ranks_are_equally_likely_by_chance():
    # Of four ranks 1/4, ..., 1 every second falls into the lower half; of two, 1/2 and 1, the lower one.
    assert shares_by_chance(np.array([3.0, 1.0]), 2).tolist() == [0.5, 0.5]
    assert shares_by_chance(np.array([2.0]), 2).tolist() == pytest.approx([1 / 3, 2 / 3])


def test_quantiles_of_nothing_are_none():
    assert quantiles(np.array([]), [0.25, 0.5]) == [None, None]
    assert quantiles(np.array([1.0, 2.0, 3.0]), [0.5]) == [2.0]
