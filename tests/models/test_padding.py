"""Scores do not depend on the side on which a tokenizer pads, nor on its having a padding token."""

import numpy as np
import pytest
import torch
import transformers
from tests.rows import join
from tests.small_tokenizers import byte_level

from ice_eval.encoding import encode
from ice_eval.models.pretrained import wrap
from ice_eval.records import Inputs
from ice_eval.tasks import Records, adhoc_task

TASK = adhoc_task(
    Records([{"text": text} for text in ("the film was good!", "a very cold café", "bad", "warm warm warm!")]),
    prompt="{text}",
    labels=["negative", "positive"],
)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
CONFIGS = {
    "llama": lambda v: transformers.LlamaConfig(vocab_size=v, num_key_value_heads=2, **SMALL),
    "gpt2": lambda v: transformers.GPT2Config(vocab_size=v, n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "opt": lambda v: transformers.OPTConfig(
        vocab_size=v, hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48
    ),
    "bert": lambda v: transformers.BertConfig(vocab_size=v, **SMALL),
}


def build(family, kind, *, pad=None):
    torch.manual_seed(0)
    config = CONFIGS[family](400)
    config.pad_token_id = pad
    if kind == "classifier":
        config.num_labels, config.id2label = 2, {0: "negative", 1: "positive"}
        model = transformers.AutoModelForSequenceClassification.from_config(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return model.eval()


def rows_of(model):
    return [encode(model.codec, TASK, example).full() for example in TASK.examples()]


def plain(model, rows, labels, *, causal):
    """One row at a time through the untouched model, as it comes."""
    scores = []
    for row in rows:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(row.ids[None])).logits[0]
        chosen = (logits[-1] if causal else logits)[[ids[0] for ids in labels.ids]].double().numpy()
        scores.append(chosen - np.logaddexp.reduce(chosen))
    return np.stack(scores)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("pad", [None, "<pad>"])
@pytest.mark.parametrize(
    ("family", "kind"),
    [("llama", "lm"), ("opt", "lm"), ("bert", "classifier"), ("llama", "classifier"), ("gpt2", "classifier"),
     ("opt", "classifier")],
)  # fmt: skip
def test_every_row_of_a_batch_is_that_of_a_plain_forward(family, kind, pad, side):
    inner = build(family, kind, pad=0 if family == "bert" else None)
    model = wrap(inner, byte_level(padding_side=side, **({"pad_token": pad} if pad else {})))
    labels, rows = model.labels(TASK), rows_of(model)
    expected = plain(inner, rows, labels, causal=kind == "lm")
    assert np.ptp(expected[:, 0]) > 0.05
    np.testing.assert_allclose(model.log_scores(join(rows), labels), expected, atol=2e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2", "opt"])
def test_a_classifier_with_another_padding_token_than_its_tokenizer_reads_the_right_place(family):
    tokenizer = byte_level(pad_token="<pad>")
    mark = tokenizer.convert_tokens_to_ids("!")
    inner = build(family, "classifier", pad=mark)  # texts may end in it, and the model then reads the token before
    model = wrap(inner, tokenizer)
    labels, rows = model.labels(TASK), rows_of(model)
    assert rows[0].ids[-1] == mark
    rows.append(Inputs.one(np.array([mark, mark])))
    expected = plain(inner, rows, labels, causal=False)
    np.testing.assert_allclose(model.log_scores(join(rows), labels), expected, atol=2e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_gradients_and_attention_of_a_causal_classifier_do_not_see_the_padding(family):
    model = wrap(build(family, "classifier"), byte_level())
    items = [encode(model.codec, TASK, example) for example in TASK.examples()]
    labels = model.labels(TASK)
    needs = {"attentions", "gradients"}
    together = model.observe(items, [0] * len(items), labels, needs)
    for index, item in enumerate(items):
        alone = model.observe([item], [0], labels, needs)
        slope = together.gradients[index].gradient
        np.testing.assert_allclose(slope, alone.gradients[0].gradient, rtol=1e-2, atol=1e-3)
        assert np.abs(slope).max() > 1
        np.testing.assert_allclose(together.attentions[index], alone.attentions[0], atol=1e-6)


def test_wrapping_a_model_leaves_its_configuration_alone():
    inner = build("gpt2", "classifier")
    wrap(inner, byte_level())
    assert inner.config.pad_token_id is None
