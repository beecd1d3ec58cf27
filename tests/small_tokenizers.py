"""Small tokenizers of the kinds that models come with."""

import json
from typing import Any

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

WORDS = "the a film was good bad warm cold naïve café very Review : Sentiment negative positive"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level(**names: Any) -> Any:
    """As GPT-2 and SmolLM2 have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([WORDS] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{"eos_token": "<end>"} | names)


_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_JOINED = (
    "the film.\n",
    '"a good film."\n',
    '("very bad!")\n\n',
    "was it?\n:café\tcold,\n ",
    "Review:warm. \nSentiment:",
)


def joining(**names: Any) -> Any:
    """As Llama 3, Qwen2.5 and GPT-4 have: a mark and the line break after it are one token, as are `("` and `"a`."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([WORDS, *_JOINED] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{"eos_token": "<end>"} | names)


def sentence_piece(kind: str, **names: Any) -> Any:
    """As Llama 2, Gemma ("bpe") and XLM-R ("unigram") have: a mark for spaces, bytes for what is unknown."""
    bpe = kind == "bpe"
    tokenizer = Tokenizer(models.BPE() if bpe else models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if bpe else "always")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    train: Any = trainers.BpeTrainer if bpe else trainers.UnigramTrainer
    tokenizer.train_from_iterator([WORDS] * 3, train(vocab_size=120, show_progress=False))
    content = json.loads(tokenizer.to_str())
    model = content["model"]
    if bpe:
        model["vocab"] |= {piece: len(model["vocab"]) + place for place, piece in enumerate(["<unk>", *_BYTES])}
        model |= {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}
    else:
        model["vocab"] = [["<unk>", 0.0], *model["vocab"], *([piece, -20.0] for piece in _BYTES)]
        model |= {"unk_id": 0, "byte_fallback": True}
    built = Tokenizer.from_str(json.dumps(content))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=built, **{"unk_token": "<unk>", "eos_token": "</s>"} | names
    )


class SlowPieces(transformers.PreTrainedTokenizer):  # type: ignore[misc]
    """SentencePiece in Python: no positions. Long pieces first, bytes for what is unknown."""

    def __init__(self, **names: Any) -> None:
        known = ["<unk>", "<cls>", "<sep>", "</s>", *_BYTES, *("▁" + word for word in WORDS.split()), "▁", *"aeiou"]
        self._known = {piece: place for place, piece in enumerate(known)}
        super().__init__(**{"unk_token": "<unk>", "eos_token": "</s>"} | names)

    @property
    def vocab_size(self) -> int:
        return len(self._known)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._known)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        left, found = "▁" + text.replace(" ", "▁"), []
        while left:
            size = next((n for n in range(12, 0, -1) if left[:n] in self._known and left[0] != "<"), 0)
            found += [left[:size]] if size else [f"<0x{byte:02X}>" for byte in left[0].encode()]
            left = left[size or 1 :]
        return found

    def _convert_token_to_id(self, token: str) -> int:
        return self._known.get(token, 0)

    def _convert_id_to_token(self, index: int) -> str:
        return list(self._known)[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens).replace("▁", " ")


class SlowWords(SlowPieces):
    """Lower-case words in Python, with an unknown token: what it spells is lost."""

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return ["▁" + word if "▁" + word in self._known else "<unk>" for word in text.lower().split()]


class SlowRiddle(SlowPieces):
    """Tokens that spell nothing of the text."""

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return ["▁good"] * len(text.split())
