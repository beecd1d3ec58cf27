import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL
from tests.rows import each_row, join

import ice_eval as ice
from ice_eval.encoding import encode, shared_prefix
from ice_eval.errors import ConfigError
from ice_eval.models import Labels
from ice_eval.models.causal import CausalLM, _with_labels
from ice_eval.operators import operators
from ice_eval.records import Inputs
from ice_eval.tasks import Records, adhoc_task


def rows_of(model, task, n=5):
    """Full, empty and half-deleted inputs of a few examples, and their shared prefix."""
    items = [encode(model.codec, task, example) for example in task.examples()[:n]]
    delete, rng = operators.get("delete")(), np.random.default_rng(0)
    rows = [row for item in items for row in (item.full(), item.empty())]
    for item in items:
        rows.append(delete.build(item, rng.random((3, item.n_units)) < 0.5, fills=item.ids[:0]))
    return join(rows), shared_prefix(items)


def plain(model, row, labels):
    """Log-probabilities of the labels by the chain rule, one forward per label, nothing shared."""
    scores = []
    for ids in labels.ids:
        used = ids if labels.scoring == "full" else ids[:1]
        sequence = torch.tensor([[*row.ids.tolist(), *used]])
        with torch.no_grad():
            logits = model.model(input_ids=sequence).logits[0].double()
        steps = torch.log_softmax(logits, dim=-1)[len(row.ids) - 1 : -1]
        scores.append(sum(float(step[token]) for step, token in zip(steps, used, strict=True)))
    scores = np.array(scores)
    return scores - np.logaddexp.reduce(scores)


@pytest.mark.parametrize("family", CAUSAL)
def test_shared_prefix_and_batches_give_the_scores_of_a_plain_forward(tiny, reviews, family):
    model = tiny(family)
    labels = model.labels(reviews)
    rows, prefix = rows_of(model, reviews)
    assert prefix > 20  # the shots
    expected = np.stack([plain(model, row, labels) for row in each_row(rows)])
    assert np.ptp(expected[:, 0]) > 0.1  # or agreement would mean nothing
    np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), expected, atol=2e-5)
    np.testing.assert_allclose(model.log_scores(rows, labels), expected, atol=2e-5)
    assert model.check(rows.take(range(6)), labels, prefix=prefix) == []


@pytest.mark.parametrize("family", CAUSAL)
def test_chain_rule_sums_the_tokens_of_a_label(tiny, long_labels, family):
    model = tiny(family)
    labels = model.labels(long_labels)
    assert labels.scoring == "full"
    item = encode(model.codec, long_labels, long_labels.examples()[0])
    rows = join([item.full(), item.empty()])
    expected = np.stack([plain(model, row, labels) for row in each_row(rows)])
    for prefix in (0, shared_prefix([item])):
        np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), expected, atol=2e-5)


def test_forcing_the_first_token_is_refused_where_it_does_not_decide(tiny, long_labels):
    with pytest.raises(ConfigError, match="do not differ in their first token; use --label-scoring full"):
        tiny("llama").labels(long_labels, scoring="first")


def test_full_scoring_can_be_forced(tiny, reviews):
    model = tiny("gpt2")
    labels = model.labels(reviews, scoring="full")
    rows, prefix = rows_of(model, reviews, n=1)
    expected = np.stack([plain(model, row, labels) for row in each_row(rows)])
    np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), expected, atol=2e-5)


def test_a_prefix_that_disagrees_is_given_up_with_a_message(tiny, reviews, monkeypatch):
    model = tiny("llama")
    labels = model.labels(reviews)
    rows, prefix = rows_of(model, reviews)
    right = model.log_scores(rows, labels)
    expand = CausalLM._expanded
    monkeypatch.setattr(CausalLM, "_expanded", lambda self, ids, n: expand(self, ids[::-1].copy(), n))
    packed = CausalLM._prefix
    monkeypatch.setattr(CausalLM, "_prefix", lambda self, ids: packed(self, ids[::-1].copy()))
    assert np.abs(model.log_scores(rows, labels, prefix=prefix) - right).max() > 1e-2
    [message] = model.check(rows.take(range(4)), labels, prefix=prefix)
    assert "prefixes are not shared" in message
    np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), right, atol=2e-5)


def test_a_head_that_is_not_a_plain_matrix_falls_back_to_the_models_own_logits(tiny, reviews):
    model = tiny("gpt2")
    labels = model.labels(reviews)
    rows, prefix = rows_of(model, reviews)
    model.model.lm_head.register_forward_hook(lambda _, __, logits: 0.5 * torch.tanh(logits))
    expected = np.stack([plain(model, row, labels) for row in each_row(rows)])
    [message] = model.check(rows.take(range(4)), labels, prefix=prefix)
    assert "the model's own are used" in message
    np.testing.assert_allclose(model.log_scores(rows, labels, prefix=prefix), expected, atol=2e-5)


def test_the_cached_prefix_is_not_changed_by_its_use(tiny, reviews):
    model = tiny("mistral")
    labels = model.labels(reviews)
    rows, prefix = rows_of(model, reviews)
    first = model.log_scores(rows, labels, prefix=prefix)
    model.log_scores(rows.take(range(len(rows))[::-1]), labels, prefix=prefix)
    np.testing.assert_array_equal(model.log_scores(rows, labels, prefix=prefix), first)


def test_an_end_of_text_token_after_the_prompt_is_left_out(tiny, reviews):
    codec = tiny("llama").codec
    assert codec.tokenize("Review: fine").ids[-1] != codec.tokenizer.eos_token_id


def test_a_row_that_is_all_prefix_is_still_answered(tiny, reviews):
    model = tiny("llama")
    labels = model.labels(reviews)
    row = Inputs.one(np.arange(5))
    np.testing.assert_allclose(model.log_scores(row, labels, prefix=5), model.log_scores(row, labels), atol=2e-5)


def test_special_tokens_that_a_prompt_writes_out_are_special(tiny):
    model = tiny("llama")
    codec, end = model.codec, model.codec.tokenizer.eos_token
    data = Records([{"text": f"a {end} film"}])
    plain = adhoc_task(data, prompt="{text} is", labels=["good", "bad"])
    framed = adhoc_task(data, prompt=f"{end}{{text}} is", labels=["good", "bad"])
    assert codec.tokenizer.eos_token_id not in encode(codec, plain, plain.examples()[0]).ids
    assert encode(codec, framed, framed.examples()[0]).ids[0] == codec.tokenizer.eos_token_id


def test_a_prompt_that_is_nothing_but_the_text_has_an_empty_input_all_the_same(tiny):
    model = tiny("gpt2")
    data = Records([{"text": "a film with a warm start", "label": 0}, {"text": "the room is cold", "label": 1}])
    task = adhoc_task(data, prompt="{text}", labels=["good", "bad"])
    run = ice.evaluate(model, task, attributions=["gradient"], m=3)
    assert run.summary()["n"].tolist() == [2, 2, 2]


def test_a_changed_row_of_weights_changes_the_fingerprint(tiny):
    model = tiny("gpt2")
    before = model.fingerprint
    with torch.no_grad():
        model.model.get_output_embeddings().weight[37] += 1e-3
    assert model.fingerprint != before


def test_every_row_is_followed_by_every_label_but_for_its_last_token():
    rows = join([Inputs.one(np.array([1, 2]), np.array([0, 1])), Inputs.one(np.array([3]))])
    labels = Labels(("a", "b", "c"), ((7,), (8, 9, 6), (5, 4)), scoring="full")
    found = each_row(_with_labels(rows, labels))
    assert [row.ids.tolist() for row in found] == [[1, 2], [1, 2, 8, 9], [1, 2, 5], [3], [3, 8, 9], [3, 5]]
    assert [row.segments.tolist() for row in found] == [[0, 1], [0, 1, 0, 0], [0, 1, 0], [0], [0, 0, 0], [0, 0]]


@pytest.mark.parametrize("chosen", ["reviews", "long_labels"])
def test_label_mass_is_the_share_of_the_vocabulary_that_the_labels_hold(tiny, request, chosen):
    model, task = tiny("llama"), request.getfixturevalue(chosen)
    labels, (rows, _) = model.labels(task), rows_of(model, task, n=1)
    assert labels.scoring == {"reviews": "first", "long_labels": "full"}[chosen]
    expected = []
    for row in each_row(rows):
        expected.append(0.0)
        for ids in labels.ids:
            used = ids if labels.scoring == "full" else ids[:1]
            with torch.no_grad():
                logits = model.model(input_ids=torch.tensor([[*row.ids.tolist(), *used]])).logits[0].double()
            steps = torch.log_softmax(logits, dim=-1)[len(row.ids) - 1 : -1]
            expected[-1] += np.exp(sum(float(step[token]) for step, token in zip(steps, used, strict=True)))
    np.testing.assert_allclose(model.label_mass(rows, labels), expected, rtol=1e-4)
