import copy

import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL, CLASSIFIERS

from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError
from ice_eval.models import load_model
from ice_eval.models.gradients import AttentionRecorder
from ice_eval.models.pretrained import wrap


def attentions(model, items, task):
    return model.observe(items, [0] * len(items), model.labels(task), {"attentions"}).attentions


def gradients(model, items, targets, labels):
    return model.observe(items, targets, labels, {"gradients"}).gradients


def items_of(model, task, n=4):
    return [encode(model.codec, task, example) for example in task.examples()[:n]]


@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_attention_is_the_mean_over_layers_and_heads_from_the_scoring_position(tiny, reviews, family):
    model = tiny(family)
    items = items_of(model, reviews)
    found = attentions(model, items, reviews)
    model.model.set_attn_implementation("eager")
    position = 0 if family in CLASSIFIERS else -1
    for item, weights in zip(items, found, strict=True):
        with torch.no_grad():
            layers = model.model(input_ids=torch.tensor(item.ids[None]), output_attentions=True).attentions
        expected = torch.stack(layers)[:, 0, :, position].mean(dim=(0, 1)).numpy()
        np.testing.assert_allclose(weights, expected, atol=1e-6)
        assert weights.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("family", CAUSAL + CLASSIFIERS)
def test_gradient_agrees_with_finite_differences(tiny, reviews, family):
    model = tiny(family)
    model.model.double()
    labels = model.labels(reviews)
    items = items_of(model, reviews, n=3)
    targets = [0, 1, 1]
    found = gradients(model, items, targets, labels)
    for item, target, pair in zip(items, targets, found, strict=True):
        _assert_slope(model, pair, item, target, labels)


def _assert_slope(model, pair, item, target, labels):
    """The gradient predicts the change of the log-odds along a random direction."""
    direction = np.random.default_rng(0).standard_normal(pair.embedding.shape)
    direction[: item.content.start] = 0  # what all examples begin with gets no gradient
    step = 1e-4
    up, down = (_log_odds(model, pair.embedding + sign * step * direction, item, target, labels) for sign in (1, -1))
    # The label head is computed in float32, which limits how far a small difference can be resolved.
    assert (up - down) / (2 * step) == pytest.approx(float((pair.gradient * direction).sum()), rel=0.01, abs=0.01)


def _log_odds(model, embedding, item, target, labels):
    batch = item.full()
    with torch.no_grad():
        states, padded = torch.tensor(embedding)[None], model.padded(batch)
        scores = model._differentiable_scores(states, batch, padded, labels)[0].double()
    return float(scores[target] - scores[1 - target])


def test_gradient_of_long_labels_reaches_every_token_of_the_prompt(tiny, long_labels):
    model = tiny("llama")
    model.model.double()
    labels = model.labels(long_labels)
    item = encode(model.codec, long_labels, long_labels.examples()[0])
    [pair] = gradients(model, [item], [1], labels)
    assert pair.gradient.shape == (len(item.ids), 32)
    start = item.content.start
    assert np.abs(pair.gradient[start:]).sum(axis=1).min() > 0
    assert start > 0
    assert not pair.gradient[:start].any()
    _assert_slope(model, pair, item, 1, labels)


@pytest.mark.parametrize("family", ["llama", "lfm2", "bert"])
def test_gradients_inside_inference_mode_are_those_outside(tiny_folder, reviews, family):
    def looked():
        model = load_model(str(tiny_folder(family)), device="cpu")
        model.model.requires_grad_(True)
        [item], labels = items_of(model, reviews, n=1), model.labels(reviews)
        embedded = model.embedded(item, 1, labels)
        return [
            gradients(model, [item], [1], labels)[0].gradient,
            model.attention_maps(item, 1, labels, gradients=True).gradients,
            embedded.gradients(embedded.embedding[None]),
        ]

    outside = looked()
    with torch.inference_mode():
        inside = looked()
    for one, other in zip(inside, outside, strict=True):
        np.testing.assert_array_equal(one, other)


def test_batches_do_not_change_gradients_or_attentions(tiny, reviews):
    model = tiny("llama")
    labels, items = model.labels(reviews), items_of(model, reviews, n=6)
    together, targets = gradients(model, items, [0] * 6, labels), attentions(model, items, reviews)
    for index, item in enumerate(items):
        alone = gradients(model, [item], [0], labels)[0].gradient
        np.testing.assert_allclose(together[index].gradient, alone, atol=1e-4 * np.abs(alone).max())
        np.testing.assert_allclose(targets[index], attentions(model, [item], reviews)[0], atol=1e-6)


def test_hooks_are_gone_and_the_kernel_is_back_even_after_an_exception(tiny, reviews):
    model = tiny("llama")
    items = items_of(model, reviews, n=1)
    before = model.model.config._attn_implementation

    def n_hooks():
        return sum(len(module._forward_hooks) for module in model.model.modules())

    attentions(model, items, reviews)
    assert n_hooks() == 0
    handle = model.model.model.layers[1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        attentions(model, items, reviews)
    handle.remove()
    assert n_hooks() == 0
    assert model.model.config._attn_implementation == before != "eager"


def test_a_model_that_returns_no_weights_is_told_so(tiny):
    model = tiny("gpt2")
    with (
        pytest.raises(CapabilityError, match="returned no attention weights"),
        AttentionRecorder(model.model, torch.zeros(1), causal=True, names=None) as recorder,
    ):
        recorder.mean()


def test_the_callers_gradients_are_not_touched(tiny, reviews):
    owned = tiny("llama")
    mine = copy.deepcopy(owned.model).requires_grad_(True)
    wrapped = wrap(mine, owned.codec.tokenizer)
    gradients(wrapped, items_of(wrapped, reviews), [0] * 4, wrapped.labels(reviews))
    assert all(parameter.grad is None for parameter in mine.parameters())
    assert all(parameter.requires_grad for parameter in mine.parameters())
