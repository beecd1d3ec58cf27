"""Models that cannot be packed, or not with a plain head: found out before a run, and scored right all the same."""

import threading

import numpy as np
import pytest
import torch
import transformers
from tests.helpers import byte_level
from tests.rows import join, ledger_rows

import ice_eval as ice
from ice_eval.encoding import encode, shared_prefix
from ice_eval.models.pretrained import wrap
from ice_eval.records import Inputs

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
LLAMA = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 256}
ODD = {
    "bloom": lambda v: transformers.BloomConfig(vocab_size=v, hidden_size=32, n_layer=2, n_head=4),
    "gpt_neo": lambda v: transformers.GPTNeoConfig(
        vocab_size=v, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        window_size=8, max_position_embeddings=256,
    ),
    "granite": lambda v: transformers.GraniteConfig(vocab_size=v, logits_scaling=8.0, **LLAMA),
    "mpt": lambda v: transformers.MptConfig(vocab_size=v, d_model=32, n_layers=2, n_heads=4, max_seq_len=256),
    "phimoe": lambda v: transformers.PhimoeConfig(
        vocab_size=v, sliding_window=8, num_local_experts=2, num_experts_per_tok=1, **LLAMA
    ),
    "deepseek_v3": lambda v: transformers.DeepseekV3Config(
        vocab_size=v, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
        topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12,
        first_k_dense_replace=2, max_position_embeddings=256,
    ),
}  # fmt: skip


def build(family, dtype=torch.float32):
    torch.manual_seed(0)
    tokenizer = byte_level()
    model = transformers.AutoModelForCausalLM.from_config(ODD[family](len(tokenizer) + 8), dtype=dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return wrap(model.requires_grad_(False), tokenizer)


def rows_of(model, task, n=6):
    items = [encode(model.codec, task, example) for example in task.examples()[:n]]
    return join(row for item in items for row in (item.full(), item.empty())), shared_prefix(items)


@pytest.mark.parametrize("family", ODD)
def test_odd_models_are_scored_as_one_row_at_a_time(reviews, family):
    model = build(family)
    labels = model.labels(reviews)
    rows, prefix = rows_of(model, reviews)
    model.check(rows.take(range(4)), labels, prefix=prefix)
    found = model.log_scores(rows, labels, prefix=prefix)
    np.testing.assert_allclose(found, model._plain_scores(rows, labels), atol=1e-4)


@pytest.mark.parametrize("family", ["bloom", "gpt_neo", "mpt"])
def test_half_precision_hides_no_attention_that_was_never_asked(reviews, family):
    model = build(family, torch.bfloat16)
    rows, prefix = rows_of(model, reviews, n=1)
    messages = model.check(rows, model.labels(reviews), prefix=prefix)
    assert model.pads
    assert len(messages) == 1


def test_a_window_that_only_the_mask_knows_is_not_packed(reviews):
    model = build("phimoe")
    task = ice.Task(data=ice.Records([{"text": "a film"}]), prompt="{text}", label_words=reviews.label_words)
    [item] = [encode(model.codec, task, example) for example in task.examples()]
    model.check(item.full(), model.labels(task), prefix=0)  # shorter than the window, so no score tells
    assert model.pads


def test_the_check_reaches_the_first_example_that_is_evaluated(reviews):
    texts = ["a", "b", "c", "a film with a slow start", "a warm room and good food"]
    task = ice.Task(
        data=ice.Records([{"text": text, "label": 0} for text in texts]),
        prompt=reviews.prompt,
        label_words=reviews.label_words,
    )
    model = build("granite")
    run = ice.evaluate(model, task, attributions=["random"], operators=["delete"], m=4, unit="word")
    labels = model.labels(task)
    for row in ledger_rows(run.folder):
        np.testing.assert_allclose(
            row.scores, model._plain_scores(Inputs.one(np.array(row.input_ids)), labels)[0], atol=1e-4
        )
    assert any("label head" in message for message in run.folder.manifest().messages)


def test_two_models_may_be_asked_at_once(tiny, reviews):
    models = [tiny("llama"), tiny("qwen2")]
    rows = [rows_of(model, reviews) for model in models]
    labels = [model.labels(reviews) for model in models]
    expected = [m.log_scores(*r[:1], lab, prefix=r[1]) for m, r, lab in zip(models, rows, labels, strict=True)]
    wrong = []

    def ask(index):
        for _ in range(15):
            scores = models[index].log_scores(rows[index][0], labels[index], prefix=rows[index][1])
            if np.abs(scores - expected[index]).max() > 1e-5:
                wrong.append(index)

    threads = [threading.Thread(target=ask, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
