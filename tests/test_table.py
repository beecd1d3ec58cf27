from types import SimpleNamespace

import pytest

from ice_eval.table import Column, Table, interval, naming, percent, table_of, written


@pytest.mark.parametrize(
    ("value", "cell"), [(0.0, "0.0 %"), (0.5, "50.0 %"), (1.0, "100.0 %"), (0.99951, "100.0 %"), (None, "–")]
)
def test_rates_are_percent(value, cell):
    assert percent(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"), [(0.00012, "0.0001"), (0.0999, "0.0999"), (0.1, "0.10"), (1.0, "1.00"), (None, "–")]
)
def test_small_p_values_have_more_digits(value, cell):
    assert written(value, "p-value") == cell


def test_effects_carry_their_sign():
    assert [written(value, "effect") for value in (1.234, -0.5, 0.0, None)] == ["+1.23", "-0.50", "+0.00", "–"]


def test_intervals_are_percent_and_signed_where_they_are_differences():
    assert interval([0.481, 0.55]) == "[48.1, 55.0]"
    assert written([-0.01, 0.02], "points interval") == "[-1.0, +2.0]"
    assert interval(None) == "–"


def test_columns_of_numbers_are_known_by_their_cells():
    rows = (("a", "50.0 %", "[48.1, 55.0]", "+1.2", "–"), ("2", "–", "–", "+0.9 large", "–"))
    assert Table("", ("name", "rate", "interval", "effect", "nothing"), rows).are_numbers == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert Table("", ("no", "rows"), ()).are_numbers == [False, False]


def test_a_column_reads_mappings_records_and_parts_of_records():
    column = Column("rate", "rate", "percent")
    assert column.cell({"rate": 0.5}) == column.cell(SimpleNamespace(rate=0.5)) == "50.0 %"
    assert Column("of.rate", "rate", "percent").cell(SimpleNamespace(of=SimpleNamespace(rate=None))) == "–"
    assert Column("rate", "n", "count", get=len).cell(range(1234)) == "1,234"


def test_columns_that_say_the_same_in_every_row_are_left_out_unless_it_is_unusual():
    lines = [{"model": "a", "k": 0.4, "n": n, "null": "size"} for n in (1, 2)]
    table = table_of("T", lines, naming("model", "null", "k", "n"), runs=["1", "2"])
    assert (table.header, table.rows) == (("run", "k", "n"), (("1", "0.4", "1"), ("2", "0.4", "2")))


def test_a_column_may_colour_its_cells_and_have_a_best_one():
    columns = (
        *naming("name"),
        Column("rate", "rate", "percent", word=lambda line: "faithful" if line["rate"] > 0.6 else None),
    )
    lines = [{"name": "a", "rate": 0.5}, {"name": "b", "rate": 0.7}]
    table = table_of("T", lines, columns, best=("rate", {1}))
    assert (table.words, table.best) == (((None, None), (None, "faithful")), {(1, 1)})
    assert table_of("T", lines, naming("name")).words == ()
