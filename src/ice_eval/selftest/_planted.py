"""A transformer built so that only planted tokens reach the output.

```text
embedding   [ contribution · padding to a fixed norm · 0 0 0 … ]      every token has the same norm
attention   queries and keys are 0: the same weight on every token; values read the contribution
residual    last token + mean contribution, in a place of its own
labels      + and - that place
```

So the log-odds of the labels are a rising function of the sum of contributions over the number of tokens: sets of one
size are ranked by their sum. It is a stock Llama of one layer with its weights set, and a tokenizer with whole words.
"""

import math
from typing import Any

from ice_eval.models import load_model
from ice_eval.selftest._known import LABEL_WORDS, KnownModel
from ice_eval.selftest._texts import NEUTRAL

_SPECIAL = ("<unk>", "<pad>", "<mask>", "<end>")
_NORM = 4.0
_GAIN = 10.0
_WIDTH = 16
_CONTRIBUTION, _PADDING, _MEAN = 0, 1, 2
"""Places in the residual stream."""


def decisive_words() -> dict[str, float]:
    """Contributions between 0.5 and 2, all different, for either side."""
    return {f"planted{index}": value for index, value in enumerate(_spread(40, 0.5, 2.0))}


def faint_words() -> dict[str, float]:
    """Contributions of at most 0.02, all different: too small to matter, large enough that sets do not tie."""
    return {f"faint{index}": value for index, value in enumerate(_spread(60, 0.002, 0.02))}


def _spread(n: int, low: float, high: float) -> list[float]:
    """Different numbers between `low` and `high`, with alternating signs."""
    golden = (math.sqrt(5) - 1) / 2
    sizes = [low + (high - low) * math.fmod(golden * (index + 1), 1.0) for index in range(n)]
    return [size if index % 2 else -size for index, size in enumerate(sizes)]


def planted() -> KnownModel:
    """The transformer, loaded as any pair of a model and its tokenizer is.

    Raises:
        ImportError: torch, transformers or tokenizers is not installed.
    """
    decisive, faint = decisive_words(), faint_words()
    tokenizer = _tokenizer([*decisive, *faint, *NEUTRAL])
    transformer = _transformer(tokenizer, {**decisive, **faint})
    transformer.config._name_or_path = "planted"
    return KnownModel("planted", load_model((transformer, tokenizer)), decisive, faint, unique=True)


def _tokenizer(words: list[str]) -> Any:
    import tokenizers
    import transformers

    known = [*_SPECIAL, "Review", "Sentiment", ":", *(label.strip() for label in LABEL_WORDS.values()), *words]
    places = {word: place for place, word in enumerate(known)}
    tokenizer: Any = tokenizers.Tokenizer(tokenizers.models.WordLevel(places, unk_token=_SPECIAL[0]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    names = zip(("unk_token", "pad_token", "mask_token", "eos_token"), _SPECIAL, strict=True)
    fast: Any = transformers.PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, **dict(names))


def _transformer(tokenizer: Any, contributions: dict[str, float]) -> Any:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=_WIDTH, intermediate_size=_WIDTH, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=256, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=None,
    )  # fmt: skip
    llama: Any = transformers.LlamaForCausalLM
    model = llama(config).requires_grad_(False).eval()
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if "norm" in name else 0.0)
    attention, words, head = model.model.layers[0].self_attn, model.model.embed_tokens.weight, model.lm_head.weight
    words[:, _PADDING] = _NORM
    for word, value in contributions.items():
        index = tokenizer.convert_tokens_to_ids(word)
        words[index, _CONTRIBUTION], words[index, _PADDING] = value, math.sqrt(_NORM**2 - value**2)
    attention.v_proj.weight[0, _CONTRIBUTION] = 1.0
    attention.o_proj.weight[_MEAN, 0] = 1.0
    for label, sign in zip(LABEL_WORDS.values(), (-1.0, 1.0), strict=True):
        head[tokenizer.convert_tokens_to_ids(label.strip()), _MEAN] = sign * _GAIN
    return model
