import xml.etree.ElementTree as ET

import pytest

from ice_eval.reproduce import Value
from ice_eval.reproduce.layout import Layout, Shown, as_csv, as_latex, as_svg, printed
from ice_eval.stats import Interval

LAYOUT = Layout(
    blocks=("operator",),
    block_title="{}: win rate (%)",
    rows={"model": "Model"},
    columns=("task",),
    quantities={"win_rate": Shown(header="WR", bold="column", marked="†")},
)
RATES = {("delete", "A_1", "sst2"): 0.6, ("delete", "A_1", "imdb"): 0.4, ("delete", "B", "sst2"): 0.75,
         ("delete", "B", "imdb"): None, ("infill", "A_1", "sst2"): 0.5}  # fmt: skip


def values(rates=None, **more):
    return [
        Value(
            place=dict(zip(("operator", "model", "task"), place, strict=True)), quantity="win_rate", ours=rate, **more
        )
        for place, rate in (rates or RATES).items()
    ]


def test_values_stand_in_blocks_rows_and_columns():
    found = printed(values(), LAYOUT)
    assert found.header == ((("Model", 1), ("SST-2", 1), ("IMDB", 1)),)
    assert found.blocks == (
        ("Deletion: win rate (%)", (("A_1", "60.0", "40.0†"), ("B", "75.0", "–"))),
        ("Retrieval: win rate (%)", (("A_1", "50.0", "–"),)),
    )


def test_the_highest_of_a_column_is_bold_and_a_lone_or_equal_number_is_not():
    assert printed(values(), LAYOUT).bold == {(0, 1, 1)}
    equal = {place: 0.5 for place in RATES}
    assert printed(values(equal), LAYOUT).bold == frozenset()


def test_the_highest_of_a_row_is_bold():
    layout = Layout(rows={"model": "Model"}, columns=("task",), quantities={"win_rate": Shown(header="WR", bold="row")})
    found = [value for value in values() if value.place["operator"] == "delete"]
    assert printed(found, layout).bold == {(0, 0, 1)}


def test_several_quantities_have_a_header_line_of_their_own():
    place = {"configuration": "A / SST-2", "operator": "delete"}
    found = [Value(place=place, quantity="win_rate", ours=0.6), Value(place=place, quantity="word", ours="WF")]
    layout = Layout(
        rows={"configuration": "Configuration"},
        columns=("operator",),
        quantities={"win_rate": Shown(header="WR"), "word": Shown(header="Tax", kind="text")},
    )
    assert printed(found, layout).header == ((("", 1), ("Deletion", 2)), (("Configuration", 1), ("WR", 1), ("Tax", 1)))


def test_latex_escapes_names_and_spans_the_title_of_a_block():
    text = as_latex(printed(values(), LAYOUT), caption="100 % of A_1", label="tab:x")
    assert r"\multicolumn{3}{c}{\textit{Deletion: win rate (\%)}} \\" in text
    assert r"A\_1 & 60.0 & 40.0\dag{} \\" in text
    assert r"B & \textbf{75.0} & -- \\" in text
    assert r"\caption{100 \% of A\_1}" in text and r"\label{tab:x}" in text
    assert text.isascii()


def test_long_texts_are_broken_in_latex():
    layout = Layout(rows={"scenario": "Scenario"}, quantities={"advice": Shown(header="Advice", kind="text")})
    found = [Value(place={"scenario": "SST-2"}, quantity="advice", ours="not settled " * n) for n in (1, 9)]
    assert r"\begin{tabular}{lc}" in as_latex(printed(found[:1], layout), caption="", label="")
    assert r"\begin{tabular}{lp{0.60\linewidth}}" in as_latex(printed(found[1:], layout), caption="", label="")


def test_csv_repeats_the_title_of_a_block():
    lines = as_csv(printed(values(), LAYOUT)).splitlines()
    assert lines[0] == ",Model,SST-2,IMDB"
    assert lines[1] == "Deletion: win rate (%),A_1,60.0,40.0†"


def test_a_drawing_is_well_formed_and_holds_every_cell():
    hostile = values({("delete", "<b>&\"'", "sst2"): 0.6})
    drawn = ET.fromstring(as_svg(printed(hostile, LAYOUT), caption="of <all>"))
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"<b>&\"'", "60.0", "SST-2", "of <all>"} <= set(texts)


def test_a_value_beside_the_published_one_has_a_difference_with_the_interval_of_ours():
    [found] = values({("delete", "A", "sst2"): 0.6}, interval=Interval(0.5, 0.7), published=0.55, run="r")
    row = found.row()
    assert row["difference"] == pytest.approx(0.05)
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((-0.05, 0.15))
    assert row["covered"] is True


def test_a_published_interval_widens_that_of_the_difference():
    given = {"interval": Interval(0.5, 0.7), "published": 0.55, "published_interval": Interval(0.51, 0.58)}
    [found] = values({("delete", "A", "sst2"): 0.6}, **given)
    row = found.row()
    assert (row["published_low"], row["published_high"]) == (0.51, 0.58)
    # Each limit is that of ours and the opposite one of theirs, as the sides of a triangle.
    assert row["difference_low"] == pytest.approx(0.05 - (0.1**2 + 0.03**2) ** 0.5)
    assert row["difference_high"] == pytest.approx(0.05 + (0.1**2 + 0.04**2) ** 0.5)


def test_a_word_or_a_missing_number_has_no_difference():
    [found] = values({("delete", "A", "sst2"): None}, published=0.55)
    assert found.difference is None and found.row()["covered"] is None
    assert Value(place={}, quantity="word", ours="F", published="AF").difference is None
