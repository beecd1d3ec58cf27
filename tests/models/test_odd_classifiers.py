"""Classifiers that are built otherwise than BERT: what they offer is right, and what they cannot is refused."""

import numpy as np
import torch
import transformers
from tests.helpers import word_pieces

from ice_eval.encoding import encode
from ice_eval.models._hf_load import wrap

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
ODD = {
    "albert": lambda v: transformers.AlbertConfig(
        vocab_size=v, embedding_size=16, max_position_embeddings=64, **SMALL
    ),
    "xlnet": lambda v: transformers.XLNetConfig(vocab_size=v, d_model=32, n_layer=2, n_head=4, d_inner=48),
}  # fmt: skip


def build(family, dtype=torch.float32):
    """A transformers model and its tokenizer."""
    torch.manual_seed(0)
    tokenizer = word_pieces()
    config = ODD[family](len(tokenizer) + 8)
    config.id2label, config.label2id = {0: "negative", 1: "positive"}, {"negative": 0, "positive": 1}
    model = transformers.AutoModelForSequenceClassification.from_config(config, dtype=dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model, tokenizer


def test_layers_that_share_their_weights_all_count(reviews):
    model = wrap(*build("albert"))
    items = [encode(model.codec, reviews, example) for example in reviews.examples()[:2]]
    found = model.observe(items, [0, 0], model.labels(reviews), {"attentions"}).attentions
    model.model.set_attn_implementation("eager")
    for item, weights in zip(items, found, strict=True):
        with torch.no_grad():
            layers = model.model(input_ids=torch.tensor(item.ids[None]), output_attentions=True).attentions
        expected = torch.stack(layers)[:, 0, :, 0].mean(dim=(0, 1)).numpy()
        np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_a_model_without_positions_has_no_window(reviews):
    model = wrap(*build("xlnet"))
    assert model.model.config.max_position_embeddings == -1
    item = encode(model.codec, reviews, reviews.examples()[0])
    assert not item.truncated and item.n_units > 1
