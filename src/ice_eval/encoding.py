r"""Task + example + tokenizer -> `Encoded`: ids, protected tokens, units.

The rendered prompt is tokenised once. The source of every character, and so of every token, is known:

```text
characters   R e v i e w : _ a _ g o r g e o u s _ f i l m \n S e n t …
source       t t t t t t t s f f f f f f f f f f f f f f f s  t t t t      t template, s its spaces, f the field
tokens       [Review][:][ a][ gor][geous][ film][\n][Sent…
unit            -1   -1   0    1     2      3   -1   -1
```

A token that touches template characters other than spaces is protected. Tokens that share a character (the bytes of
one emoji, a letter and its accent) form one unit, so a unit never splits a character. With word units, so do tokens
that share a word.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import ConfigError, DataError
from ice_eval.records import PROTECTED, Encoded, Example, Ids, LabelIds, Scope, Span, SpecialIds, Unit
from ice_eval.tasks import Piece, Task
from ice_eval.words import character_starts, word_spans

MAX_CONTENT_TOKENS = 512
"""Longer texts are truncated, as in the paper."""

WHOLE = ("whole prompt", "whole pair")
"""Fields of the spans if all of the prompt may be removed; real field names contain no space."""

_WORD, _SPACE, _TEMPLATE_WORD, _TEMPLATE_SPACE = 1, 2, 4, 8
"""Kinds of characters: of an explained field or of the template, spaces or others. Added up, a set of kinds."""


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

    reads_pairs: bool
    """True if the model takes a text and a text pair (a sequence classifier) rather than one prompt."""
    max_tokens: int
    """Longest input of the model."""
    special: SpecialIds

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        """Return ids with special tokens by the model's convention, and the characters behind each.

        A `framed` text has its special tokens written out; only the model's usual first token is added. In any other
        text, the name of a special token is plain text.
        """
        ...

    def writes_special(self, text: str) -> bool:
        """Return True if a text holds the name of a special token."""
        ...

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """Return the chat template's text before and after a last user turn that follows `turns`."""
        ...

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        """Return the text of each row of ids."""
        ...


def encode(
    codec: Codec, task: Task, example: Example, *, unit: Unit = "token", scope: Scope = "content", reserve: int = 0
) -> Encoded:
    """Tokenise the rendered prompt of one example and find its units.

    Texts beyond `MAX_CONTENT_TOKENS`, or beyond the model's limit less `reserve` tokens, lose the end of their longest
    explained field, never a part of the template. With `scope="prompt"`, template tokens are units too, and only
    special tokens are protected.

    Raises:
        DataError: The template alone does not fit.
    """
    fields = dict(example.fields)
    while True:
        encoded = _encoded(codec, task, example, fields, unit, "content")
        cut = _cut(encoded, codec.max_tokens - reserve)
        if cut is None:
            return encoded if scope == "content" else _encoded(codec, task, example, fields, unit, scope)
        fields[cut.field] = fields[cut.field][: cut.start].rstrip()


def _encoded(
    codec: Codec, task: Task, example: Example, fields: Mapping[str, str], unit: Unit, scope: Scope
) -> Encoded:
    pieces: Sequence[Sequence[Piece]] = rendered(codec, task, fields)
    texts = [_joined(part) for part in pieces]
    tokens = codec.tokenize(texts[0], texts[1] if pieces[1] else None, framed=_is_framed(codec, task))
    explained, whole = task.explained, dict[str, str]()
    if scope == "prompt":
        explained, whole = WHOLE, {name: text for name, text in zip(WHOLE, texts, strict=True) if text}
        pieces = [[Piece(text, name)] for name, text in zip(WHOLE, texts, strict=True)]
        # Special tokens that the prompt writes out stay: what is left must still be an input of this model. The unknown
        # token represents a piece of the text.
        control = np.isin(tokens.ids, list(codec.special.every - {codec.special.unk}))
        tokens = replace(tokens, sequence=np.where(control, -1, tokens.sequence))
    unit_of, spans = _units(tokens, _Source.of(pieces, explained, unit), unit)
    units, truncated = _texts(spans, {**fields, **whole}), fields != example.fields
    return Encoded(
        example.id, tokens.ids, tokens.segments, unit_of, spans, units, fields, whole, codec.special, truncated
    )


def encode_text(codec: Codec, pieces: Sequence[Piece], *, example_id: str, framed: bool) -> Encoded:
    """Tokenise a text without a task: the tokens of its fields are units, the rest is protected; nothing is cut."""
    fields = {piece.field: piece.text for piece in pieces if piece.field is not None}
    tokens = codec.tokenize(_joined(pieces), framed=framed)
    unit_of, spans = _units(tokens, _Source.of([pieces], tuple(fields), "token"), "token")
    units = _texts(spans, fields)
    return Encoded(example_id, tokens.ids, tokens.segments, unit_of, spans, units, fields, special=codec.special)


def _texts(spans: Sequence[Span], fields: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([fields[name][start:end] for name, start, end in spans])


def _joined(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _is_framed(codec: Codec, task: Task) -> bool:
    """Return True if the prompt has its special tokens written out, by a chat template or by hand."""
    return task.chat or any(part.field is None and codec.writes_special(part.text) for part in task.template.parts)


def rendered(codec: Codec, task: Task, fields: Mapping[str, str]) -> tuple[list[Piece], list[Piece]]:
    """Return the pieces of the prompt or of a classifier's text, and those of its pair (perhaps none)."""
    if codec.reads_pairs:
        return task.classifier_pieces(fields)
    if not task.chat:
        return task.prompt_pieces(fields), []
    before, after = codec.chat_frame(task.turns())
    return [Piece(before), *task.template.render(fields), Piece(after)], []


@dataclass(frozen=True)
class _Source:
    """Origin of each character of a rendered text, followed by its pair."""

    kind: NDArray[np.uint8]
    """`_WORD`, `_SPACE`, … for each character; 0 after the last one."""
    atom: Ids
    """Start of the character or word that must not be split, for each code point. Ascending."""
    piece_start: Ids
    """(pieces,): first character of each."""
    piece_field: Ids
    """(pieces,): index into `fields`; -1 for the template."""
    fields: tuple[str, ...]
    starts: tuple[int, ...]
    """Start of the text, start of its pair, and the end of both."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[Piece]], explained: Sequence[str], unit: Unit) -> "_Source":
        kinds, atoms, places, fields, starts = list[NDArray[np.uint8]](), [_NONE], list[int](), list[int](), [0]
        place = 0
        for pieces in texts:
            for text, name in pieces:
                content = name is not None and name in explained
                kind, atom = _characters(text, content, content and unit == "word")
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


_NONE: Ids = np.zeros(0, dtype=np.int64)
_AFTER: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)


@functools.lru_cache(maxsize=256)  # pieces of the template are the same for all examples
def _characters(text: str, content: bool, by_word: bool) -> tuple[NDArray[np.uint8], Ids]:
    """Return for each code point its kind, and the start of its character or word."""
    starts = character_starts(text)
    for start, end in word_spans(text) if by_word else ():
        starts[start:end] = start
    word, space = (_WORD, _SPACE) if content else (_TEMPLATE_WORD, _TEMPLATE_SPACE)
    return np.array([space if each.isspace() else word for each in text], dtype=np.uint8), starts


class _TokenGroups(NamedTuple):
    """Consecutive tokens that share a character or a word; special and empty tokens are in no group."""

    tokens: Ids
    group_of: Ids
    start: Ids
    end: Ids
    """(groups,): end of the character range, exclusive."""


def _groups(tokens: Tokens, source: _Source) -> _TokenGroups:
    """Group the tokens of a text and of its pair."""
    chosen = ((tokens.sequence >= 0) & (tokens.start < tokens.end)).nonzero()[0]
    if not chosen.size:
        return _TokenGroups(chosen, chosen, chosen, chosen)
    sequence, begins = tokens.sequence[chosen], np.array(source.starts)
    start, end = (each[chosen] + begins[sequence] for each in (tokens.start, tokens.end))
    beyond = end > begins[sequence + 1]
    if beyond.any():
        raise DataError(f"the tokenizer places token {chosen[beyond][0]} beyond the end of the text.")
    reach = np.maximum.accumulate(source.atom[end - 1])
    first = np.ones(len(chosen), dtype=bool)
    # The atoms of a pair come after those of the text, so that no group reaches from one into the other.
    first[1:] = source.atom[start[1:]] > reach[:-1]
    group_of, firsts = first.cumsum() - 1, first.nonzero()[0]
    return _TokenGroups(chosen, group_of, np.minimum.reduceat(start, firsts), np.maximum.reduceat(end, firsts))


def _units(tokens: Tokens, source: _Source, unit: Unit) -> tuple[Ids, tuple[Span, ...]]:
    """Return the unit of each token, `PROTECTED` for template tokens, and the spans of units in the fields."""
    unit_of = np.full(len(tokens.ids), PROTECTED, dtype=np.int64)
    groups = _groups(tokens, source)
    found = _content_groups(groups, source)
    opens = np.ones(len(found.groups), dtype=bool)
    if unit == "word":  # spaces that are tokens of their own belong to the word before them: a word unit is no space
        opens[1:] = ~found.blank[1:] | (found.field[1:] != found.field[:-1])
    places = np.full(len(groups.start), PROTECTED, dtype=np.int64)
    places[found.groups] = opens.cumsum() - 1
    unit_of[groups.tokens] = places[groups.group_of]
    bounds = zip(*(each[opens].tolist() for each in (found.field, found.first, found.last)), strict=True)
    return unit_of, tuple([Span(source.fields[field], first, last + 1) for field, first, last in bounds])


class _Content(NamedTuple):
    """The groups of tokens that may be removed, and their positions in the fields."""

    groups: Ids
    field: Ids
    first: Ids
    last: Ids
    blank: NDArray[np.bool_]


def _content_groups(groups: _TokenGroups, source: _Source) -> _Content:
    """Find the removable groups: some characters belong to a field, and none to the words of the template.

    A space of the template may be removed with the word after it, but not with a space of the text alone: otherwise the
    line break after a text that ends in a space would go. The span of a unit excludes the spaces around it, unless it
    is all spaces.
    """
    bounds = np.array([groups.start, groups.end]).T.ravel()
    kinds = np.bitwise_or.reduceat(source.kind, bounds)[::2] if bounds.size else _AFTER[:0]
    with_word = kinds & (_WORD | _TEMPLATE_WORD) == _WORD
    found = (with_word | (kinds == _SPACE)).nonzero()[0]
    first, last, with_word = groups.start[found], groups.end[found] - 1, with_word[found]
    words = (source.kind == _WORD).nonzero()[0]
    first[with_word] = words[words.searchsorted(first[with_word])]
    last[with_word] = words[words.searchsorted(last[with_word], side="right") - 1]
    field, _ = source.located(first)
    for place in (field != source.located(last)[0]).nonzero()[0].tolist():  # the unit belongs to its first field
        characters = np.arange(first[place], last[place])
        same = source.kind[characters] == source.kind[first[place]]
        same &= source.located(characters)[0] == field[place]
        last[place] = characters[same][-1]
    # A span begins with a whole character: an accent may be on a space that the tokenizer dropped. Nor does it end
    # inside a character: tokenizers that compose an accent report the letter alone.
    _, first = source.located(source.atom[first])
    _, last = source.located(source.atom.searchsorted(source.atom[last], side="right") - 1)
    return _Content(found, field, first, last, ~with_word)


def _cut(encoded: Encoded, max_tokens: int) -> Span | None:
    """Return the span of the first unit of the longest field that must be cut, if the input is too long."""
    n_tokens, n_content = len(encoded.ids), int(np.count_nonzero(encoded.unit_of != PROTECTED))
    excess = max(n_content - MAX_CONTENT_TOKENS, n_tokens - max_tokens)
    if excess <= 0:
        return None
    if excess > n_content:
        raise DataError(
            f"example '{encoded.example_id}': the prompt without its text has {n_tokens - n_content} tokens, and the "
            f"model takes {max_tokens}; shorten the prompt or use fewer shots."
        )
    sizes = encoded.unit_lengths()
    fields = [span.field for span in encoded.spans]
    lengths = dict.fromkeys(fields, 0)
    for size, name in zip(sizes.tolist(), fields, strict=True):
        lengths[name] += size
    longest = max(lengths, key=lambda name: lengths[name])
    last_first = [unit for unit, name in enumerate(fields) if name == longest][::-1]
    enough = int(np.searchsorted(np.cumsum(sizes[last_first]), excess))
    return encoded.spans[last_first[min(enough, len(last_first) - 1)]]


def label_ids(codec: Codec, task: Task) -> LabelIds:
    """Return the token ids of each label word as it follows the prompt.

    Raises:
        ConfigError: A label has no tokens of its own, or its ids are the beginning of another's.
    """
    pieces, _ = rendered(codec, task, {name: "x" for name in task.template.fields})
    body, framed, found = _joined(pieces), _is_framed(codec, task), []
    for label, word in zip(task.labels, task.answers, strict=True):
        ids = following_ids(codec, body, word, framed=framed)
        if not ids:
            raise ConfigError(
                f"the label '{label}' has no tokens in this model's vocabulary; choose another word with --labels."
            )
        found.append(ids)
    refuse_prefixes(list(task.label_words), found)
    return tuple(found)


def following_ids(codec: Codec, text: str, more: str, *, framed: bool) -> tuple[int, ...]:
    """Return the token ids of what follows a text; if it merges with the text's last token, its ids when alone."""
    before = codec.tokenize(text, framed=framed).ids.tolist()
    joint = codec.tokenize(text + more, framed=framed).ids.tolist()
    if joint[: len(before)] == before:
        return tuple(joint[len(before) :])
    alone = codec.tokenize(more)
    return tuple(alone.ids[alone.sequence >= 0].tolist())


def refuse_prefixes(labels: Sequence[str], ids: Sequence[tuple[object, ...]]) -> None:
    """Raise ConfigError if the tokens of one label are the beginning of another's."""
    for (first, ours), (second, theirs) in itertools.permutations(zip(labels, ids, strict=True), 2):
        if theirs[: len(ours)] == ours:
            raise ConfigError(
                f"the tokens of the label '{first}' are the beginning of those of '{second}', so they cannot be "
                "told apart; choose other label words with --labels."
            )


def shared_prefix(items: Sequence[Encoded]) -> int:
    """Return the number of leading tokens that all examples share before their content: the template, the shots."""
    heads = [item.ids[: item.content.start] if item.n_units else item.ids for item in items]
    shortest = min((len(head) for head in heads), default=0)
    stacked = np.stack([head[:shortest] for head in heads]) if shortest else np.zeros((len(heads), 0))
    differ = np.flatnonzero((stacked != stacked[:1]).any(axis=0))
    return int(differ[0]) if differ.size else shortest
