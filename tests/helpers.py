"""Tiny random transformers, built from configurations and saved like any other model."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from ice_eval.tasks import load_task

_SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
_CAUSAL = {
    "gpt2": lambda v: transformers.GPT2Config(vocab_size=v, n_embd=32, n_layer=3, n_head=4, n_positions=256),
    "llama": lambda v: transformers.LlamaConfig(
        vocab_size=v, num_key_value_heads=2, max_position_embeddings=256, **_SMALL
    ),
    "mistral": lambda v: transformers.MistralConfig(
        vocab_size=v, num_key_value_heads=2, sliding_window=16, max_position_embeddings=256, **_SMALL
    ),
}
_CLASSIFIERS = {
    "bert": lambda v: transformers.BertConfig(vocab_size=v, max_position_embeddings=64, **_SMALL),
}
CAUSAL, CLASSIFIERS = sorted(_CAUSAL), sorted(_CLASSIFIERS)


def _texts() -> list[str]:
    return [example.fields["text"] for example in load_task("demo").examples()]


def _byte_level() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<end>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([*_texts(), "Sentiment: negative positive very good very bad"], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def _word_pieces() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(_texts(), trainers.WordPieceTrainer(vocab_size=500, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )


def save_tiny(folder: Path, family: str) -> None:
    """Write a tiny model of a family and its tokenizer into a folder."""
    torch.manual_seed(0)
    if family in _CAUSAL:
        tokenizer = _byte_level()
        model = transformers.AutoModelForCausalLM.from_config(_CAUSAL[family](len(tokenizer)))
    else:
        tokenizer = _word_pieces()
        config = _CLASSIFIERS[family](len(tokenizer))
        config.id2label, config.label2id = {0: "negative", 1: "positive"}, {"negative": 0, "positive": 1}
        model = transformers.AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)  # random initial weights are so small that every input gets the same answer
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
