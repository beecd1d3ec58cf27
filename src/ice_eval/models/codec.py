"""The tokenizers of transformers as a `Codec`."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError, DataError
from ice_eval.records import Ids, SpecialIds
from ice_eval.subjects.alignment import Spans, align, are_plausible

_QUESTION, _BOS = "\ue000question\ue000", "\ue000bos\ue000"
"""Placeholders of the last user turn and of the BOS token in a chat template; no template and no text has them."""
_ALWAYS_BOS = "gemma"  # families whose texts always begin with BOS, also in a chat
_USUALLY_BOS = frozenset(
    {
        "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "jamba", "lfm2", "lfm2_moe", "llama", "llama4",
        "llama4_text", "minicpm", "ministral", "mistral", "mistral3", "mixtral",
    }
)  # fmt: skip
"""Families whose texts begin with BOS if they have a token of that name and nothing else is configured."""
_BOS_NAMES = frozenset({"s", "bos", "bostoken", "beginoftext", "beginofsentence", "startoftext"})
"""Names of tokens that only mark a beginning, without brackets: <s>, [BOS], <|begin_of_text|>."""


class HFCodec:
    """A tokenizer, with special tokens by the model's own convention and positions that were checked."""

    # Reported positions are compared with what the tokens spell, and replaced where they cannot be right. Tokenizers
    # that report none (those in Python) are aligned with the text the same way. A language model gets the BOS token it
    # was trained with even if its tokenizer omits it (see `missing_bos`), and gets it once: a chat template may write
    # it too. Sequence classifiers get what their tokenizer adds.

    def __init__(
        self,
        tokenizer: Any,
        *,
        reads_pairs: bool,
        max_tokens: int,
        family: str = "",
        n_ids: int | None = None,
        knows_mask: bool = False,
    ) -> None:
        self.tokenizer, self.reads_pairs, self.max_tokens = tokenizer, reads_pairs, max_tokens
        self._family = family
        self._n_ids = n_ids  # number of embeddings of the model; None: there is one for every id
        self.special = SpecialIds(
            unk=tokenizer.unk_token_id,
            pad=tokenizer.pad_token_id,
            # A causal model never predicted masked words, though its tokenizer may name a mask token.
            mask=tokenizer.mask_token_id if knows_mask else None,
            end=tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id,
            start=tokenizer.bos_token_id,
            every=frozenset(tokenizer.all_special_ids),
        )

    @property
    def notes(self) -> list[str]:
        if self._why_bos is None:
            return []
        token = self.tokenizer.bos_token
        return [f"the tokenizer adds no {token} before a text; ICE adds it, because {self._why_bos}."]

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        """Return ids and positions; a `framed` text of a language model gets the beginning that it lacks."""
        texts = [text] if pair is None else [text, pair]
        raw = self._raw(texts, framed=framed)
        if self._n_ids is not None and raw.ids.max(initial=0) >= self._n_ids:
            piece = raw.pieces[int(raw.ids.argmax())]
            raise DataError(f"the model has {self._n_ids:,} embeddings, and none for the token {piece!r} of this text.")
        start, end = np.zeros_like(raw.ids), np.zeros_like(raw.ids)
        for index, each in enumerate(texts):
            own = np.flatnonzero(raw.sequence == index)
            reported = None if raw.spans is None else Spans(raw.spans.start[own], raw.spans.end[own])
            start[own], end[own] = self._positions(each, [raw.pieces[i] for i in own.tolist()], reported)
        if self.reads_pairs:
            return Tokens(raw.ids, raw.segments, raw.sequence, start, end)
        # A language model answers after its last token: an end-of-text token there would end the text instead.
        content = np.flatnonzero(raw.sequence >= 0)
        stop = int(content[-1]) + 1 if content.size else len(self._own_beginning)
        missing = np.array(self._missing_beginning(text, framed=framed), dtype=np.int64)
        none = np.zeros_like(missing)
        before, rest = (missing, none, none - 1, none, none), (raw.ids, raw.segments, raw.sequence, start, end)
        return Tokens(*(np.concatenate([first, own[:stop]]) for first, own in zip(before, rest, strict=True)))

    def _missing_beginning(self, text: str, *, framed: bool) -> tuple[int, ...]:
        if not framed:
            return self._beginning if self._why_bos is not None else ()
        if self._why_bos is None and _ALWAYS_BOS not in self._family:
            return ()  # a chat template that writes no BOS means it, even where plain texts get one
        written = "".join(self.tokenizer.convert_ids_to_tokens(list(self._beginning)))
        return () if text.lstrip().startswith(written) else self._beginning

    @functools.cached_property
    def _own_beginning(self) -> tuple[int, ...]:
        """Special tokens that the tokenizer itself puts before every text."""
        raw = self._raw(["a"], framed=False)
        return tuple(int(i) for i in raw.ids[: int(np.argmax(raw.sequence >= 0))])

    @functools.cached_property
    def _why_bos(self) -> str | None:
        """Reason why the BOS token must be added; None if it need not be."""
        bos = self.tokenizer.bos_token_id
        if self.reads_pairs or self._own_beginning or bos is None or (self._n_ids is not None and bos >= self._n_ids):
            return None
        return missing_bos(self.tokenizer, family=self._family)

    @property
    def _beginning(self) -> tuple[int, ...]:
        return self._own_beginning if self._why_bos is None else (int(self.tokenizer.bos_token_id),)

    def _raw(self, texts: Sequence[str], *, framed: bool) -> "_RawTokens":
        if not self.tokenizer.is_fast:
            return self._raw_by_slow(texts, framed=framed)
        try:
            found = self._called(texts, framed=framed, return_offsets_mapping=True)
        except Exception as exc:  # a vocabulary may lack what it needs: each library has an error of its own
            raise DataError(f"the tokenizer cannot read the text {texts[-1]!r:.60}: {_reason(exc)}.") from exc
        offsets = np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        sequence = np.array([-1 if s is None else s for s in found.sequence_ids(0)], dtype=np.int64)
        return _RawTokens.of(found, sequence, found.tokens(0), Spans(offsets[:, 0], offsets[:, 1]))

    def _raw_by_slow(self, texts: Sequence[str], *, framed: bool) -> "_RawTokens":
        """Tokenize with a Python tokenizer, which reports neither positions nor which text a token comes from."""
        try:
            found = self._called(texts, framed=framed, return_special_tokens_mask=True)
            pieces = [self.tokenizer.tokenize(text, split_special_tokens=not framed) for text in texts]
            ids = [self.tokenizer.convert_tokens_to_ids(part) for part in pieces]
        except Exception as exc:
            raise ConfigError(f"{type(self.tokenizer).__name__} cannot be used: {_reason(exc)}.") from exc
        own = np.flatnonzero(np.array(found["special_tokens_mask"]) == 0)
        if [found["input_ids"][i] for i in own.tolist()] != [i for part in ids for i in part]:
            fault = "does not tell which tokens it adds to a text; a fast tokenizer does."
            raise ConfigError(f"{type(self.tokenizer).__name__} {fault}")
        sequence = np.full(len(found["input_ids"]), -1, dtype=np.int64)
        sequence[own] = np.repeat(np.arange(len(texts)), [len(part) for part in pieces])
        spelled = np.full(len(sequence), "", dtype=object)
        spelled[own] = [piece for part in pieces for piece in part]
        return _RawTokens.of(found, sequence, spelled.tolist(), None)

    def _called(self, texts: Sequence[str], *, framed: bool, **wanted: bool) -> Any:
        options = {"add_special_tokens": not framed, "split_special_tokens": not framed, **wanted}
        return self.tokenizer(*texts, truncation=False, verbose=False, **options)

    def _positions(self, text: str, pieces: Sequence[str], reported: Spans | None) -> Spans:
        """Return the characters behind each piece: as reported, if that can be right."""
        if reported is not None and are_plausible(text, reported, pieces):
            return reported
        unknown = self.tokenizer.unk_token
        found = align(text, [None if piece == unknown else piece for piece in pieces])
        if found is None:
            raise DataError(
                f"the tokenizer ({type(self.tokenizer).__name__}) reports {'no' if reported is None else 'wrong'} "
                f"positions for its tokens, and they cannot be found in the text by what they spell: {text[:60]!r}."
            )
        return found

    def writes_special(self, text: str) -> bool:
        return any(token in text for token in self.tokenizer.all_special_tokens)

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        if not self.has_chat:
            raise ConfigError("this model has no chat template; leave out --chat.")
        text = self.chat_text([*turns, ("user", _QUESTION)])
        if text.count(_QUESTION) != 1:
            raise ConfigError("the chat template does not show the user's turn just once, so it cannot be explained.")
        before, _, after = text.partition(_QUESTION)
        return before, after

    @property
    def has_chat(self) -> bool:
        return not self.reads_pairs and bool(self.tokenizer.chat_template)

    def chat_text(self, turns: Sequence[tuple[str, str]]) -> str:
        """Return turns (role and text) as text by the chat template, up to where the next answer begins.

        A last turn of the assistant is begun, not ended: the answer goes on with it.
        """
        begun = turns[-1][1] if turns and turns[-1][0] == "assistant" else ""
        messages = [{"role": role, "content": content} for role, content in (turns[:-1] if begun else turns)]
        try:
            return f"{self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)}{begun}"
        except Exception as exc:  # a template is a program: it may also divide by 0 or add a number to a text
            raise ConfigError(f"the chat template refuses these turns: {_reason(exc)}.") from exc

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        """Return the text of each row of ids; a row may begin inside a word, and the mark for that is no text."""
        options = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
        texts = (self.tokenizer.decode(row.tolist(), **options) for row in rows)
        return [text.removeprefix(self._inside_word) for text in texts]

    @functools.cached_property
    def _inside_word(self) -> str:
        """WordPiece's mark of a token that continues a word."""
        decoder: Any = getattr(getattr(self.tokenizer, "backend_tokenizer", None), "decoder", None)
        return str(decoder.prefix) if type(decoder).__name__ == "WordPiece" else ""


class _RawTokens(NamedTuple):
    """Tokens of a text or two, with positions as the tokenizer reports them."""

    ids: Ids
    segments: Ids
    sequence: Ids
    pieces: Sequence[str]  # the tokens as the vocabulary writes them
    spans: Spans | None

    @classmethod
    def of(cls, found: Any, sequence: Ids, pieces: Sequence[str], spans: Spans | None) -> "_RawTokens":
        ids = np.array(found["input_ids"], dtype=np.int64)
        segments = np.array(found.get("token_type_ids", np.zeros(len(ids))), dtype=np.int64)
        return cls(ids, segments, sequence, pieces, spans)


def missing_bos(tokenizer: Any, *, family: str) -> str | None:
    """Return why texts need the BOS token of a tokenizer that adds no special token in front; None if they do not."""
    # Models trained with BOS answer garbage without it, and not every file records it: conversions drop it, and some
    # tokenizers leave it to the chat template. Texts need it if
    # - the tokenizer's configuration sets `add_bos_token` but the tokenizer ignores it,
    # - the family always begins with it (Gemma),
    # - the chat template writes `bos_token` first; one that spells out the same token (SmolLM2) does not count,
    # - the family usually begins with it (Llama, Mistral, …), the configuration does not set it, and the token is named
    #   as a beginning and is not the end token too.
    token = tokenizer.bos_token
    if token is None:
        return None
    asked = tokenizer.init_kwargs.get("add_bos_token")
    if asked:
        return "its configuration asks for it"
    if _ALWAYS_BOS in family:
        return f"texts of {family} models always begin with it"
    if _template_begins_with_bos(tokenizer):
        return "its chat template begins with it"
    is_beginning = "".join(c for c in token.casefold() if c.isalpha()) in _BOS_NAMES
    if asked is None and family in _USUALLY_BOS and is_beginning and token != tokenizer.eos_token:
        return f"texts of {family} models usually begin with it"
    return None


def _template_begins_with_bos(tokenizer: Any) -> bool:
    if not tokenizer.chat_template:
        return False
    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": "x"}], add_generation_prompt=True, tokenize=False, bos_token=_BOS
        )
    except Exception:  # a template is a program: its errors on a harmless turn are reported when it is really used
        return False
    return str(text).lstrip().startswith(_BOS)


def _reason(exc: Exception) -> str:
    """Return the first line of an error without its full stop, or its type where it says nothing."""
    return str(exc).strip().partition("\n")[0].rstrip(".") or type(exc).__name__
