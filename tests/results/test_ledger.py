"""A ledger as arrays, as an Arrow table and as records: nothing is lost on any way."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import ledger_of

from ice_eval.records import DIRECTIONS, NOT_SET, ROW, Inputs, Kind, heads
from ice_eval.results.ledger import LEDGER, NO_NAMES, Ledger, LedgerRow, Names, RowKey

NAMES = Names(("e0", "é\n“1”", ""), ("mine", "β", "lime:n=5"), ("size", "position"), ("delete", "infill"))
ENDS = st.sampled_from([None, 0, 1, 2**31 - 1])
KEYS = st.builds(
    RowKey,
    example_id=st.sampled_from(NAMES.examples),
    kind=st.sampled_from(Kind),
    operator=st.sampled_from([None, *NAMES.operators]),
    direction=st.sampled_from([None, *DIRECTIONS]),
    size=ENDS,
    set=ENDS,
    draw=ENDS,
    attribution=st.sampled_from([None, *NAMES.attributions]),
    null=st.sampled_from([None, *NAMES.nulls]),
)
SCORES = st.floats(allow_nan=False)
TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5))


@st.composite
def rows_of(draw, *, pairs):
    """Rows with any of their columns missing; of one text, or of pairs of texts."""
    n_labels = draw(st.integers(1, 3))
    rows = []
    for key in draw(st.lists(KEYS, min_size=1, max_size=8)):
        ids = draw(st.lists(st.sampled_from([0, 7, 2**31, 2**63 - 1]), max_size=4))
        segments = draw(st.lists(st.integers(0, 1), min_size=len(ids), max_size=len(ids))) if pairs else [0] * len(ids)
        scores = draw(st.lists(SCORES, min_size=n_labels, max_size=n_labels))
        kept = draw(st.lists(st.integers(0, 2**31 - 1), max_size=4))
        rows.append(LedgerRow(key, tuple(kept), tuple(scores), tuple(ids), tuple(segments), draw(TEXTS)))
    return rows


def assert_same(found, expected):
    """Both ledgers hold the same arrays."""
    assert found.head.dtype == expected.head.dtype == ROW
    assert np.array_equal(found.head, expected.head)
    for name in ("scores", "kept", "n_kept"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name
    for name in ("ids", "segments", "offsets"):
        ours, theirs = getattr(found.inputs, name), getattr(expected.inputs, name)
        assert ours.dtype == theirs.dtype == np.int64 and np.array_equal(ours, theirs), name
    assert dict(found.texts) == dict(expected.texts)


@given(st.booleans().flatmap(lambda pairs: rows_of(pairs=pairs)))
def test_a_ledger_survives_its_table(rows):
    ledger = ledger_of(rows, NAMES)
    table = ledger.table()
    assert table.schema.equals(LEDGER)
    table.validate(full=True)
    found = Ledger.read(table, NAMES)
    assert found.names == NAMES
    assert_same(found, ledger)
    assert found.records() == rows


@given(st.booleans().flatmap(lambda pairs: rows_of(pairs=pairs)), st.data())
def test_a_ledger_survives_being_cut_and_joined(rows, data):
    ledger = ledger_of(rows, NAMES)
    cut = data.draw(st.integers(0, len(rows)))
    parts = [ledger.take(np.arange(cut)), ledger.take(np.arange(cut, len(rows)))]
    assert [row for part in parts for row in part.records()] == rows
    assert_same(Ledger.join(parts, NAMES), ledger)
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    assert ledger.take(order).records() == [rows[place] for place in order]
    assert ledger.records(order) == [rows[place] for place in order]


@given(rows_of(pairs=False), rows_of(pairs=True))
def test_a_table_in_pieces_is_read_as_one(first, second):
    labels = min(len(row.scores) for row in (*first, *second))
    rows = [row._replace(scores=row.scores[:labels]) for row in (*first, *second)]
    whole = ledger_of(rows, NAMES).table()
    cut = len(first)
    assert Ledger.read(pa.concat_tables([whole[:cut], whole[cut:]]), NAMES).records() == rows
    assert Ledger.read(whole[cut:], NAMES).records() == rows[cut:]


def test_every_kind_of_row_survives():
    rows = [LedgerRow(RowKey("e0", kind), (place,), (float(place),)) for place, kind in enumerate(Kind)]
    found = Ledger.read(ledger_of(rows, NAMES).table(), NO_NAMES)
    assert [row.key.kind for row in found.records()] == list(Kind)
    assert found.records() == rows


def test_kinds_have_the_names_of_the_contract():
    assert [kind.label for kind in Kind] == [
        "full", "empty", "rationale", "random", "probe", "eraser", "leave-one-out", "again", "arranged",
    ]  # fmt: skip


def test_a_reader_that_knows_no_names_takes_those_of_the_table():
    rows = [LedgerRow(RowKey("e0", Kind.PROBE, "infill", attribution="β"), (), (0.0,))]
    found = Ledger.read(ledger_of(rows, NAMES).table(), NO_NAMES)
    assert found.names == NAMES and found.records() == rows


def test_names_that_only_the_table_knows_come_after_the_others():
    rows = [LedgerRow(RowKey(name, Kind.FULL, operator), (), (0.0,)) for name in ("a", "b") for operator in ("x", None)]
    table = ledger_of(rows, Names(("b", "a"), (), (), ("x",))).table()
    found = Ledger.read(table, Names(("a",), ("mine",), ("size",), ("delete",)))
    assert found.names == Names(("a", "b"), ("mine",), ("size",), ("delete", "x"))
    assert found.head["example"].tolist() == [0, 0, 1, 1]
    assert found.head["operator"].tolist() == [1, NOT_SET, 1, NOT_SET]
    assert found.records() == rows


def test_pairs_are_written_only_where_there_are_some():
    key, scores = RowKey("e0", Kind.FULL), (-1.0, -2.0)
    plain = ledger_of([LedgerRow(key, (0,), scores, (5, 6), (0, 0))], NAMES)
    assert plain.table().column("segment_ids").null_count == 1
    pair = Ledger(NAMES, plain.head, plain.scores, inputs=Inputs.one(np.array([5, 6]), np.array([0, 1])))
    assert Ledger.of(NAMES, pair.rows(), pair.scores).records()[0].segment_ids == (0, 1)
    rows = [LedgerRow(key, (0,), scores, (5, 6), (0, 1)), LedgerRow(key, (0,), scores, (5, 6), (0, 0))]
    table = ledger_of(rows, NAMES).table()
    assert table.column("segment_ids").to_pylist() == [[0, 1], [0, 0]]
    assert Ledger.read(table, NAMES).records() == rows


def test_texts_stay_with_their_rows():
    key = RowKey("e0", Kind.FULL)
    rows = [LedgerRow(key, (), (0.0,), text=text) for text in (None, "", None, "two\nlines")]
    ledger = ledger_of(rows, NAMES)
    assert dict(ledger.texts) == {1: "", 3: "two\nlines"}
    assert dict(Ledger.read(ledger.table(), NAMES).texts) == {1: "", 3: "two\nlines"}
    assert dict(ledger.take(np.array([3, 0])).texts) == {0: "two\nlines"}


def test_columns_that_are_not_read_are_empty():
    rows = [LedgerRow(RowKey("e0", Kind.FULL), (0, 1), (-1.0, -2.0), (5, 6), (0, 1), "text")]
    table = ledger_of(rows, NAMES).table()
    [bare] = Ledger.read(table.drop_columns(["kept", "text", "input_ids", "segment_ids"]), NAMES).records()
    assert bare == rows[0]._replace(kept=(), input_ids=(), segment_ids=(), text=None)
    [kept] = Ledger.read(table.drop_columns(["input_ids", "segment_ids"]), NAMES).records()
    assert kept == rows[0]._replace(input_ids=(), segment_ids=())


@pytest.mark.parametrize("names", [NO_NAMES, NAMES], ids=["no names", "names"])
def test_a_ledger_without_rows_survives(names):
    for ledger in (Ledger.empty(names), ledger_of([], names)):
        assert len(ledger) == 0 and ledger.records() == []
        found = Ledger.read(ledger.table(), names)
        assert len(found) == 0 and found.records() == [] and found.names == names
    rows = [LedgerRow(RowKey("e0", Kind.FULL), (0,), (-1.0, -2.0), (5,), (0,))]
    full = ledger_of(rows, NAMES)
    assert Ledger.join([Ledger.empty(NAMES), full, Ledger.empty(NAMES)], NAMES).records() == rows


@pytest.mark.parametrize("field", ["input_ids", "kept"])
def test_numbers_beyond_their_columns_are_refused(field):
    row = LedgerRow(RowKey("e0", Kind.FULL), (0,), (0.0,), (1,), (0,))
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        ledger_of([row._replace(**{field: (2**63 if field == "input_ids" else 2**31,)})], NAMES).table()


def test_columns_that_are_not_given_do_not_apply():
    head = heads(2, kind=Kind.RANDOM, set=[0, 1])
    assert head["set"].tolist() == [0, 1] and head["kind"].tolist() == [Kind.RANDOM] * 2
    for name in set(ROW.names) - {"kind", "set"}:
        assert head[name].tolist() == [NOT_SET] * 2
