import pytest

from ice_eval.report.tables import Table, interval, number, p_value, percent


@pytest.mark.parametrize(
    ("value", "cell"), [(0.0, "0.0 %"), (0.5, "50.0 %"), (1.0, "100.0 %"), (0.99951, "100.0 %"), (None, "–")]
)
def test_rates_are_percent(value, cell):
    assert percent(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"), [(0.00012, "0.0001"), (0.0999, "0.0999"), (0.1, "0.10"), (1.0, "1.00"), (None, "–")]
)
def test_small_p_values_have_more_digits(value, cell):
    assert p_value(value) == cell


def test_effects_carry_their_sign():
    assert [number(value) for value in (1.234, -0.5, 0.0, None)] == ["+1.23", "-0.50", "+0.00", "–"]


def test_intervals_are_percent_and_signed_where_they_are_differences():
    assert interval([0.481, 0.55]) == "[48.1, 55.0]"
    assert interval([-0.01, 0.02], signed=True) == "[-1.0, +2.0]"
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
