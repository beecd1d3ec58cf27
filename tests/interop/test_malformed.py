"""A file of explanations is read or refused in one sentence that names the line, whatever it holds."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.small_runs import run, texts

from ice_eval.errors import DataError
from ice_eval.interop import Explanation, TextPart, read
from ice_eval.interop.jsonl import eraser_explanation, explanation_of, of_shap

WORDS = ["a", "gorgeous", "film"]


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read(path))


def test_spans_have_a_score_per_class_in_either_way_of_writing(tmp_path):
    own, beside = lines(
        tmp_path / "x.jsonl",
        {"spans": [{"start": 2, "end": 10, "score": [0.1, 0.9]}, {"start": 11, "end": 15, "score": [0.2, 0.3]}]},
        {"spans": [[2, 10], [11, 15]], "scores": [[0.1, 0.9], [0.2, 0.3]]},
    )
    assert own.scores.tolist() == beside.scores.tolist() == [[0.1, 0.9], [0.2, 0.3]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"scores": 5}, r"the scores have the shape \(\); a list with a number for each piece"),
        ({"tokens": WORDS, "scores": "5"}, r"the scores have the shape \(\)"),
        ({"tokens": WORDS, "scores": None}, r"the scores have the shape \(\)"),
        ({"scores": [[[1, 2]]]}, r"the scores have the shape \(1, 1, 2\)"),
        ({"scores": [10**400]}, "numbers are expected, not .* too large"),
        ({"scores": [1], "classes": 5}, '"classes" is 5; a list is expected'),
        ({"scores": [[1, 2]], "classes": ["x"]}, r"1 classes are named, \[.x.\], and each piece has scores of 2"),
        ({"spans": [[0, 1]], "scores": 3}, '"scores" is 3; a list is expected'),
        ({"spans": [5]}, r"a span is 5; \[start, end, score\] is expected"),
        ({"spans": [{"start": 0, "end": 1, "text": 5}]}, "a piece has 5 for a text"),
        (
            {"spans": [{"start": 0, "end": 1, "field": ["text"]}]},
            r"a piece has None .* \['text'\] for a field",
        ),
        ({"tokens": {"text": 5}, "scores": [1]}, '"tokens" is 5; a list of texts is expected'),
        ({"tokens": [None], "scores": [1]}, "a piece has neither a text nor a start"),
        ({"tokens": [5], "scores": [1]}, "a piece has 5 for a text"),
        ({"fields": {"text": 5}, "scores": [1]}, r"the explained text is {'text': 5}; a text is expected"),
        ({"text": ["a"], "scores": [1]}, r"the explained text is \['a'\]; a text is expected"),
        ({"evidences": None}, '"evidences" is None; a list is expected'),
        ({"evidences": "abc"}, '"evidences" is .abc.; a list is expected'),
        ({"evidences": [5]}, "a group of evidences is 5; a list is expected"),
        ({"evidences": [["x"]]}, "an evidence is 'x'; an object is expected"),
        ({"rationales": {"a": 1}}, '"rationales" is {.a.: 1}; a list is expected'),
        ({"rationales": [3]}, "a rationale is 3; an object is expected"),
        ({"rationales": [{"hard_rationale_predictions": [3]}]}, "a span is 3; an object is expected"),
        ({"rationales": [{"hard_rationale_predictions": None}]}, "hard_rationale_predictions is None; a list"),
        ({"rationales": [{"soft_rationale_predictions": 3}]}, "soft_rationale_predictions is 3; a list is expected"),
    ],
)
def test_a_line_of_the_wrong_kind_is_told_with_its_number(tmp_path, row, message):
    fine = {"evidences": []} if {"evidences", "rationales"} & set(row) else {"scores": [1]}
    with pytest.raises(DataError, match=rf"x\.jsonl, line 2: {message}"):
        lines(tmp_path / "x.jsonl", fine, row)


BROKEN = {"source_attributions": "aGVsbG8=", "source": [], "attr_pos_start": 0}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (None, r"x\.json: not as inseq saves it .*NoneType"),
        ({"sequence_attributions": None}, r"x\.json: not as inseq saves it .*NoneType"),
        (
            {"sequence_attributions": [{"__instance_type__": ["x", "y"], "attributes": BROKEN}]},
            r"x\.json, sequence 0: not as inseq saves it .*header too small",
        ),
    ],
)
def test_a_broken_file_of_inseq_is_named(tmp_path, attributes, message):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"__instance_type__": ["x", "FeatureAttributionOutput"], "attributes": attributes}))
    with pytest.raises(DataError, match=message):
        list(read(path))


NAMES = "id text fields tokens words spans scores classes start end score field evidences rationales docid".split()
NAMES += "annotation_id start_token end_token soft_rationale_predictions hard_rationale_predictions".split()
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)


@given(row=st.dictionaries(st.sampled_from(NAMES), values, max_size=6))
def test_any_object_is_an_explanation_or_is_refused(row):
    for one in (explanation_of, eraser_explanation):
        try:
            assert isinstance(one(row), Explanation)
        except DataError as exc:
            assert "\n" not in str(exc)


def test_what_python_gives_is_checked_too():
    with pytest.raises(DataError, match="the attribution 'mine' is 5; a file with explanations, numbers or a function"):
        run(texts(2), attributions={"mine": 5})
    with pytest.raises(DataError, match="2 tokens and 1 scores; give one each"):
        Explanation(np.ones(1), (TextPart("a"), TextPart("b")))
    for values in (torch.ones(2, 3).to_sparse(), torch.ones(2, 3, device="meta")):
        with pytest.raises(DataError, match="numbers are expected, not tensor"):
            list(read(values))
    with pytest.raises(DataError, match=r"without its tokens \(`data` is None, as after `.abs` or `.mean`\)"):
        list(of_shap(np.ones((2, 3)), None, None))
    found = run(texts(2), attributions={"mine": lambda item: torch.ones(item.n_units, requires_grad=True)}, m=3)
    assert found.summary()["n"].tolist() == [2]
