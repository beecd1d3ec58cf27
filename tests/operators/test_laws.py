"""What every operator obeys, run over the whole registry: a new one is held to it by being there."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ice_eval.operators import operators
from ice_eval.records import PROTECTED, Encoded, Span, SpecialIds

every_operator = pytest.mark.parametrize("name", [name for name, each in operators.items() if "token" in each.units])


@dataclass(frozen=True)
class Case:
    """An example, rows to keep, and a fill for every unit."""

    item: Encoded
    keep: np.ndarray
    fills: np.ndarray

    def inputs(self, name):
        act = operators.get(name)()
        return act.build(self.item, self.keep, fills=self.fills if act.needs_fills else self.fills[:0])

    def rows(self, name):
        """Each input with the tokens of the example that it must keep."""
        return list(zip(each_row(self.inputs(name)), map(self.item.tokens_kept, self.keep), strict=True))


@st.composite
def cases(draw):
    """Units of one to three tokens, in order; protected tokens anywhere, even between the tokens of one unit."""
    sizes = draw(st.lists(st.integers(1, 3), max_size=6))
    unit_of = []
    for unit, size in enumerate(sizes):
        for _ in range(size):
            unit_of += [PROTECTED] * draw(st.integers(0, 2)) + [unit]
    unit_of += [PROTECTED] * draw(st.integers(1, 2))
    # Ids are all different, so that a token that moved is seen; fills have ids that the example has not.
    ids = draw(st.permutations(range(100, 100 + len(unit_of))))
    item = Encoded(
        example_id="0",
        ids=np.array(ids, dtype=np.int64),
        segments=np.array(draw(st.lists(st.integers(0, 1), min_size=len(ids), max_size=len(ids))), dtype=np.int64),
        unit_of=np.array(unit_of, dtype=np.int64),
        spans=tuple(Span("text", unit, unit + 1) for unit in range(len(sizes))),
        texts=tuple(f"u{unit}" for unit in range(len(sizes))),
        special=SpecialIds(unk=1, pad=2, mask=3),
    )
    row = st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    keep = np.array(rows, dtype=bool).reshape(len(rows), len(sizes))
    fills = np.array(
        [500 + 10 * unit + place for unit, size in enumerate(sizes) for place in range(size)], dtype=np.int64
    )
    return Case(item, keep, fills)


@every_operator
@given(case=cases())
def test_keeping_everything_changes_nothing(name, case):
    everything = Case(case.item, np.ones((1, case.item.n_units), dtype=bool), case.fills)
    row = everything.inputs(name)
    assert len(row) == 1
    assert row.ids.tolist() == case.item.ids.tolist()
    assert row.segments.tolist() == case.item.segments.tolist()


@every_operator
@given(case=cases())
def test_there_is_one_input_per_row(name, case):
    assert len(case.inputs(name)) == len(case.keep)


@every_operator
@given(case=cases())
def test_the_length_is_preserved_or_is_that_of_what_is_kept(name, case):
    whole = len(case.item.ids)
    rows = case.rows(name)
    assert all(len(row.ids) == whole for row, _ in rows) or all(len(row.ids) == kept.sum() for row, kept in rows)


@every_operator
@given(case=cases())
def test_protected_tokens_survive_in_their_order(name, case):
    template = case.item.ids[case.item.unit_of == PROTECTED]
    for row, _ in case.rows(name):
        assert row.ids[np.isin(row.ids, template)].tolist() == template.tolist()


@every_operator
@given(case=cases())
def test_kept_tokens_stay_in_order_and_in_place_where_the_length_is_preserved(name, case):
    for row, kept in case.rows(name):
        assert row.ids[np.isin(row.ids, case.item.ids[kept])].tolist() == case.item.ids[kept].tolist()
        if len(row.ids) == len(case.item.ids):
            assert row.ids[kept].tolist() == case.item.ids[kept].tolist()


@every_operator
@given(case=cases())
def test_nothing_of_a_removed_unit_is_left(name, case):
    for row, kept in case.rows(name):
        assert not np.isin(row.ids, case.item.ids[~kept]).any()


@every_operator
@given(case=cases())
def test_segments_line_up_with_the_tokens(name, case):
    for row, kept in case.rows(name):
        same_length = len(row.ids) == len(case.item.ids)
        assert row.segments.tolist() == case.item.segments[slice(None) if same_length else kept].tolist()


@every_operator
@given(case=cases())
def test_neither_the_example_nor_the_rows_nor_the_fills_are_changed(name, case):
    arrays = [case.item.ids, case.item.segments, case.item.unit_of, case.keep, case.fills]
    before = [array.copy() for array in arrays]
    case.inputs(name)
    for array, copy in zip(arrays, before, strict=True):
        assert array.tolist() == copy.tolist()


@every_operator
@given(case=cases())
def test_the_same_call_gives_the_same_inputs(name, case):
    assert case.inputs(name).keys == case.inputs(name).keys


@every_operator
@given(case=cases())
def test_a_row_does_not_depend_on_the_rows_beside_it(name, case):
    alone = [key for row in case.keep for key in Case(case.item, row[None], case.fills).inputs(name).keys]
    assert case.inputs(name).keys == alone


@every_operator
@given(case=cases())
def test_ids_are_whole_numbers_of_one_kind(name, case):
    found = case.inputs(name)
    assert {each.dtype for each in (found.ids, found.segments, found.offsets)} == {np.dtype(np.int64)}


@every_operator
def test_rows_may_be_given_as_lists(name, encoded):
    item = encoded("a b c")
    act = operators.get(name)()
    rows = [[True, False, True], [False, False, False]]
    fills = np.array([7, 7, 7]) if act.needs_fills else np.zeros(0, dtype=np.int64)
    from_lists = act.build(item, keep=rows, fills=fills)
    from_array = act.build(item, keep=np.array(rows), fills=fills)
    assert from_lists.keys == from_array.keys


@every_operator
def test_an_operator_has_defaults_for_all_its_fields_and_cannot_be_changed(name):
    act = operators.get(name)()
    assert act == operators.get(name)()
    with pytest.raises(AttributeError, match="cannot assign to field"):
        act.needs_fills = True
