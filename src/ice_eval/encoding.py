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

_TEMPLATE, _TEMPLATE_SPACE = -1, -2


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
    found = _with_units(codec, tokens, _Source.of(pieces, explained, unit), unit, {**fields, **whole})
    return replace(found, example_id=example.id, fields=fields, whole=whole, truncated=fields != example.fields)


def encode_text(codec: Codec, pieces: Sequence[Piece], *, example_id: str, framed: bool) -> Encoded:
    """Tokenise a text without a task: the tokens of its fields are units, the rest is protected; nothing is cut."""
    fields = {piece.field: piece.text for piece in pieces if piece.field is not None}
    tokens = codec.tokenize(_joined(pieces), framed=framed)
    found = _with_units(codec, tokens, _Source.of([pieces], tuple(fields), "token"), "token", fields)
    return replace(found, example_id=example_id)


def _with_units(codec: Codec, tokens: Tokens, source: "_Source", unit: Unit, fields: Mapping[str, str]) -> Encoded:
    unit_of, spans = _units(tokens, source, unit)
    texts = tuple(fields[span.field][span.start : span.end] for span in spans)
    return Encoded("", tokens.ids, tokens.segments, unit_of, spans, texts, fields, special=codec.special)


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

    kind: Ids
    """Index into `fields`, or `_TEMPLATE` / `_TEMPLATE_SPACE`."""
    offset: Ids
    atom: Ids
    """Start of the character or word that must not be split, for each code point. Ascending."""
    blank: NDArray[np.bool_]
    """True for spaces."""
    fields: tuple[str, ...]
    starts: tuple[int, ...]
    """Start of the text, start of its pair, and the end of both."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[Piece]], explained: Sequence[str], unit: Unit) -> "_Source":
        kinds, offsets, atoms, blanks, starts = [_NONE], [_NONE], [_NONE], [_NO], [0]
        place = 0
        for pieces in texts:
            for piece in pieces:
                content = piece.field is not None and piece.field in explained
                start, blank = _characters(piece.text, content and unit == "word")
                template = np.where(blank, _TEMPLATE_SPACE, _TEMPLATE)
                kinds.append(np.full_like(template, explained.index(piece.field)) if content else template)
                offsets.append(np.arange(len(piece.text)))
                atoms.append(place + start)
                blanks.append(blank)
                place += len(piece.text)
            starts.append(place)
        kind, offset, atom = (np.concatenate(parts) for parts in (kinds, offsets, atoms))
        return cls(kind, offset, atom, np.concatenate(blanks), tuple(explained), tuple(starts))


_NONE: Ids = np.zeros(0, dtype=np.int64)
_NO: NDArray[np.bool_] = np.zeros(0, dtype=bool)


@functools.lru_cache(maxsize=256)  # pieces of the template are the same for all examples
def _characters(text: str, by_word: bool) -> tuple[Ids, NDArray[np.bool_]]:
    """Return for each code point the start of its character or word, and a mask of spaces."""
    starts = character_starts(text)
    for start, end in word_spans(text) if by_word else ():
        starts[start:end] = start
    return starts, np.array([character.isspace() for character in text], dtype=bool)


class _TokenGroups(NamedTuple):
    """Consecutive tokens that share a character or a word; special and empty tokens are in no group."""

    tokens: Ids
    group_of: Ids
    start: Ids
    end: Ids
    """(groups,): end of the character range, exclusive."""


def _groups(tokens: Tokens, source: _Source) -> _TokenGroups:
    """Group the tokens of a text and of its pair."""
    chosen = np.flatnonzero((tokens.sequence >= 0) & (tokens.start < tokens.end))
    if not chosen.size:
        return _TokenGroups(chosen, chosen, chosen, chosen)
    sequence, begins = tokens.sequence[chosen], np.array(source.starts)
    start, end = (each[chosen] + begins[sequence] for each in (tokens.start, tokens.end))
    beyond = np.flatnonzero(end > begins[sequence + 1])
    if beyond.size:
        raise DataError(f"the tokenizer places token {chosen[beyond[0]]} beyond the end of the text.")
    reach = np.maximum.accumulate(source.atom[end - 1])
    # The atoms of a pair come after those of the text, so that no group reaches from one into the other.
    first = np.append(True, source.atom[start[1:]] > reach[:-1])
    group_of, firsts = np.cumsum(first) - 1, np.flatnonzero(first)
    return _TokenGroups(chosen, group_of, np.minimum.reduceat(start, firsts), np.maximum.reduceat(end, firsts))


def _units(tokens: Tokens, source: _Source, unit: Unit) -> tuple[Ids, tuple[Span, ...]]:
    """Return the unit of each token, `PROTECTED` for template tokens, and the spans of units in the fields."""
    unit_of = np.full(len(tokens.ids), PROTECTED, dtype=np.int64)
    groups = _groups(tokens, source)
    found = _content_groups(groups, source)
    # Spaces that are tokens of their own belong to the word before them: a word unit is no space.
    opens = (unit == "token") | ~found.blank | (np.diff(found.field, prepend=_TEMPLATE) != 0)
    places = np.full(len(groups.start), PROTECTED, dtype=np.int64)
    places[found.groups] = np.cumsum(opens, dtype=np.int64) - 1
    unit_of[groups.tokens] = places[groups.group_of]
    bounds = zip(*(each[opens].tolist() for each in (found.field, found.first, found.last)), strict=True)
    return unit_of, tuple(Span(source.fields[field], first, last + 1) for field, first, last in bounds)


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
    lengths, n_groups = groups.end - groups.start, len(groups.start)
    group = np.repeat(np.arange(n_groups), lengths)
    character = np.arange(len(group)) + np.repeat(groups.start - (np.cumsum(lengths) - lengths), lengths)
    kind, blank = source.kind[character], source.blank[character]

    def count(flags: NDArray[np.bool_]) -> Ids:
        return np.bincount(group[flags], minlength=n_groups)

    solid = count((kind >= 0) & ~blank)
    all_blank = count(~blank) == 0
    removable = (count(kind >= 0) > 0) & (count(kind == _TEMPLATE) == 0)
    removable &= (count(kind == _TEMPLATE_SPACE) == 0) | ~all_blank
    chosen = np.flatnonzero(removable[group] & (kind >= 0) & (~blank | (solid[group] == 0)))
    if not chosen.size:
        return _Content(_NONE, _NONE, _NONE, _NONE, _NO)
    own = group[chosen]
    firsts = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
    field = np.full(n_groups, _TEMPLATE, dtype=np.int64)
    field[own[firsts]] = kind[chosen[firsts]]
    same = chosen[kind[chosen] == field[own]]
    lasts = np.flatnonzero(np.append(group[same][1:] != group[same][:-1], True))
    # A span begins with a whole character: an accent may be on a space that the tokenizer dropped.
    first = source.atom[character[chosen[firsts]]]
    # Nor does a span end inside a character: tokenizers that compose an accent report the letter alone.
    changes = (np.diff(source.atom) != 0) | (np.diff(source.kind) != 0)
    ends = np.append(np.flatnonzero(changes), len(source.atom) - 1)
    last = ends[np.searchsorted(ends, character[same[lasts]])]
    found = own[firsts]
    return _Content(found, field[found], source.offset[first], source.offset[last], all_blank[found])


def _cut(encoded: Encoded, max_tokens: int) -> Span | None:
    """Return the span of the first unit of the longest field that must be cut, if the input is too long."""
    sizes = encoded.unit_lengths()
    excess = max(int(sizes.sum()) - MAX_CONTENT_TOKENS, len(encoded.ids) - max_tokens)
    if excess <= 0:
        return None
    if excess > sizes.sum():
        raise DataError(
            f"example '{encoded.example_id}': the prompt without its text has {len(encoded.ids) - int(sizes.sum())} "
            f"tokens, and the model takes {max_tokens}; shorten the prompt or use fewer shots."
        )
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
