"""Models with known truth, texts of their words, and attributions that approximate the truth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval.attributions import Attribution, Computed
from ice_eval.models import Model, load_model
from ice_eval.models.toy import BIAS, WEIGHTS, Toy
from ice_eval.rationales import set_size
from ice_eval.records import Encoded, PerUnit
from ice_eval.seeding import rng_for
from ice_eval.subjects.context import CitationTask
from ice_eval.tasks import Records, Task

PROMPT = "Review: {text}\nSentiment:"
LABEL_WORDS = {"negative": " negative", "positive": " positive"}
SHARE = 0.2
"""Share of units in a rationale, as in a default run."""
NEUTRAL: tuple[str, ...] = (
    "actor", "ballad", "camera", "chair", "city", "corner", "desk", "door", "evening", "film", "floor", "garden",
    "hall", "hour", "island", "kitchen", "ladder", "letter", "light", "lunch", "map", "market", "minute", "month",
    "mountain", "office", "paper", "pencil", "piano", "plot", "queue", "river", "road", "room", "scene", "script",
    "shop", "station", "street", "table", "ticket", "town", "train", "tree", "village", "wall", "window", "year",
)  # fmt: skip
"""Words that contribute nothing to any model."""
_LONG, _SHORT, _SHORT_RATE = (10, 20), (4, 9), 0.15
"""Numbers of words in a text. A rationale of a short one holds a single word, so that all sets are enumerated."""
_MARGIN = 0.3


@dataclass(frozen=True)
class KnownModel:
    """A model that ranks rows of equal length by the sum of the contributions of their words."""

    name: str
    model: Model
    decisive: Mapping[str, float]
    """Contributions of words to the second label."""
    fillers: Mapping[str, float]
    """Contributions of the words between decisive ones: little or nothing."""
    bias: float = 0.0
    sparse: float = 0.0
    """Share of texts with a single decisive word, so that many sets tie at the top and at the bottom."""
    unique: bool = False
    """True if the best set of a text, and the worst, never tie with another."""

    def task(self, n: int, *, seed: int, purpose: str) -> Task:
        """Return `n` texts of its words, without labels: infill may write words that contribute, and is noisy."""
        # Words for one side outweigh those for the other. Decisive ones are in the first half of a text, so that a
        # sampler that prefers some places is detected; there are enough of them to fill a rationale, or a single one.
        sides = [[word for word, value in self.decisive.items() if sign * value > 0] for sign in (1, -1)]
        every = {**self.decisive, **self.fillers}
        found, rng = list[str](), rng_for(seed, "selftest-texts", purpose)
        while len(found) < n:
            low, high = _SHORT if rng.random() < _SHORT_RATE else _LONG
            length, side = int(rng.integers(low, high + 1)), int(rng.integers(2))
            alone, size = rng.random() < self.sparse, set_size(length, SHARE)
            words = [rng.choice(sides[side])] if alone else []
            if not alone:
                supporting = rng.choice(sides[side], size + int(rng.integers(0, 2)), replace=False)
                words = [*supporting, *rng.choice(sides[1 - side], int(rng.integers(0, 2)), replace=False)]
            places = rng.permutation(max(length // 2, len(words)))[: len(words)]
            text = [str(word) for word in rng.choice(list(self.fillers), length, replace=False)]
            for place, word in zip(places, words, strict=True):
                text[place] = str(word)
            total = self.bias + sum(every[word] for word in text)
            if (total if side == 0 else -total) > _MARGIN:  # the side that was meant to win does so
                found.append(" ".join(text))
        rows = [{"id": f"{purpose}-{index}", "text": text} for index, text in enumerate(found)]
        return Task(data=Records(rows), prompt=PROMPT, label_words=LABEL_WORDS, name=f"selftest-{purpose}")

    def truth(self, item: Encoded) -> PerUnit:
        """Return the contribution of each unit to the label that the model predicts."""
        every = {**self.decisive, **self.fillers}
        values = np.array([every[text.strip()] for text in item.texts])
        return values if self.bias + values.sum() > 0 else -values

    def attribution(self, *, noise: float = 0.0, sign: float = 1.0, seed: int = 0) -> Attribution:
        """Return the truth, or its negation, with noise in standard deviations of the truth."""

        def function(item: Encoded) -> PerUnit:
            truth = sign * self.truth(item)
            draws = rng_for(seed, item.example_id, "selftest-noise", repr(noise)).standard_normal(item.n_units)
            disturbed: PerUnit = truth + noise * truth.std() * draws
            return disturbed

        return Computed(function=function)


def toy() -> KnownModel:
    return KnownModel("toy", Toy(), WEIGHTS, dict.fromkeys(NEUTRAL, 0.0), bias=BIAS, sparse=0.25)


# --- a transformer in which only planted tokens reach the output ---------------------------------------------------
#
#   embedding   [ contribution · padding to a fixed norm · 0 0 0 … ]      every token has the same norm
#   attention   queries and keys are 0: the same weight on every token; values read the contribution
#   residual    last token + mean contribution, in a place of its own
#   labels      + and - that place
#
# So the log-odds of the labels are a rising function of the sum of contributions over the number of tokens: sets of one
# size are ranked by their sum. It is a stock Llama of one layer with its weights set, and a tokenizer with whole words.

_SPECIAL = {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>", "eos_token": "<end>"}
_NORM, _GAIN, _WIDTH = 4.0, 10.0, 16
_CONTRIBUTION, _PADDING, _MEAN = 0, 1, 2
"""Indices in the residual stream."""


def planted() -> KnownModel:
    """Return the transformer, loaded as any pair of a model and its tokenizer; raise `ImportError` without torch."""
    decisive, faint = decisive_words(), faint_words()
    tokenizer = _tokenizer([*decisive, *faint, *NEUTRAL])
    transformer = _transformer(tokenizer, {**decisive, **faint})
    transformer.config._name_or_path = "planted"
    return KnownModel("planted", load_model((transformer, tokenizer)), decisive, faint, unique=True)


def decisive_words() -> dict[str, float]:
    """Return contributions between 0.5 and 2, all different, for either side."""
    return {f"planted{index}": value for index, value in enumerate(_spread(40, 0.5, 2.0))}


def faint_words() -> dict[str, float]:
    """Return contributions of at most 0.02, all different: too small to matter, large enough that sets do not tie."""
    return {f"faint{index}": value for index, value in enumerate(_spread(60, 0.002, 0.02))}


def _spread(n: int, low: float, high: float) -> list[float]:
    """Return different numbers between `low` and `high`, with alternating signs."""
    golden = (math.sqrt(5) - 1) / 2
    sizes = [low + (high - low) * math.fmod(golden * (index + 1), 1.0) for index in range(n)]
    return [size if index % 2 else -size for index, size in enumerate(sizes)]


def _tokenizer(words: Sequence[str]) -> Any:
    import tokenizers
    import transformers

    labels = [label.strip() for label in LABEL_WORDS.values()]
    known = [*_SPECIAL.values(), "Review", "Sentiment", ":", *labels, *words]
    vocabulary = {word: place for place, word in enumerate(known)}
    tokenizer: Any = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=_SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast: Any = transformers.PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, **_SPECIAL)


def _transformer(tokenizer: Any, contributions: Mapping[str, float]) -> Any:
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


_N_PASSAGES, _PASSAGE_WORDS, _CLAIM_WORDS = 24, 3, 10


def cited_answers(n: int, *, seed: int, planted: bool) -> CitationTask:
    """Return answers of one claim each, copied from a passage that it cites if `planted`, and cites at random if not.

    Passages share words with each other and with random claims, so that sets of them differ in what they preserve.
    """
    rng, rows = rng_for(seed, "selftest-citations", int(planted)), []
    for number in range(n):
        texts = [rng.choice(NEUTRAL, _PASSAGE_WORDS, replace=False).tolist() for _ in range(_N_PASSAGES)]
        cited, words = int(rng.integers(_N_PASSAGES)), rng.choice(NEUTRAL, _CLAIM_WORDS, replace=False).tolist()
        if planted:
            words = texts[cited] = [f"{word}{number}" for word in texts[cited]]
        passages = [f"{' '.join(text)}." for text in texts]
        said = f"Stated {' '.join(words)} [{cited + 1}]."
        rows.append({"id": f"a{number}", "question": "Why?", "passages": passages, "answer": said})
    return CitationTask(data=Records(rows), name="selftest-citations")
