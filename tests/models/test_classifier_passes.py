"""Sequence classifiers: few passes, masks that are ready, and one pass for attention and gradient."""

import numpy as np
import pytest
import torch
from tests.helpers import CLASSIFIERS
from tests.rows import each_row, join
from torch.utils._python_dispatch import TorchDispatchMode

from ice_eval.encoding import encode
from ice_eval.models import classifier, transformer

READY = ["bert", "distilbert", "roberta"]
BOTH = {"attentions", "gradients"}


def rows_of(model, task, n=8):
    return join(encode(model.codec, task, example).full() for example in task.examples()[:n])


def masks_seen(model, monkeypatch):
    """The attention masks that the model is given, one per pass."""
    seen, read = [], type(model)._arguments

    def noted(self, padded):
        given = read(self, padded)
        seen.append(given.get("attention_mask"))
        return given

    monkeypatch.setattr(type(model), "_arguments", noted)
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 5, 8, 13])
def test_a_ready_mask_hides_the_padding_and_is_aligned(length, dtype):
    lengths = torch.arange(1, length + 1)
    mask = (torch.arange(length) < lengths[:, None]).long()
    found = classifier._additive(mask, dtype)
    assert found.shape == (length, 1, 1, length) and found.dtype == dtype
    assert torch.equal(found[:, 0, 0] == 0, mask == 1)
    assert (found[:, 0, 0][mask == 0] == torch.finfo(dtype).min).all()
    assert found.stride(0) % 8 == 0 and found.stride(-1) == 1


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_a_batch_gives_the_scores_of_rows_that_are_alone(tiny, reviews, family):
    model, labels = tiny(family), tiny(family).labels(reviews)
    rows = rows_of(model, reviews)
    assert np.ptp(rows.lengths) > 0
    alone = np.concatenate([model.log_scores(row, labels) for row in each_row(rows)])
    np.testing.assert_allclose(model.log_scores(rows, labels), alone, atol=1e-5)
    assert model.check(rows, labels, prefix=0) == []


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_the_mask_is_ready_where_the_architecture_adds_it(tiny, reviews, family, monkeypatch):
    model = tiny(family)
    rows, labels = rows_of(model, reviews), model.labels(reviews)
    even = join([rows.take([0]), rows.take([0])])
    seen = masks_seen(model, monkeypatch)
    model.log_scores(rows, labels)
    model.log_scores(even, labels)
    kinds = [None if mask is None else mask.dim() for mask in seen]
    assert kinds == ([4, None] if family in READY else [2, 2])


@pytest.mark.parametrize("error", [None, TypeError("no such mask")])
def test_a_ready_mask_that_does_not_work_is_given_up(tiny, reviews, monkeypatch, error):
    model = tiny("bert")
    rows, labels = rows_of(model, reviews), model.labels(reviews)
    right = model._plain_scores(rows, labels)

    def wrong(mask, dtype):
        if error is not None:
            raise error
        return torch.zeros((len(mask), 1, 1, mask.shape[1]), dtype=dtype)

    monkeypatch.setattr(classifier, "_additive", wrong)
    [message] = model.check(rows, labels, prefix=0)
    assert ("scores differ" if error is None else "TypeError: no such mask") in message
    np.testing.assert_allclose(model.log_scores(rows, labels), right, atol=1e-5)
    assert model.check(rows, labels, prefix=0) == []


def test_a_batch_is_padded_and_copied_once(tiny, reviews, monkeypatch):
    model = tiny("bert")
    rows, labels, copied = rows_of(model, reviews), model.labels(reviews), []
    put = transformer.to_device

    def counted(array, device):
        copied.append(array.shape)
        return put(array, device)

    monkeypatch.setattr(transformer, "to_device", counted)
    model.log_scores(rows, labels)
    assert copied == [(3, len(rows), rows.lengths.max())]


def test_kernels_that_plan_for_every_shape_are_off_during_a_pass_alone(tiny, reviews, monkeypatch):
    model = tiny("bert")
    rows, labels, during = rows_of(model, reviews), model.labels(reviews), []
    model.model.bert.register_forward_pre_hook(lambda *_: during.append(torch.backends.cuda.cudnn_sdp_enabled()))
    before = torch.backends.cuda.cudnn_sdp_enabled()
    model.log_scores(rows, labels)
    assert during == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


@pytest.mark.parametrize("family", [*CLASSIFIERS, "lfm2"])
def test_attention_and_gradient_of_one_pass_are_those_of_two(tiny, reviews, family, monkeypatch):
    compare_passes(tiny(family), reviews, monkeypatch)


def test_labels_of_several_tokens_change_nothing_in_that(tiny, long_labels, monkeypatch):
    model = tiny("llama")
    model._way = "shared"
    compare_passes(model, long_labels, monkeypatch)


def compare_passes(model, task, monkeypatch):
    items = [encode(model.codec, task, example) for example in task.examples()[:5]]
    labels, targets = model.labels(task), [0, 1, 0, 1, 1]
    passes = []
    model.model.base_model.register_forward_pre_hook(lambda *_: passes.append(1))
    model.observe(items[:1], targets[:1], labels, BOTH)  # some models must be asked for their weights, once
    passes.clear()
    one = model.observe(items, targets, labels, BOTH)
    assert len(passes) == 1
    monkeypatch.setattr(transformer, "_KEPT_WEIGHTS", 0)
    two = model.observe(items, targets, labels, BOTH)
    assert len(passes) >= 3
    for index, item in enumerate(items):
        np.testing.assert_allclose(one.attentions[index], two.attentions[index], atol=1e-6)
        right = two.gradients[index].gradient
        np.testing.assert_allclose(one.gradients[index].gradient, right, atol=1e-4 * np.abs(right).max())
        np.testing.assert_array_equal(one.gradients[index].embedding, two.gradients[index].embedding)
        assert one.gradients[index].gradient.shape[0] == one.attentions[index].shape[0] == len(item.ids)
        assert one.gradients[index].gradient.dtype == one.attentions[index].dtype == np.float64


class ReadValues(TorchDispatchMode):
    """Notes operations that read a value of a tensor: on a GPU the host waits for it."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function.overloadpacket.__name__
        if name in {"_local_scalar_dense", "equal", "is_nonzero", "masked_select", "nonzero", "_unique2"}:
            self.found.append(name)
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("family", READY)
def test_the_host_reads_nothing_while_a_batch_is_sent(tiny, reviews, family):
    model = tiny(family)
    rows, labels = rows_of(model, reviews), model.labels(reviews)
    for batch in (rows, rows.take([0, 0])):
        with ReadValues() as sent:
            pending = model.submit(batch, labels)
        assert sent.found == []
        assert pending.collect().shape == (len(batch), 2)
    items = [encode(model.codec, reviews, example) for example in reviews.examples()[:4]]
    with ReadValues() as seen:
        model.observe(items, [0] * 4, labels, BOTH)
    assert seen.found == []


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_last_layer_is_computed_for_the_first_token_alone(tiny, reviews, family, monkeypatch):
    model = tiny(family)
    rows, labels, widths = rows_of(model, reviews), model.labels(reviews), []
    layers, longest = model.model.base_model.encoder.layer, int(rows.lengths.max())
    for layer in layers:
        layer.intermediate.register_forward_hook(lambda _, given, found: widths.append(given[0].shape[1]))
    np.testing.assert_allclose(model.log_scores(rows, labels), model._plain_scores(rows, labels), atol=1e-5)
    assert widths[: len(layers)] == [longest] * (len(layers) - 1) + [1] and widths[-1] > 1
    item = encode(model.codec, reviews, reviews.examples()[0])
    text = model.embedded(item, 1, labels)
    gradients = text.gradients(text.embedding[None] / 2)
    assert widths[-1] == 1
    monkeypatch.setattr(classifier, "_READS_FIRST", frozenset())
    np.testing.assert_allclose(text.gradients(text.embedding[None] / 2), gradients, atol=1e-5)
    assert widths[-1] == len(item.ids)
