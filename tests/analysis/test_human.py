import itertools

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, jaccard_score

from ice_eval.analysis import human
from ice_eval.records import Span
from ice_eval.results import InputRow

MARKS = np.array([True, True, False, False, True, False])


def test_a_unit_with_a_marked_character_is_marked():
    units = (Span("a", 0, 2), Span("a", 2, 5), Span("a", 6, 9), Span("b", 0, 2))
    row = InputRow("1", {}, spans=units, human=(Span("a", 4, 6), Span("b", 1, 2)))
    # The mark ends where the third unit begins, and marks of one field say nothing of another.
    assert human.marks_of(row).tolist() == [False, True, False, True]


@pytest.mark.parametrize(("marks", "found"), [([1, 0], True), ([0, 0], False), ([1, 1], False)])
def test_marks_everywhere_or_nowhere_tell_nothing_apart(marks, found):
    assert human.tells_units_apart(np.array(marks, dtype=bool)) == found


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
    assert human.iou(rationale, MARKS) == pytest.approx(iou)
    assert human.f1(rationale, MARKS) == pytest.approx(f1)
    assert human.is_match(rationale, MARKS) == (iou >= 0.5)


def test_average_precision_worked_by_hand():
    # In the order of the numbers the marks are yes, no, yes, no, no, yes: precision 1/1, 2/3, 3/6 where recall rises.
    vector = np.array([0.9, 0.7, 0.8, 0.6, 0.1, 0.5])
    assert human.average_precision(vector, MARKS) == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)


def test_overlaps_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        marks = rng.random(12) < 0.4
        marks[rng.integers(12)] = True
        vector, units = rng.random(12).round(1), tuple(sorted(rng.choice(12, 4, replace=False).tolist()))
        chosen = np.isin(np.arange(12), units)
        assert human.iou(units, marks) == pytest.approx(jaccard_score(marks, chosen))
        assert human.f1(units, marks) == pytest.approx(f1_score(marks, chosen))
        assert human.average_precision(vector, marks) == pytest.approx(average_precision_score(marks, vector))


@pytest.mark.parametrize(("n", "size", "n_marked"), [(6, 2, 3), (7, 5, 4), (5, 1, 1), (6, 3, 5)])
def test_chance_is_the_mean_over_all_sets(n, size, n_marked):
    marks = np.arange(n) < n_marked
    sets = list(itertools.combinations(range(n), size))
    for value, chance in (
        (human.iou, human.chance_iou),
        (human.f1, human.chance_f1),
        (human.is_match, human.chance_match),
    ):
        expected = np.mean([value(units, marks) for units in sets])
        assert chance(n, size, n_marked) == pytest.approx(expected), value.__name__


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 2], [3, 3, 3, 3, 3, 3], [0, 0, 0, 0, 0, 9]])
@pytest.mark.parametrize("n_marked", [1, 2, 5])
def test_chance_of_average_precision_is_the_mean_over_all_orders(numbers, n_marked):
    marks = np.arange(6) < n_marked
    # sklearn's own formula, spelled out: a call for each of 720 orders would take seconds.
    found = np.mean([_average_precision(order, marks) for order in itertools.permutations(numbers)])
    assert human.chance_average_precision(np.array(numbers, dtype=float), marks) == pytest.approx(found)


def _average_precision(order, marks):
    total, recall = 0.0, 0.0
    for threshold in sorted(set(order), reverse=True):
        taken = np.array(order) >= threshold
        now = (taken & marks).sum() / marks.sum()
        total += (now - recall) * (taken & marks).sum() / taken.sum()
        recall = now
    return total


def test_average_precision_of_equal_numbers_is_the_share_of_marks():
    assert human.chance_average_precision(np.ones(6), MARKS) == pytest.approx(0.5)
    assert human.chance_average_precision(np.arange(6.0), MARKS) > 0.5
