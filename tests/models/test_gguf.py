"""GGUF files: converted once, with what they say of the token that texts begin with."""

import json

import gguf
import numpy as np
import pytest
from tests.small_tokenizers import byte_level

from ice_eval.models import load_model

WIDTH, HEADS, INNER = 32, 2, 64


def write_llama(path, tokenizer, *, bos, add_bos):
    """A random Llama of one layer, as llama.cpp would write it."""
    pieces = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if piece in tokenizer.all_special_tokens else 1 for piece in pieces])
    writer.add_token_merges([" ".join(merge) for merge in merges_of(tokenizer)])
    writer.add_bos_token_id(tokenizer.convert_tokens_to_ids(bos))
    writer.add_eos_token_id(tokenizer.eos_token_id)
    if add_bos is not None:
        writer.add_add_bos_token(add_bos)
    rng = np.random.default_rng(0)
    for name, shape in shapes(len(pieces)).items():
        writer.add_tensor(name, rng.normal(size=shape, scale=0.3).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def merges_of(tokenizer):
    return json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]


def shapes(n_pieces):
    square, norm = (WIDTH, WIDTH), (WIDTH,)
    return {
        "token_embd.weight": (n_pieces, WIDTH), "output.weight": (n_pieces, WIDTH), "output_norm.weight": norm,
        "blk.0.attn_norm.weight": norm, "blk.0.ffn_norm.weight": norm, "blk.0.attn_q.weight": square,
        "blk.0.attn_k.weight": square, "blk.0.attn_v.weight": square, "blk.0.attn_output.weight": square,
        "blk.0.ffn_gate.weight": (INNER, WIDTH), "blk.0.ffn_up.weight": (INNER, WIDTH),
        "blk.0.ffn_down.weight": (WIDTH, INNER),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("bos", "add_bos", "expected"),
    [
        ("<|begin_of_text|>", True, True),
        ("<|begin_of_text|>", None, True),
        ("<|begin_of_text|>", False, False),
        ("<|im_start|>", True, True),
        ("<|im_start|>", None, False),
    ],
)
def test_a_gguf_begins_texts_as_it_says(tmp_path, monkeypatch, bos, add_bos, expected):
    monkeypatch.setenv("ICE_CACHE", str(tmp_path / "cache"))
    tokenizer = byte_level(bos_token=bos)
    write_llama(tmp_path / "tiny.gguf", tokenizer, bos=bos, add_bos=add_bos)
    for _ in range(2):  # converted, then from the cache
        codec = load_model(str(tmp_path / "tiny.gguf"), device="cpu").codec
        tokens = codec.tokenize("the film")
        assert tokens.ids.tolist().count(tokenizer.bos_token_id) == expected
        assert codec.decode([tokens.ids[tokens.sequence >= 0]]) == ["the film"]
