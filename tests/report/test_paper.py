import pytest

from ice_eval.analysis.paper import english_cells
from ice_eval.report.figures import paper_figures


@pytest.fixture(scope="module")
def rows():
    """Name of a figure -> the rows of its specification that draw something."""
    specs = {figure.name: figure.spec() for figure in paper_figures()}
    values = {name: spec["datasets"][spec["data"]["name"]] for name, spec in specs.items()}
    return {name: [row for row in found if not row.get("hole")] for name, found in values.items()}


def test_the_heatmap_has_every_cell_in_one_of_four_panels(rows):
    drawn = {(row["y"], row["x"], row["row"], row["column"]): row["win_rate"] for row in rows["paper-english"]}
    assert drawn == {(c.model, c.task, c.attribution, c.operator): c.win_rate for c in english_cells()}
    assert len({(row["row"], row["column"]) for row in rows["paper-english"]}) == 4


def test_outputs_that_were_not_valid_are_drawn_as_unknown(rows):
    unknown = {(row["y"], row["x"], row["column"]) for row in rows["paper-languages"] if row["win_rate"] is None}
    assert len(rows["paper-languages"]) == 84
    assert unknown == {("DeepSeek-7B", language, "infill") for language in ("hindi", "chinese")} | {
        ("DeepSeek-7B", "arabic", "delete")
    }


def test_every_prompt_has_a_win_rate_of_either_method(rows):
    assert len(rows["paper-prompts"]) == 28
    assert {row["prompt"] for row in rows["paper-prompts"]} == {"v1", "v2", "v3", "v4", "v5"}
