"""Models that are built otherwise than most: what they offer is right, and what they cannot is refused."""

import numpy as np
import pytest
import torch
import transformers
from tests.helpers import byte_level, word_pieces

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.errors import CapabilityError
from ice_eval.models.pretrained import wrap

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
ODD = {
    "albert": lambda v: transformers.AlbertConfig(
        vocab_size=v, embedding_size=16, max_position_embeddings=64, **SMALL
    ),
    "bart": lambda v: transformers.BartConfig(
        vocab_size=v, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=0,
        bos_token_id=2, eos_token_id=3, decoder_start_token_id=3, forced_eos_token_id=3,
    ),
    "funnel": lambda v: transformers.FunnelConfig(
        vocab_size=v, d_model=32, n_head=4, d_head=8, d_inner=48, block_sizes=[1, 1]
    ),
    "longformer": lambda v: transformers.LongformerConfig(
        vocab_size=v, max_position_embeddings=66, attention_window=8, pad_token_id=0, **SMALL
    ),
    "squeezebert": lambda v: transformers.SqueezeBertConfig(
        vocab_size=v, embedding_size=32, q_groups=1, k_groups=1, v_groups=1, post_attention_groups=1,
        intermediate_groups=1, output_groups=1, **SMALL | {"intermediate_size": 64},
    ),
    "xlnet": lambda v: transformers.XLNetConfig(vocab_size=v, d_model=32, n_layer=2, n_head=4, d_inner=48),
}  # fmt: skip
CAUSAL = {
    "falcon": lambda v: transformers.FalconConfig(
        vocab_size=v, hidden_size=32, num_hidden_layers=2, num_attention_heads=4
    ),
    "mamba": lambda v: transformers.MambaConfig(vocab_size=v, hidden_size=32, num_hidden_layers=2, state_size=8),
}


def build(family, dtype=torch.float32):
    """A transformers model and its tokenizer."""
    torch.manual_seed(0)
    if family in CAUSAL:
        tokenizer = byte_level()
        model = transformers.AutoModelForCausalLM.from_config(CAUSAL[family](len(tokenizer) + 8), dtype=dtype)
        return model, tokenizer
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


@pytest.mark.parametrize(
    ("family", "name", "why"),
    [
        ("bart", "attention", "needs attentions"),
        ("falcon", "attention", "also read what comes after a token"),
        ("falcon", "attention-rollout", "also read what comes after a token"),
        ("funnel", "attention-rollout", "RuntimeError"),
        ("longformer", "gradient", "TypeError"),
        ("mamba", "attention", "returned no attention weights"),
        ("squeezebert", "attention:layer=0", "returned no attention weights"),
    ],
)
def test_what_a_model_does_not_show_is_refused_before_anything_is_written(reviews, tmp_path, family, name, why):
    model, tokenizer = build(family)
    settings = {"operators": ["delete"], "n": 3, "m": 2, "out": tmp_path / "run"}
    before = model.config.to_dict(), model.config._attn_implementation
    with pytest.raises(CapabilityError, match=f"'{name}'.*'{type(model).__name__}'") as caught:
        ice.evaluate((model, tokenizer), reviews, attributions=["random", name], **settings)
    message = str(caught.value)
    assert why in message
    assert "occlusion" in message and "\n" not in message
    assert not (tmp_path / "run").exists()
    assert (model.config.to_dict(), model.config._attn_implementation) == before
    assert not any(module._forward_hooks for module in model.modules())
