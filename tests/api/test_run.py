"""`Run`: a finished evaluation in a notebook."""

import gc
import itertools
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import ice_eval
from ice_eval.errors import ConfigError, DataError


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
    with pytest.raises(ConfigError, match="is not a run folder"):
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
