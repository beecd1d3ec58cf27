r"""Task + example + tokenizer -> `Encoded`: ids, protected tokens, units.

The rendered prompt is tokenised once. Every character knows where it comes from, so every token does:

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import ConfigError, DataError
from ice_eval.records import PROTECTED, Encoded, Example, Ids, LabelIds, Scope, Span, SpecialIds, Unit
from ice_eval.tasks import Piece, Task
from ice_eval.words import character_starts, word_spans

MAX_CONTENT_TOKENS = 512
"""Longer texts are cut, as in the paper."""

WHOLE = ("whole prompt", "whole pair")
"""What spans point into when all of the prompt may go: no name of a field has a space in it."""

_TEMPLATE, _TEMPLATE_SPACE = -1, -2


@dataclass(frozen=True)
class Tokens:
    """What a tokenizer says about one text, or about a text and its pair."""

    ids: Ids
    segments: Ids
    sequence: Ids
    """0 or 1: the text the token comes from; -1 for special tokens."""
    start: Ids
    """First character of the token in its text."""
    end: Ids


class Codec(Protocol):
    """The tokenizer of a model, as far as the encoding needs it."""

    reads_pairs: bool
    """Whether the model takes a text and a text pair (a sequence classifier) rather than one prompt."""
    max_tokens: int
    """Longest input that the model takes."""
    special: SpecialIds

    def tokenize(self, text: str, pair: str | None = None, *, framed: bool = False) -> Tokens:
        """Ids with special tokens by the model's own convention, and the characters behind each.

        A `framed` text brings its special tokens along, written out, and gets no others but the one that every text of
        the model begins with. In any other text, what looks
        like a special token is just characters.
        """
        ...

    def writes_special(self, text: str) -> bool:
        """Whether a text holds the name of a special token."""
        ...

    def chat_frame(self, turns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """What the chat template writes before and after a last user turn that follows `turns`."""
        ...

    def decode(self, rows: Sequence[Ids]) -> list[str]:
        """Text of each row of ids."""
        ...


def encode(
    codec: Codec, task: Task, example: Example, *, unit: Unit = "token", scope: Scope = "content", reserve: int = 0
) -> Encoded:
    """Tokenise the rendered prompt of one example and find its units.

    Texts beyond `MAX_CONTENT_TOKENS`, or beyond what the model takes less `reserve` tokens, lose the end of their
    longest explained field, never a part of the template. With `scope="prompt"` the template's tokens are units like
    those of the text, and only special tokens are protected.

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
    texts = ["".join(piece.text for piece in part) for part in pieces]
    tokens = codec.tokenize(texts[0], texts[1] if pieces[1] else None, framed=_is_framed(codec, task))
    explained, whole = task.explained, dict[str, str]()
    if scope == "prompt":
        explained, whole = WHOLE, {name: text for name, text in zip(WHOLE, texts, strict=True) if text}
        pieces = [[Piece(text, name)] for name, text in zip(WHOLE, texts, strict=True)]
        # Special tokens that the prompt writes out stay: what is left must still be an input of this model.
        tokens = replace(tokens, sequence=np.where(_written_special(codec, tokens), -1, tokens.sequence))
    sources = [_Source.of(part, explained, unit) for part in pieces]
    unit_of, spans = _units(tokens, sources, _groups(tokens, sources), unit)
    found = {**fields, **whole}
    return Encoded(
        example_id=example.id,
        ids=tokens.ids,
        segments=tokens.segments,
        unit_of=unit_of,
        spans=spans,
        texts=tuple(found[span.field][span.start : span.end] for span in spans),
        fields=fields,
        whole=whole,
        special=codec.special,
        truncated=fields != example.fields,
    )


def encode_text(codec: Codec, pieces: Sequence[Piece], *, example_id: str, framed: bool) -> Encoded:
    """Tokenise a text that belongs to no task: the tokens of its fields are units, the rest is protected.

    Nothing is cut. A `framed` text brings its special tokens along (see `Codec.tokenize`).
    """
    fields = {piece.field: piece.text for piece in pieces if piece.field is not None}
    tokens = codec.tokenize("".join(piece.text for piece in pieces), framed=framed)
    sources = [_Source.of(pieces, tuple(fields), "token")]
    unit_of, spans = _units(tokens, sources, _groups(tokens, sources), "token")
    return Encoded(
        example_id=example_id,
        ids=tokens.ids,
        segments=tokens.segments,
        unit_of=unit_of,
        spans=spans,
        texts=tuple(fields[span.field][span.start : span.end] for span in spans),
        fields=fields,
        special=codec.special,
    )


def _written_special(codec: Codec, tokens: Tokens) -> NDArray[np.bool_]:
    """Which tokens are control tokens; the unknown token stands for a piece of the text."""
    return np.isin(tokens.ids, list(codec.special.every - {codec.special.unk}))


def _is_framed(codec: Codec, task: Task) -> bool:
    """Whether the prompt brings its special tokens along: by a chat template, or written out by hand."""
    return task.chat or any(part.field is None and codec.writes_special(part.text) for part in task.template.parts)


def rendered(codec: Codec, task: Task, fields: Mapping[str, str]) -> tuple[list[Piece], list[Piece]]:
    """What a model reads: the pieces of the prompt or of a classifier's text, and those of its pair (perhaps none)."""
    if codec.reads_pairs:
        return task.classifier_pieces(fields)
    if not task.chat:
        return task.prompt_pieces(fields), []
    before, after = codec.chat_frame(task.turns())
    return [Piece(before), *task.template.render(fields), Piece(after)], []


@dataclass(frozen=True)
class _Source:
    """Where each character of a rendered text comes from."""

    kind: Ids
    """Index into `fields`, or `_TEMPLATE` / `_TEMPLATE_SPACE`."""
    offset: Ids
    """Position of the character in its field."""
    atom: Ids
    """What must not be split: the character that a code point is part of, or the word. Ascending."""
    fields: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, pieces: Sequence[Piece], explained: Sequence[str], unit: Unit) -> "_Source":
        kinds, offsets, atoms = [_NONE], [_NONE], [_NONE]
        place = 0
        for piece in pieces:
            content = piece.field is not None and piece.field in explained
            kinds.append(_field_kind(piece, explained) if content else _template_kind(piece.text))
            offsets.append(np.arange(len(piece.text)))
            atoms.append(place + (_word_starts if content and unit == "word" else character_starts)(piece.text))
            place += len(piece.text)
        return cls(
            kind=np.concatenate(kinds),
            offset=np.concatenate(offsets),
            atom=np.concatenate(atoms),
            fields=tuple(explained),
            text="".join(piece.text for piece in pieces),
        )

    def is_content(self, start: int, end: int) -> bool:
        """Whether these characters may be removed: some belong to a field, and none to the words of the template.

        A space of the template may go with the word it stands before, but not with a space of the text alone: the line
        break after a text that ends in a space would go with it.
        """
        kinds = self.kind[start:end]
        if not (kinds >= 0).any() or (kinds == _TEMPLATE).any():
            return False
        return not (kinds == _TEMPLATE_SPACE).any() or not self.text[start:end].isspace()

    def span(self, start: int, end: int) -> Span:
        """The characters of a unit in its field, without the spaces around them unless it is all spaces."""
        inside = start + np.flatnonzero(self.kind[start:end] >= 0)
        solid = [int(i) for i in inside if not self.text[i].isspace()]
        chosen = solid or [int(i) for i in inside]
        field = int(self.kind[chosen[0]])
        # A span begins with a whole character: an accent may stand on a space that the tokenizer dropped.
        first = int(self.atom[chosen[0]])
        last = [i for i in chosen if self.kind[i] == field][-1]
        # Nor does a span end inside a character: tokenizers that compose an accent report the letter alone.
        while last + 1 < len(self.atom) and self.kind[last + 1] == field and self.atom[last + 1] == self.atom[last]:
            last += 1
        return Span(self.fields[field], int(self.offset[first]), int(self.offset[last]) + 1)


_NONE: Ids = np.zeros(0, dtype=np.int64)


def _field_kind(piece: Piece, explained: Sequence[str]) -> Ids:
    return np.full(len(piece.text), list(explained).index(piece.field or ""), dtype=np.int64)


def _template_kind(text: str) -> Ids:
    return np.array([_TEMPLATE_SPACE if c.isspace() else _TEMPLATE for c in text], dtype=np.int64)


def _word_starts(text: str) -> Ids:
    """For each character where its word begins; spaces stand for themselves."""
    starts = character_starts(text)
    for start, end in word_spans(text):
        starts[start:end] = start
    return starts


def _groups(tokens: Tokens, sources: Sequence[_Source]) -> list[list[int]]:
    """Consecutive tokens of one text that share a character or a word; special and empty tokens are left out."""
    groups: list[list[int]] = []
    reach, sequence = -1, PROTECTED
    for index in range(len(tokens.ids)):
        if tokens.sequence[index] < 0 or tokens.start[index] >= tokens.end[index]:
            continue
        source = sources[tokens.sequence[index]]
        if tokens.end[index] > len(source.text):
            raise DataError(f"the tokenizer places token {index} beyond the end of the text.")
        if tokens.sequence[index] != sequence:
            reach, sequence = -1, int(tokens.sequence[index])
        if source.atom[tokens.start[index]] <= reach:
            groups[-1].append(index)
        else:
            groups.append([index])
        reach = max(int(source.atom[tokens.end[index] - 1]), reach)
    return groups


def _units(
    tokens: Tokens, sources: Sequence[_Source], groups: Sequence[list[int]], unit: Unit
) -> tuple[Ids, tuple[Span, ...]]:
    unit_of = np.full(len(tokens.ids), PROTECTED, dtype=np.int64)
    spans: list[Span] = []
    for group in groups:
        source = sources[tokens.sequence[group[0]]]
        start, end = int(tokens.start[group].min()), int(tokens.end[group].max())
        if not source.is_content(start, end):
            continue
        span = source.span(start, end)
        # Spaces that are tokens of their own go with the word before them: a word unit is no space.
        if unit == "token" or not source.text[start:end].isspace() or not spans or spans[-1].field != span.field:
            spans.append(span)
        unit_of[group] = len(spans) - 1
    return unit_of, tuple(spans)


def _cut(encoded: Encoded, max_tokens: int) -> Span | None:
    """The first unit of the longest field that must go, if the input is too long."""
    sizes = np.bincount(encoded.unit_of[encoded.unit_of != PROTECTED], minlength=encoded.n_units)
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
    units = [unit for unit, name in enumerate(fields) if name == longest]
    removed = 0
    for unit in reversed(units):
        removed += int(sizes[unit])
        if removed >= excess:
            return encoded.spans[unit]
    return encoded.spans[units[0]]


def label_ids(codec: Codec, task: Task) -> LabelIds:
    """Token ids of each label word as it follows the prompt.

    Raises:
        ConfigError: A label has no token of its own, or its ids are the beginning of another's.
    """
    pieces, _ = rendered(codec, task, {name: "x" for name in task.template.fields})
    body = "".join(piece.text for piece in pieces)
    framed = _is_framed(codec, task)
    found = []
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
    """Token ids of what follows a text; if its first characters join the text's last token, those that it has alone."""
    before = codec.tokenize(text, framed=framed).ids.tolist()
    joint = codec.tokenize(text + more, framed=framed).ids.tolist()
    return tuple(joint[len(before) :] if joint[: len(before)] == before else _alone(codec, more))


def _alone(codec: Codec, word: str) -> list[int]:
    """Ids of a word by itself, without special tokens."""
    tokens = codec.tokenize(word)
    return [int(i) for i in tokens.ids[tokens.sequence >= 0]]


def refuse_prefixes(labels: Sequence[str], ids: Sequence[tuple[object, ...]]) -> None:
    """Labels whose tokens begin alike must differ further on.

    Raises:
        ConfigError: Those of one are the beginning of another's.
    """
    for first, ours in zip(labels, ids, strict=True):
        for second, theirs in zip(labels, ids, strict=True):
            if first != second and theirs[: len(ours)] == ours:
                raise ConfigError(
                    f"the tokens of the label '{first}' are the beginning of those of '{second}', so they cannot be "
                    "told apart; choose other label words with --labels."
                )


def shared_prefix(items: Sequence[Encoded]) -> int:
    """How many leading tokens all examples have in common before their content: the template, the shots."""
    heads = [item.ids[: item.content.start] if item.n_units else item.ids for item in items]
    shortest = min((len(head) for head in heads), default=0)
    stacked = np.stack([head[:shortest] for head in heads]) if shortest else np.zeros((len(heads), 0))
    differ = np.flatnonzero((stacked != stacked[:1]).any(axis=0))
    return int(differ[0]) if differ.size else shortest
