"""Which column of an explanation of several classes is about a label."""

import numpy as np
import pytest
from tests.small_runs import run, texts

import ice_eval
from ice_eval.attributions.user_supplied import column_of
from ice_eval.errors import DataError
from ice_eval.interop import Explanation, TextPart
from ice_eval.models import Labels

TOLD = Labels(("negative", "positive"), ((5,), (9,)))
CLASSES = ("POS", "NEU", "NEG")
OWN = Labels(("neg", "pos"), ((2,), (0,)), are_classes=True, classes=CLASSES)
NUMBERED = Labels(
    ("negative", "positive"), ((0,), (1,)), are_classes=True, classes=("LABEL_0", "LABEL_1")
)  # taken in order, which the run says


@pytest.mark.parametrize(
    ("labels", "classes", "n_columns", "expected"),
    [
        (TOLD, ("Positive ", "NEGATIVE"), 2, [1, 0]),
        (TOLD, ("positive", "other", "negative"), 3, [2, 0]),
        (TOLD, (), 2, [0, 1]),
        (OWN, (), 3, [2, 0]),
        (OWN, (), 2, [0, 1]),
        (OWN, ("NEG", "NEU", "POS"), 3, [0, 2]),
        (NUMBERED, ("LABEL_0", "LABEL_1"), 2, [0, 1]),
        (NUMBERED, ("LABEL_1", "LABEL_0"), 2, [1, 0]),
        (NUMBERED, ("positive", "negative"), 2, [1, 0]),
        (OWN, (2, 0), 2, [0, 1]),
        (OWN, ("NEG",), 1, [0, None]),
        (OWN, (0,), 1, [None, 0]),
        (OWN, ("NEU",), 1, [None, None]),
        (TOLD, ("Positive",), 1, [None, 0]),
        (TOLD, (0,), 1, [0, None]),
    ],
)
def test_columns_are_told_by_name_and_without_names_by_place(labels, classes, n_columns, expected):
    assert [column_of(classes, n_columns, labels, target) for target in (0, 1)] == expected


@pytest.mark.parametrize(
    ("labels", "classes", "n_columns", "message"),
    [
        (TOLD, ("pos", "neg"), 2, "the explained classes are pos, neg, and the labels are negative, positive; name"),
        (TOLD, ("LABEL_0", "LABEL_1"), 2, "the explained classes are LABEL_0, LABEL_1"),
        (TOLD, tuple("vwxyz"), 5, "the explained classes are v, w, x, y, z, and the labels are"),
        (TOLD, ("positive", "Positive"), 2, "the explained classes are positive, Positive"),
        (NUMBERED, ("LABEL_0", "LABEL_1", "LABEL_2"), 3, r"\(the model's classes: LABEL_0, LABEL_1\)"),
        (TOLD, (), 5, "scores of 5 classes without names, and the labels are negative, positive; give a score"),
        (TOLD, (), 1, "scores of 1 classes without names"),
    ],
)
def test_columns_of_other_classes_are_refused(labels, classes, n_columns, message):
    with pytest.raises(DataError, match=message):
        column_of(classes, n_columns, labels, 1)


def test_a_run_refuses_them_before_it_begins(tmp_path):
    found = texts(3)
    given = {
        str(place): Explanation(
            np.ones((len(text.split()), 2)), tuple(map(TextPart, text.split())), classes=("pos", "neg")
        )
        for place, text in enumerate(found)
    }
    with pytest.raises(DataError, match="'mine', example '0': the explained classes are pos, neg"):
        run(found, attributions={"mine": given}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_scores_of_longer_parts_are_reported_and_units_of_the_best_parts_chosen():
    """Sentences of three words each, where the run ranks words."""
    data = [{"id": str(place), "text": "a warm tale . so very dull . it was great ."} for place in range(8)]
    spans = [[0, 13, 1.0], [14, 28, 3.0], [29, 43, 2.0]]
    task = ice_eval.Task(
        data=ice_eval.Records(data), prompt="{text}", label_words={"negative": " negative", "positive": " positive"}
    )
    given = {str(place): {"spans": spans} for place in range(8)}
    found = ice_eval.evaluate("toy", task, attributions={"mine": given}, operators=["delete"], k=[0.2, 0.4, 0.6], m=5)
    assert (
        found.folder.manifest()
        .messages[-1]
        .startswith("the attribution 'mine' has scores that cover several units in 8 of 8 examples: these units share")
    )
    for rationale in found.examples()["rationale"]:
        best, next_best = set(range(4, 8)), set(range(8, 12))
        assert set(rationale) <= best or best <= set(rationale) <= best | next_best
    drawn = {tuple(rationale) for rationale in found.examples()["rationale"] if len(rationale) < 4}
    assert len(drawn) > 1  # not always the longest words


def test_a_class_that_no_label_has_is_refused():
    words = "a warm tale".split()
    pieces = tuple(map(TextPart, words))
    given = {str(place): Explanation(np.ones(3), pieces, classes=("neutral",)) for place in range(2)}
    rows = [{"id": str(place), "text": "a warm tale"} for place in range(2)]
    task = ice_eval.Task(
        data=ice_eval.Records(rows), prompt="{text}", label_words={"negative": " negative", "positive": " positive"}
    )
    with pytest.raises(DataError, match="the explained classes are neutral, and the labels are negative, positive"):
        ice_eval.evaluate("toy", task, attributions={"mine": given}, operators=["delete"], m=5)
