"""Rationales that are sets of their own size, whatever k: what a person marked, or a user brings without scores."""

import itertools
import json
from dataclasses import replace

import pytest
from tests.small_runs import Plain, files_of, line_of, lines_of, results_of, rows_of, run, task_of, texts

from ice_eval.report import agreement_table, difference_notes, difference_tables, summary_table
from ice_eval.results import differences

TEXTS = texts(6, words=(9, 9), seed=3)
MARKED = [(1,), (0, 3), (2, 3, 4, 8), (), tuple(range(9)), (5, 6, 7)]
"""Units that a person marked."""
NOTHING, EVERYTHING = 3, 4
SETTINGS = {"operators": ["delete", "mask-unk"], "m": 200, "k": [0.2, 0.4]}


def marks(text, units):
    words = text.split()
    begins = list(itertools.accumulate([0, *(len(word) + 1 for word in words)]))
    return [[begins[unit], begins[unit] + len(words[unit])] for unit in units]


TASK = task_of([{"text": t, "rationale": marks(t, units)} for t, units in zip(TEXTS, MARKED, strict=True)])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run(TASK, attributions=["human", "random"], out=tmp_path_factory.mktemp("own") / "run", **SETTINGS)


def test_the_rationale_is_what_was_marked_and_is_compared_with_all_sets_of_its_size(found):
    for line in lines_of(found, attribution="human", operator="delete"):
        index = int(line.example_id)
        assert line.k is None
        if index in {NOTHING, EVERYTHING}:
            amount = "no" if index == NOTHING else "every"
            assert line.error == f"the attribution 'human' marks {amount} unit of the text"
            continue
        plain, marked = Plain(TEXTS[index]), MARKED[index]
        assert line.rationale == marked
        others = [units for units in plain.sets(len(marked)) if units != marked]
        values = [plain.value(units, ["delete"], "sufficiency") for units in others]
        mine = plain.value(marked, ["delete"], "sufficiency")
        assert line.m == len(others)
        assert line.win_rate == pytest.approx(sum(mine > value for value in values) / len(values))


def test_spans_of_eraser_are_sets_of_words_however_they_are_grouped(tmp_path):
    """Long spans, overlapping groups and a word said twice: what is marked counts, and that is what `human` says."""
    task = task_of([{"id": "8", "text": "the worst movie of the year", "rationale": [[0, 18], [23, 27]]}])
    one, other = {"start_token": 0, "end_token": 4}, {"start_token": 5, "end_token": 6}
    kinds = {
        "evidences": {"evidences": [[one], [other]]},
        "overlapping": {"evidences": [[one, {"start_token": 1, "end_token": 2}], [one], [other]]},
        "hard": {"rationales": [{"docid": "8", "hard_rationale_predictions": [one, other]}]},
    }
    given = {"human": None}
    for name, kind in kinds.items():
        given[name] = tmp_path / f"{name}.jsonl"
        given[name].write_text(json.dumps({"annotation_id": "8", **kind}))
    done = run(task, attributions=given, m=5)
    assert {line.attribution: line.rationale for line in lines_of(done)} == dict.fromkeys(given, (0, 1, 2, 3, 5))
    [row] = [row for part in done.folder.parts() for row in done.folder.inputs(part)]
    assert set(row.attributions.values()) == {(1, 1, 1, 1, 0, 1)}


def test_it_has_one_line_whatever_k_and_others_have_one_for_each(found):
    summary = found.folder.summary()
    shares = [(line.attribution, line.k) for line in summary.configurations if line.operator == "delete"]
    assert shares == [("human", None), ("random", 0.2), ("random", 0.4)]
    line = line_of(found, attribution="human", operator="delete")
    assert (line.n, line.n_skipped) == (4, 2)
    assert [each.k for each in summary.agreement] == [None, 0.2, 0.4]
    assert [each.k for each in summary.robustness] == [None, 0.2, 0.4]
    for table in (summary_table([summary]), agreement_table([summary])):
        shown = {row[table.header.index("attribution")]: row[table.header.index("k")] for row in table.rows}
        assert shown == {"human": "own", "random": "0.4"}


def test_runs_with_it_are_compared(found):
    other = run(TASK, attributions=["human"], operators=["delete"], m=20, seed=1)
    [compared] = differences(found.folder, [other.folder])
    [line] = compared.configurations
    assert (line.attribution, line.k, line.paired) == ("human", None, True)
    assert len(difference_tables([compared])[-1].rows) == 1
    assert any("sufficiency, k = own: human under mask-unk/all" in note for note in difference_notes([compared]))


def test_all_statistics_come_again_from_the_folder(found):
    before = results_of(found)
    found.rescore()
    assert results_of(found) == before


def test_another_k_adds_nothing_to_it_and_alone_it_scores_no_other_size(tmp_path):
    alone = run(TASK, attributions=["human"], operators=["delete"], m=20, out=tmp_path / "run")
    sizes = {row.key.size for row in rows_of(alone) if row.key.operator}
    assert sizes == {len(units) for index, units in enumerate(MARKED) if index not in {NOTHING, EVERYTHING}}
    before = {name: content for name, content in files_of(alone.path).items() if name.suffix == ".parquet"}
    again = run(TASK, attributions=["human"], operators=["delete"], m=20, k=0.4, out=tmp_path / "run")
    assert {name: content for name, content in files_of(again.path).items() if name.suffix == ".parquet"} == before


def test_sets_in_a_file_are_what_human_marks_are(found, tmp_path):
    lines = [{"id": str(i), "spans": marks(TEXTS[i], units)} for i, units in enumerate(MARKED)]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    brought = run(TASK, attributions={"mine": tmp_path / "mine.jsonl"}, **SETTINGS)
    # What depends on all lines of a run, and the reasons of skipped texts, which name the attribution.
    others = dict.fromkeys(("p_adjusted", "win_rate_ci_simultaneous", "verdict_simultaneous", "skipped"))
    for operator in ("delete", "mask-unk", "all"):
        mine = line_of(brought, operator=operator)
        human = line_of(found, attribution="human", operator=operator)
        assert replace(mine, **others) == replace(human, attribution="mine", **others)


def test_a_sequential_test_and_matched_sets_take_its_size_too():
    done = run(TASK, attributions=["human"], operators=["delete"], adaptive="examples", nulls=["size", "contiguity"])
    for line in lines_of(done):
        index = int(line.example_id)
        assert line.rationale == (() if index in {NOTHING, EVERYTHING} else MARKED[index])
    assert line_of(done, null="size").n == 4


def test_it_is_shown_beside_those_of_every_k(found):
    text = repr(found.example("2", operator="delete"))
    assert "human under delete, sufficiency, k = own: win rate" in text and "random under delete" in text
    assert {each.line.attribution for each in found.example("2", k=0.4).view.compared} == {"random"}
    assert "skipped" not in repr(found.example(str(NOTHING))) and "marks no unit" in repr(found.example(str(NOTHING)))
