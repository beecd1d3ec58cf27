"""Why one label rather than another: the score is log p(target) - log p(versus)."""

import re

import numpy as np
import pytest
import torch

import ice_eval as ice
from ice_eval.models.gradients import target_odds
from ice_eval.report import conclude
from ice_eval.results.ledger import log_odds

WEIGHTS = {"ball": (2.0, 0.0, 0.0), "vote": (0.0, 1.5, 0.0), "bank": (0.0, 0.0, 3.0)}
LABELS = ("sports", "world", "business")
TEXTS = ["ball vote bank then now", "the ball and a bank vote here", "a vote on ball and bank once"]


def softmax(texts):
    """Probabilities of the labels: every known word adds its weights to their logits."""
    logits = np.array([np.sum([WEIGHTS.get(w, (0.0,) * 3) for w in t.split()] or [(0.0,) * 3], axis=0) for t in texts])
    exponents = np.exp(logits)
    return exponents / exponents.sum(axis=1, keepdims=True)


def run(function=softmax, **settings):
    data = ice.Records([{"text": text, "label": 0} for text in TEXTS])
    task = ice.Task(data=data, prompt="{text}", label_words={name: name for name in LABELS})
    usual = {"attributions": ["occlusion", "random"], "operators": ["delete"], "m": 5}
    return ice.evaluate(function, task, **usual | settings)


def vectors(found):
    """What occlusion says about each known word of the first text."""
    [row, *_] = found.folder.inputs(0)
    words = [row.fields["text"][span.start : span.end] for span in row.spans]
    return {word: row.attributions["occlusion"][words.index(word)] for word in WEIGHTS}


def test_the_score_is_the_difference_of_two_log_probabilities():
    scores = np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    assert log_odds(scores, 0, versus=2).tolist() == pytest.approx([np.log(0.5 / 0.2), np.log(0.1 / 0.8)])
    assert log_odds(scores, 0).tolist() == pytest.approx([0.0, np.log(0.1 / 0.9)])


def test_a_word_of_a_third_label_says_nothing_about_two_others():
    # Without a word its logit is 0, so the difference of the two log-probabilities falls by its weights alone.
    assert vectors(run(target="sports", versus="world")) == pytest.approx({"ball": 2.0, "vote": -1.5, "bank": 0.0})
    assert vectors(run(target="world", versus="sports")) == pytest.approx({"ball": -2.0, "vote": 1.5, "bank": 0.0})
    assert vectors(run(target="sports"))["bank"] < -1


def test_probabilities_are_those_of_the_two_labels_alone():
    found = run(target="sports", versus="world")
    line = next(each for each in found.folder.examples() if each.attribution == "occlusion")
    assert (line.target, line.predicted, line.gold) == (0, 2, 0)
    assert line.score_full == pytest.approx(np.exp(2.0) / (np.exp(2.0) + np.exp(1.5)))
    assert line.score_empty == pytest.approx(0.5)


def test_gradients_are_those_of_the_difference_of_two_logits():
    scores = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    odds = target_odds(torch.log_softmax(scores, dim=1), [0], [[0.0, np.inf, 0.0]])
    assert odds.item() == pytest.approx(-2.0)
    assert torch.autograd.grad(odds.sum(), scores)[0].tolist() == [pytest.approx([1.0, 0.0, -1.0])]


def test_the_contrast_is_in_headline_settings_and_identity(tmp_path):
    found = run(target="sports", versus="world", out=tmp_path / "run")
    manifest = found.folder.manifest()
    assert conclude(found.folder.summary(), manifest).sentence.startswith("Why sports rather than world: Occlusion is")
    assert (manifest.config.target, manifest.config.versus, manifest.config.versus_label) == ("sports", "world", 1)
    assert (manifest.identity["target"], manifest.identity["versus"]) == ("sports", "world")
    assert "versus" not in run().folder.manifest().identity, "runs of before keep their identity"
    with pytest.raises(ice.ConfigError, match="versus is 'world' there and 'business' here"):
        run(target="sports", versus="business", out=tmp_path / "run")
    assert conclude(run(target="world").folder.summary(), run(target="world").folder.manifest()).sentence.startswith(
        "Why world: "
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "sport"}, "target 'sport'; did you mean 'sports'? Expected: predicted, gold, or a label: sports"),
        ({"target": "sports", "versus": "wold"}, "versus 'wold'; did you mean 'world'? The labels of the task: sports"),
        ({"versus": "world"}, "--versus world needs another label to explain: --target LABEL, one of sports, business"),
        ({"target": "world", "versus": "world"}, "needs another label to explain"),
    ],
)
def test_a_contrast_of_labels_that_are_not_there_is_refused(settings, message):
    with pytest.raises(ice.ConfigError, match=re.escape(message)):
        run(**settings)
