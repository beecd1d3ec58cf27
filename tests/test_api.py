"""What a notebook user sees."""

import gc
import itertools
import os
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import ice_eval
from ice_eval.attributions import attributions
from ice_eval.errors import ConfigError, DataError
from ice_eval.models.toy import Toy
from ice_eval.tasks import Records, Task

TEXTS = [
    "a gorgeous witty film with a great cast and one dull scene",
    "the worst film of the year boring cold and far too long",
    "warm and fun from the first scene to the very last one",
    "a broken plot a rude cast and a terrible ending to it all",
]


@pytest.fixture
def task():
    return Task(
        data=Records([{"text": text, "label": 1 - i % 2} for i, text in enumerate(TEXTS)]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        name="reviews",
    )


@pytest.fixture
def evaluate(task, tmp_path):
    def call(**settings):
        defaults = {"model": "toy", "task": task, "attributions": ["attention"], "m": 6, "out": tmp_path / "run"}
        return ice_eval.evaluate(**defaults | settings)

    return call


# --- randomization_test -------------------------------------------------------------------------------------------


def additive(weights):
    """Score of a row: the sum of the weights it keeps."""
    return lambda masks: masks @ np.asarray(weights, dtype=float)


def test_with_few_sets_the_test_is_the_exact_one():
    weights = np.array([0.5, -1.0, 2.0, 0.5, 3.0, 0.25])  # two of them equal, so that sets tie
    every = list(itertools.combinations(range(6), 2))
    score = {units: sum(weights[u] for u in units) for units in every}
    for rationale in every:
        found = ice_eval.randomization_test(additive(weights), n_units=6, rationale=rationale, m=50)
        others = [score[s] for s in every if s != rationale]
        mine = score[rationale]
        assert found.p_value == sum(v >= mine for v in score.values()) / 15
        assert found.p_lower == sum(v <= mine for v in score.values()) / 15
        assert found.win_rate == (sum(mine > v for v in others) + sum(mine == v for v in others) / 2) / 14
        assert found.win_rate_strict == sum(mine > v for v in others) / 14
        assert found.tie_rate == sum(mine == v for v in others) / 14
        assert sorted(found.null) == sorted(others)
        assert found.observed == mine


@pytest.mark.parametrize(("m", "n_null"), [(13, 13), (14, 14), (15, 14), (50, 14)])
def test_the_test_is_exact_from_all_sets_less_one_on(m, n_null):
    found = ice_eval.randomization_test(additive(range(6)), n_units=6, rationale=[1, 4], m=m)
    assert found.null.size == n_null


def test_the_model_is_asked_about_distinct_sets_of_the_same_size_and_the_rationale():
    asked = []

    def score_masks(masks):
        asked.append(masks)
        return masks.sum(axis=1)

    ice_eval.randomization_test(score_masks, n_units=40, rationale=[7, 3, 30], m=100)
    [masks] = asked
    assert masks.dtype == bool and masks.shape == (101, 40)
    assert set(masks.sum(axis=1)) == {3}
    assert len(np.unique(masks, axis=0)) == 101
    assert np.flatnonzero(masks[0]).tolist() == [3, 7, 30]


def test_random_rationales_get_uniform_p_values():
    weights = np.random.default_rng(0).normal(size=12)
    score = additive(weights)
    picks = np.random.default_rng(1)
    ranks = Counter()
    for seed in range(2000):
        rationale = picks.choice(12, 3, replace=False).tolist()
        found = ice_eval.randomization_test(score, n_units=12, rationale=rationale, m=19, seed=seed)
        ranks[round(found.p_value * 20)] += 1
    assert set(ranks) == set(range(1, 21))
    assert chisquare([ranks[rank] for rank in range(1, 21)]).pvalue > 0.001


def test_the_best_rationale_gets_the_smallest_p_value():
    weights = np.arange(20.0) ** 2
    found = ice_eval.randomization_test(additive(weights), n_units=20, rationale=[17, 18, 19], m=99)
    assert (found.win_rate, found.p_value, found.p_lower) == (1.0, 1 / 100, 1.0)


def test_the_seed_defines_the_sets():
    weights = np.random.default_rng(0).normal(size=30)
    first, again, other = (
        ice_eval.randomization_test(additive(weights), n_units=30, rationale=[0, 1], m=50, seed=seed).null.tolist()
        for seed in (5, 5, 6)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rationale": []}, r"the rationale \[\] is not a set of units 0 … 5"),
        ({"rationale": [2, 2]}, r"the rationale \[2, 2\] is not a set of units 0 … 5"),
        ({"rationale": [6]}, r"the rationale \[6\] is not a set of units 0 … 5"),
        ({"rationale": [-1]}, r"the rationale \[-1\] is not a set of units 0 … 5"),
        ({"rationale": range(6)}, "the rationale holds all 6 units, so there is no other set"),
        ({"score_masks": lambda masks: masks.sum()}, r"score_masks returned shape \(\) for 7 rows"),
        ({"score_masks": lambda masks: masks}, r"score_masks returned shape \(7, 6\) for 7 rows"),
        ({"score_masks": lambda masks: np.where(masks[:, 0], np.nan, 1.0)}, "finite"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(settings, message):
    defaults = {"score_masks": additive(range(6)), "n_units": 6, "rationale": [0, 1], "m": 6}
    with pytest.raises(DataError, match=message):
        ice_eval.randomization_test(**defaults | settings)


def test_no_random_set_is_refused():
    with pytest.raises(ConfigError, match="m = 0: at least 1 is needed"):
        ice_eval.randomization_test(additive(range(6)), n_units=6, rationale=[0], m=0)


# --- evaluate and Run ---------------------------------------------------------------------------------------------


def test_a_run_gives_frames(evaluate):
    run = evaluate(attributions=["attention", "random"], k=[0.2, 0.4])
    summary, examples, agreement = run.summary(), run.examples(), run.agreement()
    assert isinstance(summary, pd.DataFrame) and len(summary) == 2 * 3 * 2
    assert summary["win_rate"].between(0, 1).all() and set(summary["n"]) == {4}
    assert len(examples) == 4 * len(summary)
    assert set(examples["example_id"]) == {"0", "1", "2", "3"}
    assert len(agreement) == 2 * 2
    means = examples.groupby(["attribution", "operator", "k"])["win_rate"].mean()
    for line in summary.itertuples():
        assert means[line.attribution, line.operator, line.k] == pytest.approx(line.win_rate)


def test_a_run_is_read_back_from_its_folder(evaluate):
    run = evaluate()
    again = ice_eval.Run(run.path)
    assert repr(again) == f"Run({str(run.path)!r})"
    pd.testing.assert_frame_equal(again.summary(), run.summary())


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        ice_eval.Run(tmp_path)


def test_a_report_goes_into_the_folder_or_elsewhere(evaluate, tmp_path):
    run = evaluate()
    assert run.report() == run.path / "report.html"
    elsewhere = run.report(tmp_path / "new" / "page.html")
    assert elsewhere.read_bytes() == (run.path / "report.html").read_bytes()
    assert "toy on reviews" in elsewhere.read_text()


def test_a_notebook_shows_the_summary_and_escapes_names(evaluate):
    html = evaluate(attributions={"<b>mine</b>": lambda item: np.arange(item.n_units)})._repr_html_()
    assert "<table" in html and "win rate" in html
    assert "&lt;b&gt;mine&lt;/b&gt;" in html and "<b>" not in html


def test_a_temporary_folder_lives_as_long_as_its_run(evaluate):
    run = evaluate(out=None)
    path = run.path
    gc.collect()
    assert len(run.summary()) == 3 and path.is_dir()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del run
        gc.collect()
    assert not path.exists() and not path.parent.exists()
    assert caught == []


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


def words(item):
    return np.array([len(text) for text in item.texts], dtype=float)


def test_the_same_attribution_may_come_as_function_arrays_or_mapping(evaluate, task, tmp_path):
    vectors = [np.array([len(word) for word in text.split()], dtype=float) for text in TEXTS]
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

        def start(self, total):
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
    assert first.rows == first.total == run.folder.manifest()["rows"] == second.rows == second.total
    run = evaluate(reporter=third, attributions=["random", "gradient"])  # some of its rows are answered already
    assert third.rows == third.total == run.folder.manifest()["rows"] > first.rows
    assert first.stopped and second.stopped
    assert first.said == [
        "500 examples were asked for, and the data hold 4: all of them are used.",
        "4 examples tell win rates from about 97 % on from chance: weaker explanations will read as not "
        "distinguishable from random.",
        "with 6 random sets no single example can be significant; 9 are the least.",
    ]


# --- public names -------------------------------------------------------------------------------------------------


def test_a_star_import_gives_the_public_names_and_no_more():
    namespace = {}
    exec("from ice_eval import *", namespace)  # a star import is allowed at module level only
    del namespace["__builtins__"]
    assert sorted(namespace) == sorted(ice_eval.__all__)
    assert ice_eval.__all__ == sorted(ice_eval.__all__)
    assert all(value.__module__.startswith("ice_eval.") for value in namespace.values())


def test_dir_lists_the_public_names():
    assert set(ice_eval.__all__) < set(dir(ice_eval))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ice_eval' has no attribute 'evalute'"):
        ice_eval.evalute  # noqa: B018


def test_one_direction_may_be_given_by_its_name(evaluate):
    assert evaluate(m=3, directions="necessity").summary()["direction"].unique().tolist() == ["necessity"]


def test_a_setting_that_does_not_exist_is_told_which_do(evaluate):
    with pytest.raises(ConfigError, match="unexpected keyword argument 'direction'.*settings are .*directions"):
        evaluate(m=3, direction="necessity")


@pytest.mark.parametrize("given", [lambda item: [1.0] * item.n_units, {"0": [1.0]}, "mine.jsonl"])
def test_what_is_brought_is_not_named_like_a_known_method(given, tmp_path):
    with pytest.raises(ConfigError, match="'lime' is the name of a known attribution"):
        ice_eval.evaluate("toy", "demo", attributions={"lime": given}, n=2, m=3, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
