import itertools
import json

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import average_precision_score, f1_score, jaccard_score
from tests.analysis.measures.conftest import drawn
from tests.small_runs import lines_of, run, task_of

from ice_eval.analysis.measures import Missing
from ice_eval.analysis.measures import explanations as plausibility
from ice_eval.analysis.measures.explanations import (
    ALL_RUNS,
    CONFIGURATIONS,
    RATIONALES,
    RELATION,
    VECTORS,
    PlausibilityMeasure,
    chance_iou,
    marks_of,
)
from ice_eval.rationales import top_k
from ice_eval.records import Span
from ice_eval.results import InputRow


@pytest.fixture(scope="module")
def found(small):
    return PlausibilityMeasure().of(small.folder)


def lines(found, title, **where):
    [part] = [part for part in found.parts if part.title == title]
    return [line for line in part.lines if all(line[name] == value for name, value in where.items())]


def test_what_people_marked_is_found_and_random_numbers_reach_chance(found):
    [exact] = lines(found, RATIONALES, attribution="marked", measure="IoU")
    assert exact["mean"] == pytest.approx(2 / 3, abs=0.01)  # of three marked units, k = 0.2 of 11 to 14 takes two
    low, high = exact["above_chance_ci"]  # of 40 examples, whatever their distribution
    assert 1 / 3 < low < exact["above_chance"] < high < 2 / 3
    [exact] = lines(found, VECTORS, attribution="marked")
    assert exact["mean"] == 1
    for title in (RATIONALES, VECTORS):
        for line in lines(found, title, attribution="hat"):
            low, high = line["above_chance_ci"]
            assert low <= 0 <= high


def test_means_and_chance_are_those_of_single_examples(small, found):
    rows = {row.example_id: row for part in small.folder.parts() for row in small.folder.inputs(part)}
    values, chance = [], []
    for line in lines_of(small, attribution="hat", operator="delete"):
        marks = np.flatnonzero(marks_of(rows[line.example_id])).tolist()
        both = len(set(line.rationale) & set(marks))
        values.append(both / (len(line.rationale) + len(marks) - both))
        chance.append(chance_iou(line.n_units, len(line.rationale), len(marks)))
    [line] = lines(found, RATIONALES, attribution="hat", measure="IoU")
    assert (line["n"], line["mean"], line["chance"]) == (
        40,
        pytest.approx(np.mean(values)),
        pytest.approx(np.mean(chance)),
    )


def test_a_random_rationale_has_the_expected_overlap(small):
    """The hypergeometric expectation, within three standard errors of 40 texts times 50 draws."""
    rng = np.random.default_rng(0)
    values, chance = [], []
    for row in (row for part in small.folder.parts() for row in small.folder.inputs(part)):
        marks = marks_of(row)
        for _ in range(50):
            units = top_k(rng.random(marks.size), 2, rng=rng)
            both = int(marks[units].sum())
            values.append(both / (2 + int(marks.sum()) - both))
        chance.append(chance_iou(marks.size, 2, int(marks.sum())))
    assert np.mean(values) == pytest.approx(np.mean(chance), abs=3 * np.std(values) / np.sqrt(len(values)))


def test_the_relation_is_the_correlation_over_examples(small, found):
    rows = {row.example_id: row for part in small.folder.parts() for row in small.folder.inputs(part)}
    examples = lines_of(small, attribution="hat", operator="mask-unk")
    overlaps = []
    for line in examples:
        marks = set(np.flatnonzero(marks_of(rows[line.example_id])).tolist())
        overlaps.append(len(set(line.rationale) & marks) / len(set(line.rationale) | marks))
    rates = [line.win_rate for line in examples]
    [line] = lines(found, RELATION, attribution="hat", operator="mask-unk", measure="IoU")
    assert line["pearson"] == pytest.approx(pearsonr(overlaps, rates).statistic)
    assert line["pearson_p"] == pytest.approx(pearsonr(overlaps, rates).pvalue)
    assert line["spearman"] == pytest.approx(spearmanr(overlaps, rates).statistic)
    assert line["pearson_p_adjusted"] >= line["pearson_p"]
    assert line["detectable"] == pytest.approx(0.43, abs=0.01)


def test_attributions_are_compared_with_each_other_where_there_are_four(small, found):
    [line] = lines(found, CONFIGURATIONS, operator="delete", measure="AUPRC")
    points = [(each["mean"], each["win_rate"]) for each in lines(found, RELATION, operator="delete", measure="AUPRC")]
    assert line["n"] == 4
    assert line["pearson"] == pytest.approx(pearsonr(*zip(*points, strict=True)).statistic)
    assert "pearson_p" not in line
    together = PlausibilityMeasure().across([found, found], [])
    assert [each["n"] for each in lines(together, ALL_RUNS, operator="delete", measure="AUPRC")] == [8]


def test_everything_can_be_written_as_json(found):
    for part in found.parts:
        for line in part.lines:
            json.dumps(line, allow_nan=False)
            assert {column.field for column in part.columns} <= set(line)


def test_without_human_rationales_the_line_says_how_to_give_them(unannotated):
    found = PlausibilityMeasure().of(unannotated.folder)
    assert isinstance(found, Missing)
    assert found.reason.startswith("the run's data have no human rationales; give each example a 'rationale'")


def test_examples_whose_marks_tell_nothing_apart_are_left_out_and_counted():
    records = [
        {"text": "one two three four five six", "rationale": [[0, 3]]},
        {"text": "six five four three two one", "rationale": [[0, 27]]},
        {"text": "two one four three six five", "rationale": []},
    ]
    task = task_of(records)
    found = PlausibilityMeasure().of(run(task, attributions={"hat": drawn("hat")}, m=5).folder)
    assert [line["n"] for line in lines(found, VECTORS)] == [1]
    assert found.notes[0].startswith("2 of 3 examples are left out")
    found = PlausibilityMeasure().of(run(task, attributions=["human"], m=5).folder)
    assert found == Missing("the run has no attribution beside 'human', which is the yardstick")
    found = PlausibilityMeasure().of(run(task_of(records[1:]), attributions={"hat": drawn("hat")}, m=5).folder)
    assert found == Missing("no human rationale marks some units of a text and leaves others")


def test_units_of_the_whole_prompt_have_no_marks():
    records = [{"text": "one two three four five six", "rationale": [[0, 3]]}]
    found = PlausibilityMeasure().of(
        run(task_of(records), attributions={"hat": drawn("hat")}, m=5, scope="prompt").folder
    )
    assert found.reason.endswith("which --scope prompt does not keep; run without it")


def test_examples_that_share_a_passage_are_resampled_together(small):
    texts = [row.fields["text"] for part in small.folder.parts() for row in small.folder.inputs(part)]
    records = [{"text": text, "rationale": [[0, 9]], "group": str(place // 4)} for place, text in enumerate(texts)]
    found = PlausibilityMeasure().of(run(task_of(records), attributions={"hat": drawn("hat")}, m=5, n=40).folder)
    [line] = lines(found, RELATION, measure="AUPRC")
    assert (line["n"], line["pearson_p"], line["pearson_p_adjusted"]) == (40, None, None)
    assert line["pearson_ci"][0] < line["pearson"] < line["pearson_ci"][1]
    assert line["detectable"] > 0.7  # of ten groups, not of forty examples


def test_signed_numbers_rank_by_magnitude_where_the_run_did():
    records = [{"text": "one two three four five six", "rationale": [[0, 3]]}] * 2
    against = {"against": lambda item: -np.arange(6.0, 0, -1)}  # the marked unit has the largest magnitude
    rates = {}
    for sign in ("support", "abs"):
        found = PlausibilityMeasure().of(run(task_of(records), attributions=against, m=5, sign=sign).folder)
        rates[sign] = lines(found, VECTORS)[0]["mean"]
    assert rates == {"support": pytest.approx(1 / 6), "abs": 1}


MARKS = np.array([True, True, False, False, True, False])


def test_a_unit_with_a_marked_character_is_marked():
    units = (Span("a", 0, 2), Span("a", 2, 5), Span("a", 6, 9), Span("b", 0, 2))
    row = InputRow("1", {}, spans=units, human=(Span("a", 4, 6), Span("b", 1, 2)))
    # The mark ends where the third unit begins, and marks of one field say nothing of another.
    assert plausibility.marks_of(row).tolist() == [False, True, False, True]


@pytest.mark.parametrize(("marks", "found"), [([1, 0], True), ([0, 0], False), ([1, 1], False)])
def test_marks_everywhere_or_nowhere_tell_nothing_apart(marks, found):
    assert plausibility.tells_units_apart(np.array(marks, dtype=bool)) == found


@pytest.mark.parametrize(
    ("rationale", "iou", "f1"),
    [
        ((0, 1, 4), 1, 1),
        ((0, 2), 1 / 4, 2 / 5),  # one of two is marked; three marks: union 4
        ((0, 1), 2 / 3, 4 / 5),
        ((3,), 0, 0),
    ],
)
def test_overlap_worked_by_hand(rationale, iou, f1):
    assert plausibility.iou(rationale, MARKS) == pytest.approx(iou)
    assert plausibility.f1(rationale, MARKS) == pytest.approx(f1)
    assert plausibility.is_match(rationale, MARKS) == (iou >= 0.5)


def test_average_precision_worked_by_hand():
    # In the order of the numbers the marks are yes, no, yes, no, no, yes: precision 1/1, 2/3, 3/6 where recall rises.
    vector = np.array([0.9, 0.7, 0.8, 0.6, 0.1, 0.5])
    assert plausibility.average_precision(vector, MARKS) == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)


def test_overlaps_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        marks = rng.random(12) < 0.4
        marks[rng.integers(12)] = True
        vector, units = rng.random(12).round(1), tuple(sorted(rng.choice(12, 4, replace=False).tolist()))
        chosen = np.isin(np.arange(12), units)
        assert plausibility.iou(units, marks) == pytest.approx(jaccard_score(marks, chosen))
        assert plausibility.f1(units, marks) == pytest.approx(f1_score(marks, chosen))
        assert plausibility.average_precision(vector, marks) == pytest.approx(average_precision_score(marks, vector))


@pytest.mark.parametrize(("n", "size", "n_marked"), [(6, 2, 3), (7, 5, 4), (5, 1, 1), (6, 3, 5)])
def test_chance_is_the_mean_over_all_sets(n, size, n_marked):
    marks = np.arange(n) < n_marked
    sets = list(itertools.combinations(range(n), size))
    for value, chance in (
        (plausibility.iou, plausibility.chance_iou),
        (plausibility.f1, plausibility.chance_f1),
        (plausibility.is_match, plausibility.chance_match),
    ):
        expected = np.mean([value(units, marks) for units in sets])
        assert chance(n, size, n_marked) == pytest.approx(expected), value.__name__


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 2], [3, 3, 3, 3, 3, 3], [0, 0, 0, 0, 0, 9]])
@pytest.mark.parametrize("n_marked", [1, 2, 5])
def test_chance_of_average_precision_is_the_mean_over_all_orders(numbers, n_marked):
    marks = np.arange(6) < n_marked
    # sklearn's own formula, spelled out: a call for each of 720 orders would take seconds.
    found = np.mean([_average_precision(order, marks) for order in itertools.permutations(numbers)])
    assert plausibility.chance_average_precision(np.array(numbers, dtype=float), marks) == pytest.approx(found)


def _average_precision(order, marks):
    total, recall = 0.0, 0.0
    for threshold in sorted(set(order), reverse=True):
        taken = np.array(order) >= threshold
        now = (taken & marks).sum() / marks.sum()
        total += (now - recall) * (taken & marks).sum() / taken.sum()
        recall = now
    return total


def test_average_precision_of_equal_numbers_is_the_share_of_marks():
    assert plausibility.chance_average_precision(np.ones(6), MARKS) == pytest.approx(0.5)
    assert plausibility.chance_average_precision(np.arange(6.0), MARKS) > 0.5
