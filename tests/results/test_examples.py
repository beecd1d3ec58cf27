"""The examples of a run column by column say what their records say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.rationales import DYNAMIC, rationale_size
from ice_eval.records import NOT_SET, Answer, Span
from ice_eval.results import InputRow
from ice_eval.results.examples import Examples, FillTexts, input_rows, inputs_table

NAMES = ("mine", "β")
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 2.0, math.nan, math.inf])


@st.composite
def rows_of(draw, name):
    """One example, with or without numbers, answers and a reason to skip it."""
    n_units = draw(st.integers(0, 6))
    vectors = st.lists(NUMBERS, min_size=n_units, max_size=n_units).map(tuple)
    answers = st.sampled_from([Answer("a", 3, 1), Answer(None, 0, problem="it says nothing")])
    skip = draw(st.sampled_from([None, None, "too short"]))
    return InputRow(
        name,
        {"text": "x" * n_units},
        spans=tuple(Span("text", unit, unit + 1) for unit in range(n_units)),
        gold=draw(st.sampled_from([None, 0, 2])),
        target=None if skip else draw(st.integers(0, 2)),
        group=draw(st.sampled_from([None, "g"])),
        skip_reason=skip,
        attributions={} if skip else draw(st.dictionaries(st.sampled_from(NAMES), vectors)),
        answers=draw(st.dictionaries(st.sampled_from(NAMES), answers)),
    )


@st.composite
def examples(draw):
    return [draw(rows_of(f"e{place}")) for place in range(draw(st.integers(1, 5)))]


def size_of(row, name, k, *, magnitude):
    """How many units the rationale holds, or why there is none."""
    if row.skip_reason is not None:
        return row.skip_reason
    vector, answer = row.attributions.get(name), row.answers.get(name)
    if answer is not None and answer.problem is not None:
        return f"the attribution '{name}': {answer.problem}"
    if vector is None:
        return f"the attribution '{name}' gave nothing"
    if not np.isfinite(vector).all():
        return f"the attribution '{name}' is not finite"
    size = rationale_size(vector, k, magnitude=magnitude) if len(vector) else 0
    return size if 0 < size < len(row.spans) else None


@given(examples(), st.sampled_from([None, 0.2, 0.5, DYNAMIC]), st.booleans(), st.integers(0, 5))
def test_columns_say_what_the_records_say(rows, k, magnitude, cut):
    whole = Examples.of(rows)
    parts = [Examples.of(part) for part in (rows[:cut], rows[cut:]) if part]
    for found in (whole, Examples.join(parts)):
        assert found.ids == tuple(row.example_id for row in rows) and len(found) == len(rows)
        assert found.n_units.tolist() == [len(row.spans) for row in rows]
        assert found.target.tolist() == [NOT_SET if row.target is None else row.target for row in rows]
        assert found.gold.tolist() == [NOT_SET if row.gold is None else row.gold for row in rows]
        assert list(found.groups) == [row.group for row in rows]
        for name in NAMES:
            sizes = found.sizes(name, k, magnitude=magnitude)
            for place, row in enumerate(rows):
                assert np.array_equal(found.vector(name, place), row.attributions.get(name, ()), equal_nan=True)
                expected = size_of(row, name, k, magnitude=magnitude)
                assert sizes[place] == (expected if isinstance(expected, int) else 0)
                if isinstance(expected, str):
                    assert found.reason(name, place) == expected


def test_a_later_table_adds_numbers_and_fills():
    def row(name, **more):
        return InputRow(name, {"text": "a b"}, spans=(Span("text", 0, 1), Span("text", 2, 3)), target=1, **more)

    first = [
        row("e0", attributions={"mine": (1.0, 0.0)}, fills=(FillTexts("infill", 0, ("x", "y")),)),
        row("e1", attributions={"mine": (0.0, 1.0)}),
    ]
    second = [
        row("e0", attributions={"β": (3.0, 4.0)}, fills=(FillTexts("infill", 1, ("u", "v")),)),
        row("e1", attributions={"β": (5.0, 6.0)}, answers={"β": Answer("b", 2)}),
    ]
    tables = [inputs_table(rows) for rows in (first, second)]
    found = input_rows(tables)
    assert found[0].attributions == {"mine": (1.0, 0.0), "β": (3.0, 4.0)}
    assert found[0].fills == (FillTexts("infill", 0, ("x", "y")), FillTexts("infill", 1, ("u", "v")))
    assert found[1].answers == {"β": Answer("b", 2)}
    columns = Examples.read(tables)
    for place, each in enumerate(found):
        for name in NAMES:
            assert tuple(columns.vector(name, place)) == each.attributions[name]


@pytest.mark.parametrize(("marks", "said"), [((0.0, 0.0), "no"), ((1.0, 2.0), "every")])
def test_an_attribution_that_marks_nothing_or_everything_has_no_rationale(marks, said):
    row = InputRow("e0", {"text": "a b"}, spans=(Span("text", 0, 1), Span("text", 2, 3)), target=1)
    found = Examples.of([InputRow(**{**vars(row), "attributions": {"mine": marks}})])
    assert found.sizes("mine", None, magnitude=False).tolist() == [0]
    assert found.reason("mine", 0) == f"the attribution 'mine' marks {said} unit of the text"
