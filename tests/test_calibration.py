"""Contextual calibration: the label prior of the empty input is divided out."""

import numpy as np
import pytest
import torch
from tests.helpers import save_tiny

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.models import load_model
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


def test_gradients_explain_the_calibrated_log_odds(tmp_path):
    save_tiny(tmp_path / "llama", "llama")
    model = load_model(str(tmp_path / "llama"), device="cpu")
    words = {"bad": " bad", "good": " good", "warm": " warm"}
    texts = [{"text": "a film with a slow start"}, {"text": "gorgeous, witty and seductive"}]
    task = ice.Task(data=ice.Records(texts), prompt="Review: {text}\nSentiment:", label_words=words)
    settings = {"operators": ["delete"], "m": 2, "calibration": "contextual"}
    names = ["gradient", "integrated-gradients:steps=1", "attention-x-gradient"]
    run = ice.evaluate(model, task, attributions=names, **settings)
    [rows, labels] = run.folder.inputs(0), model.labels(task)
    for row, example in zip(rows, task.examples(), strict=True):
        item = encode(model.codec, task, example)
        [prior], token_ids = model.log_scores(item.empty(), labels), [ids[0] for ids in labels.ids]

        def log_odds(embedded, prior=prior, token_ids=token_ids, target=row.target):
            scores = model.model(inputs_embeds=embedded).logits[0, -1][token_ids] - torch.tensor(prior)
            return scores[target] - torch.cat([scores[:target], scores[target + 1 :]]).logsumexp(0)

        states = model.model.get_input_embeddings()(torch.tensor(item.ids[None])).detach().requires_grad_(True)
        (slopes,) = torch.autograd.grad(log_odds(states), states)
        found = row.attributions["gradient"]
        assert found == pytest.approx(item.per_unit(slopes[0].norm(dim=1).numpy()), rel=1e-3)
        way = torch.where(torch.tensor(item.unit_of >= 0)[:, None], states, 0.0).detach()
        midway = (states.detach() - way / 2).requires_grad_(True)
        (slopes,) = torch.autograd.grad(log_odds(midway), midway)
        found = row.attributions["integrated-gradients:steps=1"]
        assert found == pytest.approx(item.per_unit((slopes * way)[0].sum(dim=1).numpy()), rel=1e-3, abs=1e-4)
        maps = model.attention_maps(item, row.target, labels, gradients=True, prior=prior.tolist())
        products = np.maximum(maps.weights * maps.gradients, 0)[:, :, maps.position].mean(axis=(0, 1))
        assert row.attributions["attention-x-gradient"] == pytest.approx(item.per_unit(products), rel=1e-3)
