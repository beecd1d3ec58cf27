from dataclasses import replace

import pytest
from tests.small_runs import run, texts

from ice_eval.analysis.grid import (
    Cell,
    anti_faithful,
    cells_of,
    eraser_agreement,
    grouped,
    operator_dependence,
    paired,
    spreads,
)
from ice_eval.errors import DataError

BOTH = ("delete", "infill")


def cell(win_rate, operator="delete", **changes):
    return Cell(
        **{"model": "m", "task": "t", "attribution": "a", "operator": operator, "win_rate": win_rate, **changes}
    )


@pytest.fixture(scope="module")
def summary():
    return run(texts(4), m=6, operators=["delete", "mask-unk"], k=(0.2, 0.4)).folder.summary()


def test_cells_of_a_run_are_its_configurations(summary):
    cells = cells_of(summary.configurations, text_lengths={"waves": "long"})
    assert [c.win_rate for c in cells] == [line.win_rate for line in summary.configurations]
    assert {(c.model, c.task, c.attribution, c.text_length, c.n) for c in cells} == {
        ("waves", "waves", "random", "long", 4)
    }
    assert {(c.operator, c.k) for c in cells} == {(o, k) for o in ("delete", "mask-unk", "all") for k in (0.2, 0.4)}


def test_a_configuration_without_an_example_is_no_cell(summary):
    lines = [replace(line, win_rate=None) if line.k == 0.4 else line for line in summary.configurations]
    assert {c.k for c in cells_of(lines)} == {0.2}


def test_the_gap_of_a_run_is_that_of_its_own_agreement(summary):
    found = operator_dependence(cells_of(summary.configurations), operators=("delete", "mask-unk"))
    assert found.gaps == pytest.approx([line.gap for line in summary.agreement])


def test_only_cells_that_differ_in_one_thing_are_a_pair():
    cells = [cell(0.6), cell(0.5, "infill"), cell(0.7, k=0.5), cell(0.4, "infill", model="other"), cell(0.3, "mask")]
    [pair] = paired(cells, over="operator", first="delete", second="infill")
    assert (pair.first, pair.second) == (cells[0], cells[1])
    assert pair.gap == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("first", "second", "crosses"),
    [(0.60, 0.50, True), (0.50, 0.60, True), (0.55, 0.5499, True), (0.90, 0.55, False), (0.10, 0.54, False)],
)
def test_the_threshold_belongs_to_the_upper_side(first, second, crosses):
    found = operator_dependence([cell(first), cell(second, "infill")])
    assert len(found.crossings) == crosses


def test_two_win_rates_for_one_configuration_are_refused():
    with pytest.raises(DataError, match="2 win rates are given for m, t, a, delete, 0.2"):
        grouped([cell(0.5), cell(0.6)], over="operator")


def test_dependence_by_hand():
    rates = {"x": (0.60, 0.50), "y": (0.50, 0.70), "z": (0.80, 0.79)}
    cells = [cell(rate, o, task=task) for task, both in rates.items() for o, rate in zip(BOTH, both, strict=True)]
    found = operator_dependence(cells)
    assert found.first_exceeds == pytest.approx(2 / 3)
    assert found.median_gap == pytest.approx(0.01)
    assert found.mean_gap == pytest.approx(-0.03)
    assert found.widest.first.task == "y"
    assert [pair.first.task for pair in found.crossings] == ["x", "y"]
    assert len(operator_dependence(cells, threshold=0.75).crossings) == 0


def test_a_grid_with_one_operator_has_no_gaps():
    found = operator_dependence([cell(0.6)])
    assert (found.pairs, found.first_exceeds, found.median_gap, found.mean_gap, found.widest) == (
        (),
        None,
        None,
        None,
        None,
    )


def test_anti_faithful_ones_come_worst_first_and_chance_is_none_of_them():
    cells = [cell(0.49), cell(0.5, task="u"), cell(0.2, task="v")]
    assert [c.win_rate for c in anti_faithful(cells)] == [0.2, 0.49]


def test_spreads_over_k_are_in_order_of_k_and_the_widest_comes_first():
    cells = [cell(0.7, k=0.3), cell(0.5, k=0.1), cell(0.6, k=0.2)]
    others = [cell(0.9, k=0.1, task="u"), cell(0.4, k=0.2, task="u"), cell(0.5, task="alone")]
    wide, narrow = spreads([*cells, *others], over="k")
    assert [c.k for c in narrow.cells] == [0.1, 0.2, 0.3]
    assert (narrow.increases, wide.increases) == (True, False)
    assert (wide.width, narrow.width) == (pytest.approx(0.5), pytest.approx(0.2))
    assert (narrow.lowest.k, narrow.highest.k) == (0.1, 0.3)


def test_raw_scores_and_win_rates_lead_to_verdicts_by_their_own_thresholds():
    found = eraser_agreement([0.9, 0.5, 0.4, 0.2], [0.5, 0.55, 0.6, 0.1])
    assert found.agree == (False, True, False, True)
    assert (found.disagreements, found.eraser_only) == (2, 1)
    with pytest.raises(DataError, match="2 scores and 1 win rates"):
        eraser_agreement([0.1, 0.2], [0.3])


def test_a_missing_raw_score_is_no_verdict():
    found = eraser_agreement([None, float("nan"), 0.9], [0.1, 0.9, 0.1])
    assert found == ((None, None, False), 1, 1)
