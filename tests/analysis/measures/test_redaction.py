"""Predictions that change when a rationale is removed, against a loop over the rows of the run."""

import numpy as np
import pytest
from tests.rows import ledger_rows
from tests.small_runs import Plain, picks, run, texts
from tests.toy_runs import planted
from tests.toy_runs import run as toy_run

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures.random_sets import Redaction
from ice_eval.records import Kind

TEXTS = texts(24, seed=3)
OWN = {"strong": picks("strong", towards=4.0), "hat": picks("hat")}


def lines_of(done):
    [part] = Redaction().of(done.folder).parts
    return list(part.lines)


def test_shares_are_those_of_plain_loops():
    """The target is the predicted label, so a prediction changes where the log-odds of the target are negative."""
    both = ["sufficiency", "necessity"]
    done = run(TEXTS, attributions=OWN, operators=["delete", "mask-unk"], directions=both, k=[0.2, 0.4], m=8, n=24)
    drawn = [
        row for row in ledger_rows(done.folder) if row.key.kind == Kind.RANDOM and row.key.direction == "necessity"
    ]
    vectors = {row.example_id: row.attributions for part in done.folder.parts() for row in done.folder.inputs(part)}
    lines = lines_of(done)
    assert len(lines) == 8 and {line["direction"] for line in lines} == {"necessity"}
    for line in lines:
        own, null = [], []
        for example_id, vector in ((name, each[line["attribution"]]) for name, each in vectors.items()):
            plain = Plain(TEXTS[int(example_id)])
            top = plain.top(vector, plain.size(line["k"]))
            rows = [row for row in drawn if row.key[:3] == (example_id, Kind.RANDOM, line["operator"])]
            rows = sorted((row for row in rows if row.key.size == len(top)), key=lambda row: row.key.set)
            sets = [set(range(plain.n_units)) - set(row.kept) for row in rows]
            others = [units for units in sets if units != set(top)][:8]
            assert len(others) == 8
            flips = [plain.log_odds(units, line["operator"], "necessity") < 0 for units in (top, *others)]
            own.append(flips[0])
            null.append(np.mean(flips[1:]))
        assert (line["n"], line["mean"]) == (24, pytest.approx(np.mean(own)))
        assert line["chance"] == pytest.approx(np.mean(null))
        assert line["above_chance"] == pytest.approx(np.mean(own) - np.mean(null))


def test_the_right_words_change_more_predictions_than_random_ones():
    methods = {"planted": planted, "hat": picks("hat")}
    done = toy_run(attributions=methods, operators=["delete"], directions=["necessity"], m=20)
    right, hat = lines_of(done)
    assert right["above_chance_ci"].low > 0.2
    assert hat["above_chance_ci"].low < 0 < hat["above_chance_ci"].high


def test_random_explanations_differ_from_random_sets_no_more_often_than_the_level():
    many = {f"hat{number}": picks(f"hat{number}") for number in range(40)}
    lines = lines_of(run(TEXTS, attributions=many, directions=["necessity"], m=12, n=24))
    outside = [not line["above_chance_ci"].low <= 0 <= line["above_chance_ci"].high for line in lines]
    assert len(lines) == 40 and np.mean(outside) <= 0.1
    assert abs(np.mean([line["above_chance"] for line in lines])) < 0.03


def test_a_rationale_under_several_fills_counts_the_share_of_them():
    done = run(TEXTS, attributions=OWN, operators=["infill"], directions=["necessity"], m=12, n_fills=4, n=24)
    own = [row for row in ledger_rows(done.folder) if row.key.kind == Kind.RATIONALE]
    targets = {row.example_id: row.target for part in done.folder.parts() for row in done.folder.inputs(part)}
    for line in lines_of(done):
        found = {}
        for row in (row for row in own if row.key.attribution == line["attribution"]):
            found.setdefault(row.key.example_id, []).append(np.argmax(row.scores) != targets[row.key.example_id])
        assert {len(flips) for flips in found.values()} == {4}
        assert line["mean"] == pytest.approx(np.mean([np.mean(flips) for flips in found.values()]))


def test_calibrated_predictions_are_those_beside_the_empty_input():
    done = run(TEXTS, attributions=OWN, directions=["necessity"], m=8, n=24, calibration="contextual")
    rows = ledger_rows(done.folder)
    empty = {row.key.example_id: np.array(row.scores) for row in rows if row.key.kind == Kind.EMPTY}
    label = {row.key: int(np.argmax(row.scores - empty[row.key.example_id])) for row in rows}
    full = {key.example_id: label[key] for key in label if key.kind == Kind.FULL}
    assert any(label[row.key] != np.argmax(row.scores) for row in rows)
    for line in lines_of(done):
        own = [key for key in label if key.kind == Kind.RATIONALE and key.attribution == line["attribution"]]
        assert line["mean"] == pytest.approx(np.mean([label[key] != full[key.example_id] for key in own]))


def test_runs_that_remove_nothing_or_stop_early_are_refused(small):
    found = Redaction().of(small.folder)
    assert isinstance(found, Missing) and "--direction" in found.reason
    stopping = run(TEXTS[:4], attributions=OWN, directions=["necessity"], adaptive="examples", n=4)
    found = Redaction().of(stopping.folder)
    assert isinstance(found, Missing) and "--adaptive" in found.reason
