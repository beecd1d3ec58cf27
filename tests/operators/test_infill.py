import numpy as np
from tests.rows import each_row

from ice_eval.operators.infill import Infill


def test_units_that_are_not_kept_are_overwritten_by_their_own_fills(handmade):
    item = handmade((10,), (20, 21), (30,))
    fills = np.array([40, 50, 51, 60])
    rows = Infill().build(item, keep=[[True, False, True], [False, True, False]], fills=fills)
    assert [row.ids.tolist() for row in each_row(rows)] == [[900, 10, 50, 51, 30, 901], [900, 40, 20, 21, 60, 901]]


def test_a_removed_word_reads_as_the_word_that_fills_it(encoded, toy):
    fills = toy.codec.tokenize("x y z").ids
    found = Infill().build(encoded("a b c"), keep=[[False, True, False]], fills=fills)
    assert found.row(0).tolist() == encoded("x b z").ids.tolist()


def test_a_unit_has_the_same_fill_in_every_row(handmade):
    item = handmade((10,), (20,), (30,))
    fills = np.array([40, 50, 60])
    found = Infill().build(item, keep=[[True, False, False], [False, True, False]], fills=fills)
    assert found.row(0)[3] == found.row(1)[3] == 60


def test_an_example_without_units_stays_as_it_is(handmade):
    item = handmade()
    found = Infill().build(item, keep=np.ones((1, 0), dtype=bool), fills=np.zeros(0, dtype=np.int64))
    assert found.row(0).tolist() == item.ids.tolist()


def test_it_asks_for_fills():
    assert Infill().needs_fills
