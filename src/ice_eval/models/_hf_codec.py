"""The tokenizers of transformers as a `Codec`."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2
import numpy as np

from ice_eval.encoding import Tokens
from ice_eval.errors import ConfigError, DataError
from ice_eval.models._bos import always_begins, missing_bos
from ice_eval.records import Ids, SpecialIds
from ice_eval.subjects import Spans, align, are_plausible

_QUESTION = "\ue000question\ue000"
"""Stands for the last user turn while its frame is looked for; no template and no text holds it."""


class HFCodec:
    """A tokenizer, with special tokens by the model's own convention and positions that were checked.

    Positions that a tokenizer reports are compared with what its tokens spell, and replaced where they cannot be right.
    Tokenizers that report none (those in Python) are aligned with the text the same way.

    A language model gets the BOS token it was trained with even if its tokenizer forgets it (see `missing_bos`), and
    gets it once: a chat template may write it too. Sequence classifiers get what their tokenizer adds.
    """

    def __init__(
        self, tokenizer: Any, *, reads_pairs: bool, max_tokens: int, family: str = "", n_ids: int | None = None
    ) -> None:
        """Wrap a tokenizer.

        Args:
            tokenizer: One of transformers.
            reads_pairs: Whether it belongs to a sequence classifier.
            max_tokens: Longest input that the model takes.
            family: The `model_type` of the model's configuration.
            n_ids: Ids that the model has embeddings for; by default any.
        """
        self.tokenizer = tokenizer
        self.reads_pairs = reads_pairs
        self.max_tokens = max_tokens
        self._family = family
        self._n_ids = n_ids
        self.special = SpecialIds(
            unk=tokenizer.unk_token_id,
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            end=tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id,
            start=tokenizer.bos_token_id,
            every=frozenset(tokenizer.all_special_ids),
        )

    @property
    def notes(self) -> list[str]:
        """What a user should know of how texts are read."""
        if self._why_bos is None:
            return []
        token = self.tokenizer.bos_token
        return [f"the tokenizer adds no {token} before a text; it is put there, because {self._why_bos}."]

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        """Ids and positions; what a language model's texts begin with is put before a `framed` text that lacks it."""
        tokens = self._read([text] if pair is None else [text, pair], framed=framed)
        if self.reads_pairs:
            return tokens
        # A language model answers after its last token: an end-of-text token there would end the text instead.
        content = np.flatnonzero(tokens.sequence >= 0)
        stop = int(content[-1]) + 1 if content.size else len(self._own_beginning)
        return _after(self._lacking(text, framed=framed), tokens, stop)

    def _lacking(self, text: str, *, framed: bool) -> tuple[int, ...]:
        """What must be put before the tokenizer's own ids."""
        if not framed:
            return self._beginning if self._why_bos is not None else ()
        if self._why_bos is None and not always_begins(self._family):
            return ()  # a chat template that writes no BOS means it, even where plain texts get one
        written = "".join(self.tokenizer.convert_ids_to_tokens(list(self._beginning)))
        return () if text.lstrip().startswith(written) else self._beginning

    @functools.cached_property
    def _own_beginning(self) -> tuple[int, ...]:
        """Special tokens that the tokenizer puts before every text by itself."""
        said = self._said(["a"], framed=False)
        return tuple(int(i) for i in said.ids[: int(np.argmax(said.sequence >= 0))])

    @functools.cached_property
    def _why_bos(self) -> str | None:
        """Why the BOS token must be added, if it must."""
        bos = self.tokenizer.bos_token_id
        if self.reads_pairs or self._own_beginning or bos is None or (self._n_ids is not None and bos >= self._n_ids):
            return None
        return missing_bos(self.tokenizer, family=self._family)

    @property
    def _beginning(self) -> tuple[int, ...]:
        """What every text of the model begins with."""
        return self._own_beginning if self._why_bos is None else (int(self.tokenizer.bos_token_id),)

    def _read(self, texts: Sequence[str], *, framed: bool) -> Tokens:
        """Ids as the tokenizer gives them, at positions that were checked."""
        said = self._said(texts, framed=framed)
        start, end = np.zeros_like(said.ids), np.zeros_like(said.ids)
        for index, text in enumerate(texts):
            own = np.flatnonzero(said.sequence == index)
            reported = None if said.spans is None else Spans(said.spans.start[own], said.spans.end[own])
            start[own], end[own] = self._positions(text, [said.pieces[i] for i in own.tolist()], reported)
        return Tokens(said.ids, said.segments, said.sequence, start, end)

    def _said(self, texts: Sequence[str], *, framed: bool) -> "_Said":
        return (self._said_by_fast if self.tokenizer.is_fast else self._said_by_slow)(texts, framed=framed)

    def _said_by_fast(self, texts: Sequence[str], *, framed: bool) -> "_Said":
        found = self._called(texts, framed=framed, return_offsets_mapping=True)
        offsets = np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        sequence = np.array([-1 if s is None else s for s in found.sequence_ids(0)], dtype=np.int64)
        return _Said.of(found, sequence, found.tokens(0), Spans(offsets[:, 0], offsets[:, 1]))

    def _said_by_slow(self, texts: Sequence[str], *, framed: bool) -> "_Said":
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
        return _Said.of(found, sequence, spelled.tolist(), None)

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
        if not self.has_chat:
            raise ConfigError("this model has no chat template; leave out --chat.")
        text = self.chat_text([*turns, ("user", _QUESTION)])
        if text.count(_QUESTION) != 1:
            raise ConfigError("the chat template does not show the user's turn just once, so it cannot be explained.")
        before, _, after = text.partition(_QUESTION)
        return before, after

    @property
    def has_chat(self) -> bool:
        """Whether there is a template for turns of a chat."""
        return not self.reads_pairs and bool(self.tokenizer.chat_template)

    def chat_text(self, turns: Sequence[tuple[str, str]]) -> str:
        """What the chat template writes for turns (role and text), up to where the next answer begins."""
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            return str(self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
        except jinja2.TemplateError as exc:
            raise ConfigError(f"the chat template refuses these turns: {exc}.") from exc

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        """What ids spell; a row may begin inside a word, and the mark for that is no text."""
        return [
            self.tokenizer.decode(
                row.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False
            ).removeprefix(self._inside_word)
            for row in rows
        ]

    @functools.cached_property
    def _inside_word(self) -> str:
        """How WordPiece marks a token that goes on with a word (signs of a text are decoded with spaces between)."""
        decoder: Any = getattr(getattr(self.tokenizer, "backend_tokenizer", None), "decoder", None)
        return str(decoder.prefix) if type(decoder).__name__ == "WordPiece" else ""


class _Said(NamedTuple):
    """What a tokenizer says of a text or two, positions unchecked."""

    ids: Ids
    segments: Ids
    sequence: Ids
    pieces: Sequence[str]
    """The tokens as the vocabulary writes them."""
    spans: Spans | None

    @classmethod
    def of(cls, found: Any, sequence: Ids, pieces: Sequence[str], spans: Spans | None) -> "_Said":
        ids = np.array(found["input_ids"], dtype=np.int64)
        segments = np.array(found.get("token_type_ids", np.zeros(len(ids))), dtype=np.int64)
        return cls(ids, segments, sequence, pieces, spans)


def _after(ids: tuple[int, ...], tokens: Tokens, stop: int) -> Tokens:
    """The first tokens up to `stop`, after special ones with these ids."""
    none = np.zeros(len(ids), dtype=np.int64)

    def joined(first: Ids, rest: Ids) -> Ids:
        return np.concatenate([first, rest[:stop]])

    return Tokens(
        ids=joined(np.array(ids, dtype=np.int64), tokens.ids),
        segments=joined(none, tokens.segments),
        sequence=joined(none - 1, tokens.sequence),
        start=joined(none, tokens.start),
        end=joined(none, tokens.end),
    )
