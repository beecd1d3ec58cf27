"""What a user may give for an attribution."""

from dataclasses import replace

import numpy as np
import pytest

import ice_eval
from ice_eval.attributions import attributions
from ice_eval.errors import ConfigError
from ice_eval.tasks import Records


def words(item):
    return np.array([len(text) for text in item.texts], dtype=float)


def test_the_same_attribution_may_come_as_function_arrays_or_mapping(evaluate, task, tmp_path):
    found = [example.fields["text"] for example in task.examples()]
    vectors = [np.array([len(word) for word in text.split()], dtype=float) for text in found]
    ways = {
        "function": words,
        "arrays": vectors,
        "lists": [vector.tolist() for vector in vectors],
        "by id": {str(index): vector for index, vector in enumerate(vectors)},
        "by number": dict(enumerate(vectors)),
    }
    found = {
        name: evaluate(attributions={"mine": way}, out=tmp_path / name).summary().to_json()
        for name, way in ways.items()
    }
    assert len(set(found.values())) == 1


def test_one_matrix_serves_texts_of_equal_length(evaluate, task):
    records = [{"text": "a dull film with great light"}, {"text": "the best plot of them all"}]
    run = evaluate(
        task=replace(task, data=Records(records)), attributions={"mine": np.arange(12.0).reshape(2, 6)}, k=0.34
    )
    assert run.examples()["rationale"].map(tuple).unique().tolist() == [(4, 5)]


def test_brought_and_known_attributions_go_together(evaluate):
    run = evaluate(attributions={"mine": words, "attention": None, "random": attributions.get("random")()})
    assert run.summary()["attribution"].unique().tolist() == ["mine", "attention", "random"]


@pytest.mark.parametrize("given", [lambda item: [1.0] * item.n_units, {"0": [1.0]}, "mine.jsonl"])
def test_what_is_brought_is_not_named_like_a_known_method(given, tmp_path):
    with pytest.raises(ConfigError, match="'lime' is the name of a known attribution"):
        ice_eval.evaluate("toy", "demo", attributions={"lime": given}, n=2, m=3, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
