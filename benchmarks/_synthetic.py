"""Models of real size with random weights, and texts for them: nothing to download."""

import platform
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import ice_eval as ice
from ice_eval.models import load_model
from ice_eval.models.pretrained import wrap

_RANDOM = "random:"
_WORDS = 20_000
_TEMPLATE = "Review: {text}\nSentiment:"
_LABELS = ("negative", "positive")
_CONFIGS: dict[str, dict[str, Any]] = {
    "qwen2-7b": {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
                 "num_key_value_heads": 4, "vocab_size": 152_064, "max_position_embeddings": 32_768},
    "qwen2-tiny": {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "vocab_size": 32_000, "max_position_embeddings": 8192},
}  # fmt: skip
_CLASSIFIERS: dict[str, dict[str, Any]] = {
    "bert-base": {},  # the defaults of BertConfig
    "bert-tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
}


def model_of(name: str, *, device: str, dtype: str | None = None) -> Any:
    """A model as `ice run` names it; `random:qwen2-7b` and `random:bert-base` have random weights.

    Without `dtype`, random weights are bfloat16 on a GPU and float32 elsewhere.
    """
    if not is_random(name):
        return load_model(name, device=device, dtype=dtype or "auto")
    chosen = dtype or ("bfloat16" if device.startswith("cuda") else "float32")
    return _random_model(name.removeprefix(_RANDOM), device=device, dtype=getattr(torch, chosen))


def is_random(name: str) -> bool:
    """Return True if a model has random weights, and reads numbered words alone."""
    return name.startswith(_RANDOM)


def device_name(model: Any) -> str:
    """The GPU, or the processor."""
    if model.device.startswith("cuda"):
        return torch.cuda.get_device_name()
    return platform.processor() or platform.machine()


def _random_model(name: str, *, device: str, dtype: torch.dtype) -> Any:
    """A Qwen2 or BERT of a known size with random weights, and a tokenizer that knows numbered words."""
    torch.manual_seed(0)
    with torch.device(device):
        if name in _CLASSIFIERS:
            classes = dict(enumerate(_LABELS))
            bert = transformers.BertConfig(**_CLASSIFIERS[name], id2label=classes, pad_token_id=0)
            model = transformers.AutoModelForSequenceClassification.from_config(bert, dtype=dtype)
        else:
            qwen = transformers.Qwen2Config(**_CONFIGS[name], tie_word_embeddings=False)
            model = transformers.AutoModelForCausalLM.from_config(qwen, dtype=dtype)
    tokenizer = _framing_tokenizer() if name in _CLASSIFIERS else _tokenizer()
    return wrap(model.requires_grad_(False), tokenizer, name=f"random:{name}")


def _framing_tokenizer() -> Any:
    """Numbered words between [CLS] and [SEP]."""
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    special["mask_token"] = "[MASK]"
    places = {word: place for place, word in enumerate([*special.values(), *(f"w{i}" for i in range(_WORDS))])}
    tokenizer = Tokenizer(models.WordLevel(places, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, places[name]) for name in ("[CLS]", "[SEP]")],
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special)


def _tokenizer() -> Any:
    words = ["<unk>", "<end>", "Review", ":", "Sentiment", "negative", "positive", *(f"w{i}" for i in range(_WORDS))]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>", model_max_length=8192
    )


def random_task(n: int, *, tokens: int | None = None, seed: int = 0, bare: bool = False) -> ice.Task:
    """Texts of random words: of `tokens` tokens each, or as long as the sentences of SST-2.

    `bare` texts, for classifiers, have no words of a prompt around them.
    """
    rng = np.random.default_rng(seed)
    lengths = np.full(n, tokens) if tokens else np.clip(rng.gamma(4.5, 5.3, n), 4, 60).astype(int)
    rows = [
        {"text": " ".join(f"w{i}" for i in rng.integers(0, _WORDS, length)), "label": int(rng.integers(2))}
        for length in lengths
    ]
    words = {label: f" {label}" for label in _LABELS}
    prompt = "{text}" if bare else _TEMPLATE
    return ice.Task(data=ice.Records(rows), prompt=prompt, label_words=words, name="random-words")
