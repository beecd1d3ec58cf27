"""Scores of given texts: the mean log-probability of marked tokens, as a plain forward pass gives it."""

import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL
from tests.rows import join

import ice_eval as ice
from ice_eval.encoding import encode, shared_prefix
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models.causal import scored_tokens
from ice_eval.records import SCORED
from ice_eval.tasks import FileData, Records, Task

TEXTS = ["a warm film. it has a slow start.", "the plot is thin. the cast is good.", "a mess. no joke lands."]
ANSWERS = ["The start is slow.", "Good cast", "No joke lands in it"]


@pytest.fixture
def task():
    """Texts with an answer that a model wrote about each."""
    rows = [{"text": text, "answer": answer} for text, answer in zip(TEXTS, ANSWERS, strict=True)]
    return Task(data=Records(rows), prompt="Review: {text}\nSummary:", target_text="{answer}")


def by_hand(model, inputs, index):
    """Return the mean log-probability of the marked tokens of one row, one forward pass at a time."""
    ids = torch.tensor(inputs.row(index))[None]
    segments = inputs.segments[inputs.offsets[index] : inputs.offsets[index + 1]]
    with torch.no_grad():
        logs = torch.log_softmax(model.model(ids).logits[0].double(), dim=-1)
    return float(np.mean([logs[place - 1, ids[0, place]] for place in np.flatnonzero(segments == SCORED)]))


def rows_of(items):
    rng, rows = np.random.default_rng(0), []
    for item in items:
        rows += [item.full(), item.empty()]
        rows += [item.without(item.tokens_kept(rng.random((3, item.n_units)) < 0.5))]
    return join(rows)


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_every_way_of_scoring_equals_a_plain_forward_pass(tiny, task, family, unit):
    model = tiny(family)
    items = [encode(model.codec, task, example, unit=unit) for example in task.examples()]
    rows, labels = rows_of(items), model.text_labels("answer")
    expected = [by_hand(model, rows, index) for index in range(len(rows))]
    for way in ("packed", "shared", "plain") if model._way == "packed" else ("shared", "plain"):
        model._way = way
        for prefix in (0, shared_prefix(items)):
            np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix)[:, 0], expected, atol=1e-4)
    assert model.check(rows, labels, prefix=shared_prefix(items)) == [] or model._way != "packed"


def test_only_the_answer_is_scored_and_it_is_never_removed(tiny, task):
    model = tiny("llama")
    for example, answer in zip(task.examples(), ANSWERS, strict=True):
        item = encode(model.codec, task, example)
        assert model.codec.decode([item.ids[item.segments == SCORED]])[0].strip() == answer
        assert (item.unit_of[item.segments == SCORED] == -1).all()
        rows, positions, tokens = scored_tokens(item.empty())
        assert (rows == 0).all() and len(positions) == len(tokens) == (item.segments == SCORED).sum()


def test_a_prefix_that_reaches_the_answer_leaves_a_state_to_answer_from(tiny):
    model = tiny("gpt2")
    bare = Task(data=Records([{"text": "a b", "answer": "c d"}]), prompt="{text}", target_text="{answer}")
    item = encode(model.codec, bare, bare.examples()[0])
    rows = join([item.full()])
    found = model.log_scores(rows, model.text_labels("answer"), prefix=len(item.ids) - 1)
    assert found[0, 0] == pytest.approx(by_hand(model, rows, 0), abs=1e-4)


@pytest.mark.parametrize("way", ["packed", "shared"])
def test_attention_is_the_mean_over_the_positions_that_answer(tiny, task, way):
    model = tiny("llama")
    model._way = way
    items = [encode(model.codec, task, example) for example in task.examples()]
    found = model.observe(items, [0] * 3, model.text_labels("answer"), {"attentions"}).attentions
    model.model.set_attn_implementation("eager")
    for item, own in zip(items, found, strict=True):
        with torch.no_grad():
            layers = model.model(torch.tensor(item.ids)[None], output_attentions=True).attentions
        queries = np.flatnonzero(item.segments == SCORED) - 1
        expected = torch.stack([layer[0][:, queries].mean(dim=(0, 1)) for layer in layers]).mean(dim=0)
        np.testing.assert_allclose(own, expected.numpy(), atol=1e-5)


def test_gradients_are_those_of_the_mean_log_probability(tiny, task):
    model = tiny("llama")
    items = [encode(model.codec, task, example) for example in task.examples()]
    found = model.observe(items, [0] * 3, model.text_labels("answer"), {"gradients"}).gradients
    for item, own in zip(items, found, strict=True):
        ids = torch.tensor(item.ids)[None]
        embedded = model.model.get_input_embeddings()(ids).detach().requires_grad_(True)
        logs = torch.log_softmax(model.model(inputs_embeds=embedded).logits[0], dim=-1)
        places = np.flatnonzero(item.segments == SCORED)
        torch.stack([logs[place - 1, ids[0, place]] for place in places]).mean().backward()
        units = item.unit_of >= 0
        np.testing.assert_allclose(own.gradient[units], embedded.grad[0].numpy()[units], rtol=1e-3, atol=1e-4)


def test_a_run_explains_a_text_that_the_model_wrote(tiny, task):
    found = ice.evaluate(tiny("llama"), task, attributions=["occlusion", "gradient", "attention", "random"], m=5)
    assert found.folder.manifest().target_text == "{answer}"
    assert all(line.n == 3 and line.accuracy is None for line in found.folder.summary().configurations)


def test_one_text_may_be_given_for_all_examples(tiny, task):
    fixed = Task(data=task.data, prompt=task.prompt, target_text="A good film.")
    item = encode(tiny("llama").codec, fixed, fixed.examples()[0])
    assert tiny("llama").codec.decode([item.ids])[0].endswith("Summary: A good film.")


def test_what_makes_no_sense_is_refused(tiny, task, tmp_path):
    with pytest.raises(ConfigError, match="neither labels nor shots"):
        Task(data=task.data, prompt=task.prompt, target_text="x", label_words={"a": " a", "b": " b"})
    with pytest.raises(ConfigError, match="is empty"):
        Task(data=task.data, prompt=task.prompt, target_text=" ")
    with pytest.raises(ConfigError, match="are about labels"):
        ice.evaluate(tiny("llama"), task, scope="prompt", attributions="random")
    with pytest.raises(CapabilityError, match="gives no probability of a text"):
        ice.evaluate("toy", task, attributions="random")
    (tmp_path / "no.jsonl").write_text('{"text": "a b c"}\n')
    with pytest.raises(DataError, match="needs the field 'answer'"):
        ice.evaluate("toy", Task(data=FileData(tmp_path / "no.jsonl"), prompt="{text}", target_text="{answer}"))
