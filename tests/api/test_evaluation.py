"""`evaluate`: what it takes, what it refuses, what it says meanwhile."""

import gc
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ice_eval
from ice_eval.attributions import attributions
from ice_eval.errors import ConfigError
from ice_eval.models.toy import Toy
from ice_eval.tasks import Records


def test_an_evaluation_that_fails_leaves_no_temporary_folder(evaluate, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ConfigError):
        evaluate(out=None, attributions={"mine": [[1.0]] * 4})
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_an_unknown_keyword_is_named(evaluate, tmp_path):
    with pytest.raises(ConfigError, match=r"evaluate\(\) got an unexpected keyword argument 'operater'"):
        evaluate(operater=["delete"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attributions": ["atention"]}, "no attribution named 'atention'; did you mean 'attention'"),
        ({"attributions": {"atention": None}}, "no attribution named 'atention'; did you mean 'attention'"),
        ({"attributions": []}, "no attributions given"),
        ({"operators": ["deletion"]}, "no operator named 'deletion'; did you mean 'delete'"),
        ({"task": "sst3"}, "no task named 'sst3'; did you mean 'sst2'"),
        ({"k": 1.5}, "k = 1.5: a share between 0 and 1 is expected"),
        ({"m": 0}, "m = 0: at least 1 is needed"),
        ({"n": 0}, "n = 0: at least 1 is needed"),
        ({"target": "other"}, "target 'other'"),
        ({"data": "nowhere.jsonl"}, "no such file: nowhere.jsonl"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(evaluate, tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(**settings)
    assert not (tmp_path / "run").exists()


def test_numbers_of_numpy_are_numbers(evaluate, tmp_path):
    plain = evaluate(m=6, n=3, seed=2, k=0.25, out=tmp_path / "plain")
    numbers = {"m": np.int64(6), "n": np.int32(3), "seed": np.int64(2), "k": np.float32(0.25)}
    pd.testing.assert_frame_equal(evaluate(**numbers, out=tmp_path / "numpy").summary(), plain.summary())


def test_k_may_be_one_share_or_several(evaluate, tmp_path):
    assert evaluate(k=0.2, out=tmp_path / "one").summary()["k"].unique().tolist() == [0.2]
    assert evaluate(k=(0.2, 0.5), out=tmp_path / "two").summary()["k"].unique().tolist() == [0.2, 0.5]


def test_a_model_may_be_an_object_or_a_name(evaluate, tmp_path):
    by_name, by_object = evaluate(out=tmp_path / "name"), evaluate(model=Toy(), out=tmp_path / "object")
    pd.testing.assert_frame_equal(by_name.summary(), by_object.summary())


def test_data_may_replace_those_of_a_task(evaluate, tmp_path):
    (tmp_path / "d.jsonl").write_text(
        '{"text": "a dull film with great light"}\n{"text": "the best plot of them all"}\n'
    )
    run = evaluate(task="sst2", data=tmp_path / "d.jsonl")
    assert set(run.summary()["task"]) == {"sst2"} and set(run.summary()["n"]) == {2}
    assert run.summary()["accuracy"].isna().all()


def test_progress_is_reported_and_adds_up(evaluate):
    class Listener:
        def __init__(self):
            self.said, self.rows, self.total, self.stopped = [], 0, 0, False

        def say(self, message):
            self.said.append(message)

        def start(self, total, *, examples):
            self.total = total

        def advance(self, rows, *, scored=True):
            self.rows += rows

        def correct(self, total):
            self.total = total

        def stop(self):
            self.stopped = True

        def asked_to_stop(self):
            return False

    first, second, third = Listener(), Listener(), Listener()
    run = evaluate(reporter=first)
    evaluate(reporter=second)
    assert first.rows == first.total == run.folder.manifest().cost.rows == second.rows == second.total
    run = evaluate(reporter=third, attributions=["random", "gradient"])  # some of its rows are answered already
    assert third.rows == third.total == run.folder.manifest().cost.rows > first.rows
    assert first.stopped and second.stopped
    assert first.said == [
        "loading toy …",
        "the data have 4 examples, fewer than n = 500: all are used.",
        "4 examples are too few to distinguish any win rate from chance; use at least 20.",
        "with 6 random sets no single example can be significant; use at least 9.",
    ]


def test_one_direction_may_be_given_by_its_name(evaluate):
    assert evaluate(m=3, directions="necessity").summary()["direction"].unique().tolist() == ["necessity"]


def test_a_setting_that_does_not_exist_is_told_which_do(evaluate):
    with pytest.raises(ConfigError, match="unexpected keyword argument 'direction'.*settings are .*directions"):
        evaluate(m=3, direction="necessity")


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
