"""Rows as a tree of tokens: every row is spelt by its path, and the model answers as if it were alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers import CAUSAL
from tests.rows import join

from ice_eval.encoding import encode, shared_prefix
from ice_eval.models import packed
from ice_eval.models.packed import Packing
from ice_eval.records import Inputs

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=12)
PACKED = [family for family in CAUSAL if family != "lfm2"]


def flat(rows):
    return join(Inputs.one(np.array(row, dtype=np.int64)) for row in rows)


@given(ROWS)
def test_the_path_of_a_row_spells_it_and_every_beginning_is_there_once(rows):
    packing = Packing.of(flat(rows))
    for index, row in enumerate(rows):
        nodes = packing.path[index, : len(row)]
        assert packing.ids[nodes].tolist() == row
        assert packing.depth[nodes].tolist() == list(range(len(row)))
        assert (packing.path[index, len(row) :] == nodes[-1]).all()
    beginnings = {tuple(row[: stop + 1]) for row in rows for stop in range(len(row))}
    assert len(packing.ids) == len(beginnings)


@given(ROWS)
def test_every_node_stands_at_its_place_in_one_of_its_rows(rows):
    packing = Packing.of(flat(rows))
    assert np.array_equal(packing.path[packing.row, packing.depth], np.arange(len(packing.ids)))


@given(ROWS, st.data())
def test_rows_of_different_groups_share_nothing(rows, data):
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))))
    packing = Packing.of(flat(rows), groups=groups)
    owners = {}
    for index, row in enumerate(rows):
        for node in packing.path[index, : len(row)]:
            assert owners.setdefault(int(node), groups[index]) == groups[index]
    beginnings = {(g, *row[: stop + 1]) for row, g in zip(rows, groups, strict=True) for stop in range(len(row))}
    assert len(packing.ids) == len(beginnings)


def rows_of(model, task, n=5):
    items = [encode(model.codec, task, example) for example in task.examples()[:n]]
    rng = np.random.default_rng(0)
    rows = [item.full() for item in items] + [items[0].empty()]
    for item in items:
        for _ in range(6):
            rows.append(item.without(item.tokens_kept(rng.random((1, item.n_units)) < 0.4)))
    return join(rows), shared_prefix(items)


@pytest.mark.parametrize("family", PACKED)
@pytest.mark.parametrize("share", [True, False])
def test_packed_rows_are_answered_as_if_alone(tiny, reviews, family, share):
    model = tiny(family)
    rows, prefix = rows_of(model, reviews)
    assert not model.pads
    labels = model.labels(reviews)
    together = model.submit(rows, labels, prefix=prefix if share else 0)
    np.testing.assert_allclose(together.collect(), model._plain_scores(rows, labels), atol=2e-5)
    assert together.tokens < len(rows.ids) - (prefix if share else 0) * len(rows)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3"])
def test_a_prefix_that_is_read_in_parts_gives_what_one_softmax_gives(tiny, reviews, family, monkeypatch):
    model = tiny(family)
    rows, prefix = rows_of(model, reviews)
    labels = model.labels(reviews)
    in_parts = model.log_scores(rows, labels, prefix=prefix)
    monkeypatch.setattr(packed, "_SPLIT_UP_TO", 0)
    np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), in_parts, atol=1e-5)


def test_long_labels_add_only_their_own_tokens(tiny, long_labels):
    model = tiny("llama")
    item = encode(model.codec, long_labels, long_labels.examples()[0])
    labels = model.labels(long_labels)
    pending = model.submit(item.full(), labels, prefix=0)
    shared = len(item.ids) + len({ids[: n + 1] for ids in labels.ids for n in range(len(ids) - 1)})
    assert pending.tokens == shared
    np.testing.assert_allclose(pending.collect(), model._plain_scores(item.full(), labels), atol=2e-5)


def test_convolutions_are_not_packed(tiny):
    assert tiny("lfm2").pads


def test_attention_that_reads_both_ways_is_not_packed(tiny, reviews):
    model = tiny("llama")
    rows, prefix = rows_of(model, reviews)
    for layer in model.model.model.layers:
        layer.self_attn.is_causal = False
    with pytest.raises(packed.NotPackableError, match="both directions"):
        model.log_scores(rows, model.labels(reviews), prefix=prefix)


def test_a_model_that_packs_wrongly_is_found_out(tiny, reviews, monkeypatch):
    model = tiny("llama")
    rows, prefix = rows_of(model, reviews)
    labels = model.labels(reviews)
    right = packed.PackedPass.arguments
    monkeypatch.setattr(packed.PackedPass, "arguments", lambda self: {"position_ids": right(self)["position_ids"] // 2})
    [message] = model.check(rows, labels, prefix=prefix)
    assert "rows cannot be packed, so they are padded (slower)" in message
    assert model.pads  # it now pads, after a prefix that is shared all the same
    np.testing.assert_allclose(
        model.log_scores(rows, labels, prefix=prefix), model._plain_scores(rows, labels), atol=2e-5
    )


@pytest.mark.parametrize("scoring", ["first", "full"])
def test_attention_and_gradient_of_one_pass_are_those_of_two(tiny, reviews, long_labels, scoring):
    model = tiny("qwen2")
    task = reviews if scoring == "first" else long_labels
    items = [encode(model.codec, task, example) for example in task.examples()[:4]]
    labels, targets = model.labels(task), [0] * len(items)
    assert labels.scoring == scoring
    both = model.observe(items, targets, labels, {"attentions", "gradients"})
    model._way = "shared"  # padded, with the eager kernel's weights and the gradient of all tokens
    for index, item in enumerate(items):
        alone = model.observe([item], targets[:1], labels, {"attentions", "gradients"})
        start = item.content.start
        np.testing.assert_allclose(both.attentions[index], alone.attentions[0], atol=1e-6)
        slope = alone.gradients[0].gradient[start:]
        np.testing.assert_allclose(both.gradients[index].gradient[start:], slope, atol=1e-4 * np.abs(slope).max())
        np.testing.assert_allclose(both.gradients[index].embedding, alone.gradients[0].embedding, atol=1e-6)


def test_long_inputs_forget_their_states_and_give_the_same_gradient(tiny, reviews, monkeypatch):
    model = tiny("llama")
    item = encode(model.codec, reviews, reviews.examples()[0])
    labels = model.labels(reviews)
    kept = model.observe([item], [1], labels, {"gradients"}).gradients[0].gradient
    passes = []
    model.model.model.layers[0].mlp.register_forward_pre_hook(lambda *_: passes.append(1))
    monkeypatch.setattr("ice_eval.models.gradients._MIN_CHECKPOINTED_TOKENS", 1)
    again = model.observe([item], [1], labels, {"gradients"}).gradients[0].gradient
    np.testing.assert_allclose(again, kept, atol=1e-5 * np.abs(kept).max())
    assert len(passes) == 2  # forward, and forward again when the gradient comes by
    assert all("forward" not in vars(layer) for layer in model.model.model.layers)


def test_memory_that_does_not_reach_for_a_look_is_survived(tiny, reviews, monkeypatch):
    model = tiny("llama")
    items = [encode(model.codec, reviews, example) for example in reviews.examples()[:5]]
    labels, seen = model.labels(reviews), []
    whole = model.observe(items, [0] * 5, labels, {"attentions"}).attentions
    observe = type(model)._observe

    def short_of_memory(self, batch, targets, labels, needs):
        seen.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("too large")
        return observe(self, batch, targets, labels, needs)

    monkeypatch.setattr(type(model), "_observe", short_of_memory)
    parts = model.observe(items, [0] * 5, labels, {"attentions"}).attentions
    assert seen == [5, 2, 3, 1, 2]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
