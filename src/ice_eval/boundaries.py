r"""Tokens of a rendered prompt, none of which holds characters of both template and content.

Many tokenizers join the end of a text with what follows it (".\n" is one token of Llama 3, Qwen2.5 and Mistral NeMo),
or the template with the beginning of a text. To remove such a token is to remove a part of the template:

```text
tokenizer    [Review][:][ a][ film][.\n][Sentiment][:]
here         [Review][:][ a][ film][.][\n][Sentiment][:]
```

The text is cut at the bound, and both sides are tokenised separately. Other texts keep the ids of the tokenizer. One
kind of token may hold both: a space of the template with the word after it.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.records import Ids, SpecialIds, Unit
from ice_eval.tasks import Piece
from ice_eval.words import character_starts, sentence_spans, word_spans

WORD, SPACE, TEMPLATE_WORD, TEMPLATE_SPACE, TEMPLATE_BREAK = 1, 2, 4, 8, 16
"""Kinds of characters: of an explained field or of the template, spaces or others. Added up, a set of kinds.

In the template, a plain space is TEMPLATE_SPACE, and any other whitespace TEMPLATE_BREAK.
"""
_CONTENT = WORD | SPACE
_CONTEXTS = ("", "\n", "a", ".", "0")
"""Characters to tokenise a part of a text behind: some tokenizers mark the beginning of a text that is alone."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of one text, or of a text and its pair."""

    ids: Ids
    segments: Ids
    sequence: Ids
    """Text of each token, 0 or 1; -1 for special tokens."""
    start: Ids
    """First character of each token in its text."""
    end: Ids


class Codec(Protocol):
    """The part of a model's tokenizer that the encoding needs."""

    max_tokens: int
    """Longest input of the model."""
    special: SpecialIds

    @property
    def reads_pairs(self) -> bool | Literal["bare"]:
        """True if the model takes a text and a text pair (a sequence classifier) rather than one prompt.

        `bare`: only fields without a prompt's words around them are a pair (a function); any other prompt is one text.
        """
        ...

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        """Return ids with special tokens by the model's convention, and the characters behind each.

        A `framed` text has its special tokens written out; only the model's usual first token is added. In any other
        text, the name of a special token is plain text.
        """
        ...

    def writes_special(self, text: str) -> bool:
        """Return True if a text holds the name of a special token; most tokenizers of words have none."""
        return False

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """Return the chat template's text before and after a last user turn that follows `turns`."""
        ...

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        """Return the text of each row of ids."""
        ...


@dataclass(frozen=True)
class Source:
    """Origin of each character of a rendered text, followed by its pair."""

    kind: NDArray[np.uint8]
    """`WORD`, `SPACE`, … for each character; 0 after the last one."""
    atom: Ids
    """Start of the character, word, sentence or passage that must not be split, for each code point. Ascending."""
    piece_start: Ids
    """(pieces,): first character of each."""
    piece_field: Ids
    """(pieces,): index into `fields`; -1 for the template."""
    fields: tuple[str, ...]
    starts: tuple[int, ...]
    """Start of the text, start of its pair, and the end of both."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[Piece]], explained: Sequence[str], unit: Unit) -> "Source":
        kinds, atoms, places, fields, starts = list[NDArray[np.uint8]](), [_NONE], list[int](), list[int](), [0]
        place = 0
        for pieces in texts:
            for text, name in pieces:
                content = name is not None and name in explained
                kind, atom = _characters(text, content, unit if content else "token")
                kinds.append(kind)
                atoms.append(atom + place)
                places.append(place)
                fields.append(explained.index(name) if content else -1)
                place += len(text)
            starts.append(place)
        kind, atom = np.concatenate([*kinds, _AFTER]), np.concatenate(atoms)
        return cls(kind, atom, np.array(places), np.array(fields), tuple(explained), tuple(starts))

    def located(self, characters: Ids) -> tuple[Ids, Ids]:
        """Return the field of some characters and their places in it."""
        piece = self.piece_start.searchsorted(characters, side="right") - 1
        return self.piece_field[piece], characters - self.piece_start[piece]


_ATOMS: Mapping[str, Callable[[str], Sequence[tuple[int, int]]]] = {
    "word": word_spans,
    "sentence": functools.partial(sentence_spans, loose=True),
    "passage": lambda text: [(0, len(text))],
}
"""Unit -> spans that it must not split."""
_NONE: Ids = np.zeros(0, dtype=np.int64)
_AFTER: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)


@functools.lru_cache(maxsize=256)  # pieces of the template are the same for all examples
def _characters(text: str, content: bool, unit: Unit) -> tuple[NDArray[np.uint8], Ids]:
    """Return for each code point its kind, and the start of its character, word, sentence or passage."""
    starts = character_starts(text)
    for start, end in _ATOMS[unit](text) if unit in _ATOMS else ():
        starts[start:end] = starts[start]
    return np.array([_kind(each, content) for each in text], dtype=np.uint8), starts


def _kind(character: str, content: bool) -> int:
    if content:
        return SPACE if character.isspace() else WORD
    if character == " ":
        return TEMPLATE_SPACE
    return TEMPLATE_BREAK if character.isspace() else TEMPLATE_WORD


class Tokenized(NamedTuple):
    """Tokens of a text, or of a text and its pair, with template and content in separate tokens."""

    tokens: Tokens
    divided: bool
    """True if the tokenizer joins template and content somewhere, so that its own ids are others."""
    mixed: Ids
    """Tokens that hold both all the same, since a cut would change what they spell; nothing may remove them."""


def tokenized(codec: Codec, texts: Sequence[str], source: Source, *, framed: bool) -> Tokenized:
    """Tokenise a text, or a text and its pair, and cut it where the tokenizer joins template and content."""
    own = found = codec.tokenize(*texts, framed=framed)
    cuts: dict[int, str | None] = {}  # bound -> context of what follows it; None: no context spells the same text
    while bound := next((at for _, at in _crossings(found, source, TEMPLATE_SPACE) if at not in cuts), None):
        cuts[bound] = None
        for context in _CONTEXTS:
            cut = _cut(codec, texts, own, source, {**cuts, bound: context}, framed=framed)
            if cut is not None and _spelled(codec, cut) == _spelled(codec, own):
                found, cuts[bound] = cut, context
                break
    # Whitespace of the template before a word goes with the word where it cannot be cut off.
    mixed = _crossings(found, source, TEMPLATE_SPACE | TEMPLATE_BREAK) if None in cuts.values() else ()
    divided = not np.array_equal(found.ids, own.ids)  # some report characters of both where ids are the same
    return Tokenized(found, divided, np.array([token for token, _ in mixed], dtype=np.int64))


def _spelled(codec: Codec, tokens: Tokens) -> str:
    """Return the text of tokens, with accents composed: a tokenizer composes only those that it sees together."""
    return unicodedata.normalize("NFC", codec.decode([tokens.ids])[0])


def _crossings(tokens: Tokens, source: Source, allowed: int) -> Iterator[tuple[int, int]]:
    """Yield tokens and the bounds between template and content inside them.

    A token may hold template characters of the kinds `allowed` and the word after them.
    """
    is_content = source.kind & _CONTENT > 0
    bounds = (is_content[1:-1] != is_content[:-2]).nonzero()[0] + 1  # the last kind is that of no character
    begins, inside = np.array(source.starts)[tokens.sequence], tokens.sequence >= 0
    start, end = tokens.start + begins, tokens.end + begins
    for previous, bound in zip([0, *bounds.tolist()], bounds.tolist(), strict=False):
        for token in (inside & (start < bound) & (bound < end)).nonzero()[0].tolist():
            before = np.bitwise_or.reduce(source.kind[max(previous, int(start[token])) : bound])
            if source.kind[bound] != WORD or before | allowed != allowed:
                yield token, bound


def _cut(
    codec: Codec, texts: Sequence[str], own: Tokens, source: Source, cuts: Mapping[int, str | None], *, framed: bool
) -> Tokens | None:
    """Replace the tokens of texts by those of their parts; None if a part merges with its context."""
    for index, text in enumerate(texts):
        begin, end = source.starts[index : index + 2]
        inside = {at - begin: context for at, context in cuts.items() if begin < at < end and context is not None}
        starts, parts = [0, *sorted(inside)] if inside else [], list[Tokens]()
        for start, stop in zip(starts, [*starts[1:], len(text)], strict=False):
            part = _part(codec, text[start:stop], inside.get(start, ""), framed=framed)
            if part is None:
                return None
            parts.append(replace(part, start=part.start + start, end=part.end + start))
        if parts:
            old = (own.sequence == index).nonzero()[0]
            segment = own.segments[old[0]]
            parts = [
                replace(part, segments=np.full_like(part.ids, segment), sequence=np.full_like(part.ids, index))
                for part in parts
            ]
            every = [_taken(own, slice(old[0])), *parts, _taken(own, slice(old[-1] + 1, None))]
            columns = zip(*(vars(each).values() for each in every), strict=True)
            own = Tokens(*(np.concatenate(column) for column in columns))
    return own


def _part(codec: Codec, text: str, context: str, *, framed: bool) -> Tokens | None:
    """Return the tokens of a text behind a context, without those of the context; None if they cannot be separated."""
    try:
        tokens, size = codec.tokenize(context + text, framed=framed), len(context)
    except DataError:  # the positions of its tokens are not known
        return None
    own = tokens.sequence >= 0
    if (own & (tokens.start < size) & (size < tokens.end)).any():
        return None
    found = _taken(tokens, own & (tokens.start >= size))
    return replace(found, start=found.start - size, end=found.end - size)


def _taken(tokens: Tokens, places: slice | NDArray[np.bool_]) -> Tokens:
    return Tokens(*(column[places] for column in vars(tokens).values()))
