"""The tokenizers of transformers as a `Codec`."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2
import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError, DataError
from ice_eval.models._alignment import Spans, align, are_plausible
from ice_eval.records import Ids, SpecialIds

_QUESTION = "\ue000question\ue000"
"""Stands for the last user turn while its frame is looked for; no template and no text holds it."""


class HFCodec:
    """A tokenizer, with special tokens as it adds them itself and positions that were checked.

    Positions that a tokenizer reports are compared with what its tokens spell, and replaced where they cannot be right.
    Tokenizers that report none (those in Python) are aligned with the text the same way.
    """

    def __init__(self, tokenizer: Any, *, reads_pairs: bool, max_tokens: int) -> None:
        self.tokenizer = tokenizer
        self.reads_pairs = reads_pairs
        self.max_tokens = max_tokens
        self.special = SpecialIds(
            unk=tokenizer.unk_token_id,
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            end=tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id,
            every=frozenset(tokenizer.all_special_ids),
        )

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        tokens = self._read([text] if pair is None else [text, pair], framed=framed)
        if self.reads_pairs:
            return tokens
        # A language model answers after its last token: an end-of-text token there would end the text instead.
        content = np.flatnonzero(tokens.sequence >= 0)
        stop = int(content[-1]) + 1 if content.size else len(self._own_beginning)
        return _first(tokens, stop)

    @functools.cached_property
    def _own_beginning(self) -> tuple[int, ...]:
        """Special tokens that the tokenizer puts before every text by itself."""
        tokens = self._read(["a"], framed=False)
        return tuple(int(i) for i in tokens.ids[: int(np.argmax(tokens.sequence >= 0))])

    def _read(self, texts: Sequence[str], *, framed: bool) -> Tokens:
        """Ids as the tokenizer gives them, at positions that were checked."""
        read = (self._read_fast if self.tokenizer.is_fast else self._read_slow)(texts, framed=framed)
        start, end = np.zeros_like(read.ids), np.zeros_like(read.ids)
        for index, text in enumerate(texts):
            own = np.flatnonzero(read.sequence == index)
            reported = None if read.spans is None else Spans(read.spans.start[own], read.spans.end[own])
            start[own], end[own] = self._positions(text, [read.pieces[i] for i in own.tolist()], reported)
        return Tokens(read.ids, read.segments, read.sequence, start, end)

    def _read_fast(self, texts: Sequence[str], *, framed: bool) -> "_Reading":
        found = self._called(texts, framed=framed, return_offsets_mapping=True)
        offsets = np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        sequence = np.array([-1 if s is None else s for s in found.sequence_ids(0)], dtype=np.int64)
        return _Reading.of(found, sequence, found.tokens(0), Spans(offsets[:, 0], offsets[:, 1]))

    def _read_slow(self, texts: Sequence[str], *, framed: bool) -> "_Reading":
        """A tokenizer in Python reports no positions, nor which text its tokens come from."""
        try:
            found = self._called(texts, framed=framed, return_special_tokens_mask=True)
            pieces = [self.tokenizer.tokenize(text, split_special_tokens=not framed) for text in texts]
            ids = [self.tokenizer.convert_tokens_to_ids(part) for part in pieces]
        except (ValueError, NotImplementedError) as exc:
            raise ConfigError(f"{type(self.tokenizer).__name__} cannot be used: {exc}") from exc
        own = np.flatnonzero(np.array(found["special_tokens_mask"]) == 0)
        if [found["input_ids"][i] for i in own.tolist()] != [i for part in ids for i in part]:
            raise ConfigError(
                f"{type(self.tokenizer).__name__} does not tell which tokens it adds to a text; a fast tokenizer does."
            )
        sequence = np.full(len(found["input_ids"]), -1, dtype=np.int64)
        sequence[own] = np.repeat(np.arange(len(texts)), [len(part) for part in pieces])
        spelled = np.full(len(sequence), "", dtype=object)
        spelled[own] = [piece for part in pieces for piece in part]
        return _Reading.of(found, sequence, spelled.tolist(), None)

    def _called(self, texts: Sequence[str], *, framed: bool, **wanted: bool) -> Any:
        return self.tokenizer(
            *texts,
            add_special_tokens=not framed,
            split_special_tokens=not framed,
            truncation=False,
            verbose=False,
            **wanted,
        )

    def _positions(self, text: str, pieces: Sequence[str], reported: Spans | None) -> Spans:
        """Characters behind each piece: as reported, if that may be right."""
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
        if self.reads_pairs or not self.tokenizer.chat_template:
            raise ConfigError("this model has no chat template; leave out --chat.")
        messages = [{"role": role, "content": content} for role, content in (*turns, ("user", _QUESTION))]
        try:
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        except jinja2.TemplateError as exc:
            raise ConfigError(f"the chat template refuses these turns: {exc}.") from exc
        if text.count(_QUESTION) != 1:
            raise ConfigError("the chat template does not show the user's turn just once, so it cannot be explained.")
        before, _, after = text.partition(_QUESTION)
        return before, after

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        return [
            self.tokenizer.decode(row.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False)
            for row in rows
        ]


class _Reading(NamedTuple):
    """What a tokenizer says of a text or two, positions unchecked."""

    ids: Ids
    segments: Ids
    sequence: Ids
    pieces: Sequence[str]
    """The tokens as the vocabulary writes them."""
    spans: Spans | None

    @classmethod
    def of(cls, found: Any, sequence: Ids, pieces: Sequence[str], spans: Spans | None) -> "_Reading":
        ids = np.array(found["input_ids"], dtype=np.int64)
        segments = np.array(found.get("token_type_ids", np.zeros(len(ids))), dtype=np.int64)
        return cls(ids, segments, sequence, pieces, spans)


def _first(tokens: Tokens, stop: int) -> Tokens:
    return Tokens(
        tokens.ids[:stop], tokens.segments[:stop], tokens.sequence[:stop], tokens.start[:stop], tokens.end[:stop]
    )
