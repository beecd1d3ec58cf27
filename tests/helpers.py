"""Tiny random transformers, built from configurations and saved like any other model."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from ice_eval.tasks import load_task

_SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
_LLAMA = {**_SMALL, "num_key_value_heads": 2, "max_position_embeddings": 256}
_CAUSAL = {
    "gemma3": lambda v: transformers.Gemma3TextConfig(vocab_size=v, head_dim=8, sliding_window=16, **_LLAMA),
    "gpt2": lambda v: transformers.GPT2Config(vocab_size=v, n_embd=32, n_layer=3, n_head=4, n_positions=256),
    "lfm2": lambda v: transformers.Lfm2Config(
        vocab_size=v, full_attn_idxs=[1], layer_types=["conv", "full_attention", "conv"], **_LLAMA
    ),
    "llama": lambda v: transformers.LlamaConfig(vocab_size=v, **_LLAMA),
    "mistral": lambda v: transformers.MistralConfig(vocab_size=v, sliding_window=16, **_LLAMA),
    "opt": lambda v: transformers.OPTConfig(
        vocab_size=v, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, ffn_dim=48,
        max_position_embeddings=256, word_embed_proj_dim=32,
    ),
    "phi": lambda v: transformers.PhiConfig(vocab_size=v, max_position_embeddings=256, **_SMALL),
    "qwen2": lambda v: transformers.Qwen2Config(vocab_size=v, **_LLAMA),
}  # fmt: skip
_CLASSIFIERS = {
    "bert": lambda v: transformers.BertConfig(vocab_size=v, max_position_embeddings=64, **_SMALL),
    "deberta-v2": lambda v: transformers.DebertaV2Config(
        vocab_size=v, max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"],
        type_vocab_size=0, **_SMALL,
    ),
    "distilbert": lambda v: transformers.DistilBertConfig(
        vocab_size=v, dim=32, n_layers=3, n_heads=4, hidden_dim=48, max_position_embeddings=64
    ),
    "modernbert": lambda v: transformers.ModernBertConfig(
        vocab_size=v, max_position_embeddings=64, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2,
        sep_token_id=3, **_SMALL,
    ),
    "roberta": lambda v: transformers.RobertaConfig(
        vocab_size=v, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1, **_SMALL
    ),
}  # fmt: skip
_WIDE = {
    "distilbert": lambda v: transformers.DistilBertConfig(
        vocab_size=v, dim=128, n_layers=2, n_heads=4, hidden_dim=256, max_position_embeddings=64
    ),
    "llama": lambda v: transformers.LlamaConfig(
        vocab_size=v, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
        max_position_embeddings=256,
    ),
}  # fmt: skip
_SPARE = 8
"""Rows of the embedding beyond the vocabulary: some tokenizers add tokens of their family when they are loaded."""
CAUSAL, CLASSIFIERS = sorted(_CAUSAL), sorted(_CLASSIFIERS)


def _texts() -> list[str]:
    return [example.fields["text"] for example in load_task("demo").examples()]


def byte_level() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<end>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([*_texts(), "Sentiment: negative positive very good very bad"], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def _pieces(special: list[str], size: int) -> dict[str, int]:
    """A vocabulary of characters and of the most frequent words; that of a trainer is another one in every process."""
    words = [word for text in _texts() for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)]
    letters, counts = sorted({letter for word in words for letter in word}), Counter(words)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    known = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *frequent])
    return {piece: index for index, piece in enumerate(list(known)[:size])}


def word_pieces() -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(_pieces(special, 500), unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )


def save_tiny(folder: Path, family: str) -> None:
    """Write a tiny model of a family and its tokenizer into a folder."""
    _save(folder, (_CAUSAL | _CLASSIFIERS)[family], scale=4)


def save_wide(folder: Path, family: str) -> None:
    """Write a model that is wide enough for blocks of quantised weights, and calm enough to have slopes that last."""
    _save(folder, _WIDE[family], scale=2)


def _save(folder: Path, config_for: Callable[[int], Any], *, scale: int) -> None:
    torch.manual_seed(0)
    if config_for in (*_CLASSIFIERS.values(), _WIDE["distilbert"]):
        tokenizer = word_pieces()
        config = config_for(len(tokenizer) + _SPARE)
        config.id2label, config.label2id = {0: "negative", 1: "positive"}, {"negative": 0, "positive": 1}
        model = transformers.AutoModelForSequenceClassification.from_config(config)
    else:
        tokenizer = byte_level()
        model = transformers.AutoModelForCausalLM.from_config(config_for(len(tokenizer) + _SPARE))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)  # random initial weights are so small that every input gets the same answer
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
