"""Attention by layer and head, rolled out, and times its gradient."""

import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL, CLASSIFIERS
from transformers.models.llama import modeling_llama

import ice_eval
from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models.gradients import AttentionRecorder
from ice_eval.models.toy import Toy


def maps_of(model, task, *, gradients=False, target=1):
    item = encode(model.codec, task, task.examples()[0])
    return item, model.attention_maps(item, target, model.labels(task), gradients=gradients)


@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_maps_are_what_the_model_reports_itself(tiny, reviews, family):
    model = tiny(family)
    item, maps = maps_of(model, reviews)
    assert maps.gradients is None
    assert maps.position == (0 if family in CLASSIFIERS else len(item.ids) - 1)
    model.model.set_attn_implementation("eager")
    with torch.no_grad():
        layers = model.model(input_ids=torch.tensor(item.ids[None]), output_attentions=True).attentions
    np.testing.assert_allclose(maps.weights, torch.cat(layers).numpy(), atol=1e-6)


def test_gradients_say_how_the_log_odds_move_with_the_weights(tiny, reviews, monkeypatch):
    model = tiny("llama")
    labels = model.labels(reviews)
    item, maps = maps_of(model, reviews, gradients=True)
    inside, rng = modeling_llama.eager_attention_forward, np.random.default_rng(0)
    change = torch.tensor(rng.standard_normal(maps.weights.shape), dtype=torch.float32).tril()
    step = 1e-3

    def log_odds(size):
        def moved(module, query, key, value, *rest, **named):
            output, weights = inside(module, query, key, value, *rest, **named)
            heads = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
            return output + size * (change[module.layer_idx] @ heads).transpose(1, 2), weights

        monkeypatch.setattr(modeling_llama, "eager_attention_forward", moved)
        model.model.set_attn_implementation("eager")
        model._way = "plain"
        [scores] = model.log_scores(item.full(), labels)
        return scores[1] - scores[0]

    expected = float((maps.gradients * change.numpy()).sum())
    assert (log_odds(step) - log_odds(-step)) / (2 * step) == pytest.approx(expected, rel=0.02, abs=0.05)


def test_gradients_of_both_labels_are_opposite_and_those_of_long_labels_are_finite(tiny, reviews, long_labels):
    model = tiny("llama")
    one, other = (maps_of(model, reviews, gradients=True, target=target)[1].gradients for target in (0, 1))
    np.testing.assert_allclose(one, -other, atol=1e-5 * np.abs(one).max())
    item, maps = maps_of(model, long_labels, gradients=True)
    assert maps.weights.shape == maps.gradients.shape == (3, 4, len(item.ids), len(item.ids))
    np.testing.assert_allclose(maps.weights.sum(axis=-1), 1, atol=1e-5)
    assert np.isfinite(maps.gradients).all()
    assert np.abs(maps.gradients).max() > 0


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_layers_and_heads_are_picked_and_their_mean_is_the_attention(tiny, reviews, explained, family):
    model = tiny(family)
    _, whole = explained(model, reviews, "attention")
    layers = [explained(model, reviews, f"attention:layer={layer}")[1] for layer in range(3)]
    heads = [explained(model, reviews, f"attention:head={head}")[1] for head in range(4)]
    for index, values in enumerate(whole):
        np.testing.assert_allclose(np.mean([each[index] for each in layers], axis=0), values, atol=1e-6)
        np.testing.assert_allclose(np.mean([each[index] for each in heads], axis=0), values, atol=1e-6)
    item, maps = maps_of(model, reviews)
    _, [last, *_] = explained(model, reviews, "attention:layer=-1:head=2")
    np.testing.assert_allclose(last, item.per_unit(maps.weights[-1, 2, maps.position]), atol=1e-6)


def test_a_layer_or_head_that_the_model_lacks_is_refused(tiny, reviews, explained):
    with pytest.raises(ConfigError, match=r"layer = 3, and the model has 3 layers with attention: 0 … 2"):
        explained(tiny("llama"), reviews, "attention:layer=3")
    with pytest.raises(ConfigError, match=r"head = -5, and the model has 4 heads"):
        explained(tiny("bert"), reviews, "attention:head=-5")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_rollout_is_the_product_of_half_attention_and_half_identity(tiny, reviews, explained, family):
    model = tiny(family)
    item, maps = maps_of(model, reviews)
    product = np.eye(len(item.ids))
    for heads in maps.weights:
        product = (0.5 * heads.mean(axis=0) + 0.5 * np.eye(len(item.ids))) @ product
    np.testing.assert_allclose(product.sum(axis=1), 1, atol=1e-5)
    _, [values, *_] = explained(model, reviews, "attention-rollout")
    np.testing.assert_allclose(values, item.per_unit(product[maps.position]), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_attention_times_gradient_counts_what_speaks_for_the_label(tiny, reviews, explained, family):
    model = tiny(family)
    item, maps = maps_of(model, reviews, gradients=True)
    products = np.maximum(maps.weights * maps.gradients, 0)
    _, [values, *_] = explained(model, reviews, "attention-x-gradient")
    expected = item.per_unit(products[:, :, maps.position].mean(axis=(0, 1)))
    np.testing.assert_allclose(values, expected, atol=1e-5 * expected.max())
    assert (values >= 0).all()
    relevance = np.eye(len(item.ids))
    for heads in products:
        relevance = relevance + heads.mean(axis=0) @ relevance
    _, [values, *_] = explained(model, reviews, "attention-x-gradient:through=true")
    expected = item.per_unit(relevance[maps.position] - np.eye(len(item.ids))[maps.position])
    np.testing.assert_allclose(values, expected, atol=1e-5 * expected.max())


def test_of_the_toy_they_follow_its_weights(toy, sentiment_task, explained):
    task = sentiment_task(["a gorgeous but dull film"])
    for target, expected in ((1, [0, 2.5, 0, 0, 0]), (0, [0, 0, 0, 1, 0])):
        _, [values] = explained(toy, task, "attention-x-gradient", target=target)
        assert values.tolist() == expected
    assert explained(toy, task, "attention:layer=0")[1][0].tolist() == [0, 2.5, 0, 1, 0]
    assert explained(toy, task, "attention-rollout")[1][0].tolist() == [0, 1.25, 0, 0.5, 0]


@pytest.mark.parametrize("spec", ["attention:layer=0", "attention-rollout", "attention-x-gradient"])
def test_a_model_without_maps_is_refused_before_it_runs(sentiment_task, tmp_path, spec):
    class Averaging(Toy):
        offers = frozenset({"attentions"})

    message = f"the attribution '{spec}' needs attention_maps, .* Attributions that work with it: attention, .*random"
    with pytest.raises(CapabilityError, match=message):
        ice_eval.evaluate(Averaging(), sentiment_task(["a b c"]), attributions=spec, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_returns_no_weights_is_told_so(tiny, reviews, monkeypatch):
    model = tiny("gpt2")
    monkeypatch.setattr(AttentionRecorder, "_record", lambda *said: None)
    with pytest.raises(CapabilityError, match="returned no attention weights"):
        maps_of(model, reviews)
    assert not model.model.config.output_attentions
