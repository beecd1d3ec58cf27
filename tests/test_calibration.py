"""Contextual calibration: the label prior of the empty input is divided out."""

import numpy as np
import pytest

import ice_eval as ice
from ice_eval.models.toy import BIAS, WEIGHTS

LABELS = {"negative": " negative", "positive": " positive"}


def evaluate(text, **settings):
    task = ice.Task(data=ice.Records([{"text": text}]), prompt="Review: {text}\nSentiment:", label_words=LABELS)
    run = ice.evaluate("toy", task, attributions=["random"], operators=["delete"], **settings)
    return run.examples().iloc[0]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_scores_are_those_without_the_prior():
    plain, calibrated = (evaluate("a good film", calibration=mode) for mode in ("none", "contextual"))
    assert plain.score_full == pytest.approx(sigmoid(BIAS + WEIGHTS["good"]))
    assert calibrated.score_full == pytest.approx(sigmoid(WEIGHTS["good"]))
    assert plain.score_empty == pytest.approx(sigmoid(BIAS))
    assert calibrated.score_empty == pytest.approx(0.5)


def test_the_order_of_sets_stays():
    plain, calibrated = (evaluate("a good film with one slow scene", calibration=c) for c in ("none", "contextual"))
    assert plain.win_rate == calibrated.win_rate
    assert plain.p_value == calibrated.p_value


def test_the_predicted_label_is_the_calibrated_one():
    # Log-odds 0.25 - 0.5 + 0.25 … with the bias the model says positive, without it negative.
    text = "a warm cold cold cold day"
    log_odds = WEIGHTS["warm"] + 3 * WEIGHTS["cold"]
    assert log_odds < 0 < log_odds + 3 * BIAS
    plain, calibrated = (evaluate(text, calibration=mode) for mode in ("none", "contextual"))
    assert calibrated.target == calibrated.predicted == 0
    assert plain.target == plain.predicted == int(log_odds + BIAS > 0)


def test_another_calibration_is_refused():
    with pytest.raises(ice.ConfigError, match="calibration 'context'; did you mean 'contextual'?"):
        evaluate("a good film", calibration="context")
