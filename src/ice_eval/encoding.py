r"""Task + example + tokenizer -> `Encoded`: ids, protected tokens, units.

The rendered prompt is tokenised once, with template and content in separate tokens (`boundaries`). The source of every
character, and so of every token, is known:

```text
characters   R e v i e w : _ a _ g o r g e o u s _ f i l m \n S e n t …
source       t t t t t t t s f f f f f f f f f f f f f f f s  t t t t      t template, s its spaces, f the field
tokens       [Review][:][ a][ gor][geous][ film][\n][Sent…
unit            -1   -1   0    1     2      3   -1   -1
```

A token of the template is protected; a space of the template may be in the token of the word after it. Tokens that
share a character (the bytes of one emoji, a letter and its accent) form one unit, so a unit never splits a character.
With word or sentence units, so do tokens that share one.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.boundaries import SPACE, TEMPLATE_WORD, WORD, Source, Tokenized, tokenized
from ice_eval.boundaries import Codec as Codec
from ice_eval.boundaries import Tokens as Tokens
from ice_eval.errors import ConfigError, DataError
from ice_eval.operators import Blacklist, PooledUnits, label_indicative
from ice_eval.records import PROTECTED, SCORED, Encoded, Example, Ids, LabelIds, Scope, Span, Unit
from ice_eval.tasks import Piece, Task

CharacterSpans = Sequence[tuple[int, int]]
WHOLE = ("whole prompt", "whole pair")
"""Fields of the spans if all of the prompt may be removed; real field names contain no space."""


def encode(
    codec: Codec, task: Task, example: Example, *, unit: Unit = "token", scope: Scope = "content", reserve: int = 0
) -> Encoded:
    """Tokenise the rendered prompt of one example and find its units.

    Texts beyond the model's window less `reserve` tokens, or beyond the limit of the task, lose the end of their
    longest explained field, never a part of the template. With `scope="prompt"`, template tokens are units too, and
    only special tokens are protected. A text that a model wrote follows the prompt, and is scored.

    Raises:
        DataError: The template alone does not fit.
    """
    fields, n_whole = dict(example.fields), None
    while True:
        encoded = _encoded(codec, task, example, fields, unit, "content")
        n_whole = encoded.n_units if n_whole is None else n_whole
        cut = _cut(encoded, codec.max_tokens - reserve, task.max_tokens)
        if cut is None:
            n_cut = n_whole - encoded.n_units
            if example.n_unread:  # estimated from the characters that were read
                n_read = sum(len(example.fields[name]) for name in task.explained)
                n_cut += max(1, round(n_whole * example.n_unread / max(n_read, 1)))
            found = encoded if scope == "content" else _encoded(codec, task, example, fields, unit, scope)
            return replace(found, n_cut=n_cut)
        fields[cut.field] = fields[cut.field][: cut.start].rstrip()


def _encoded(
    codec: Codec, task: Task, example: Example, fields: Mapping[str, str], unit: Unit, scope: Scope
) -> Encoded:
    pieces: Sequence[Sequence[Piece]] = rendered(codec, task, fields)
    texts, n_texts, scored = [_joined(part) for part in pieces], 2 if pieces[1] else 1, list[tuple[int, int]]()
    written = task.continuation(example.fields)
    if written is not None:
        written = written if task.chat or texts[0][-1:].isspace() else f" {written}"
        scored, pieces = [(len(texts[0]), len(texts[0]) + len(written))], [[*pieces[0], Piece(written)], []]
        texts = [texts[0] + written, ""]
    explained, whole = task.explained, dict[str, str]()
    if scope == "prompt":
        explained, whole = WHOLE, {name: text for name, text in zip(WHOLE, texts, strict=True) if text}
        pieces = [[Piece(text, name)] for name, text in zip(WHOLE, texts, strict=True)]
    source = Source.of(pieces, explained, unit)
    found = tokenized(codec, texts[:n_texts], source, framed=_is_framed(codec, task))
    if scope == "prompt":
        # Special tokens that the prompt writes out stay: what is left must still be an input of this model. The unknown
        # token represents a piece of the text.
        control = np.isin(found.tokens.ids, list(codec.special.every - {codec.special.unk}))
        sequence = np.where(control, -1, found.tokens.sequence)
        found = found._replace(tokens=replace(found.tokens, sequence=sequence))
    unit_of, spans = _units(found, source, unit)
    units = _texts(spans, {**fields, **whole})
    ids, segments, divided = found.tokens.ids, _with_scored(found.tokens, scored), found.divided
    return Encoded(example.id, ids, segments, unit_of, spans, units, fields, whole, codec.special, divided=divided)


def encode_text(
    codec: Codec,
    pieces: Sequence[Piece],
    *,
    example_id: str,
    framed: bool,
    unit: Unit = "token",
    scored: CharacterSpans = (),
    headings: CharacterSpans | None = None,
) -> Encoded:
    """Tokenise a text without a task: its fields consist of units, the rest is protected; nothing is cut.

    Args:
        codec: The tokenizer.
        pieces: The text.
        example_id: Name of the text.
        framed: True if special tokens are written out.
        unit: What its fields consist of.
        scored: Characters of the text whose probability is the score.
        headings: Characters around each field that go with its last unit, as a number before it; None: none.
    """
    fields = {piece.field: piece.text for piece in pieces if piece.field is not None}
    source = Source.of([pieces], tuple(fields), unit)
    found = tokenized(codec, [_joined(pieces)], source, framed=framed)
    unit_of, spans = _units(found, source, unit)
    tokens, segments, units = found.tokens, _with_scored(found.tokens, scored), _texts(spans, fields)
    encoded = Encoded(
        example_id, tokens.ids, segments, unit_of, spans, units, fields, special=codec.special, divided=found.divided
    )
    if headings is None:
        return encoded
    # A protected token belongs to the heading that holds its last character.
    heading_of, names = np.full(len(tokens.ids), PROTECTED, dtype=np.int64), list(fields)
    for index, (start, end) in enumerate(headings):
        inside = (start < tokens.end) & (tokens.end <= end)
        heading_of[(unit_of == PROTECTED) & (tokens.sequence == 0) & inside] = index
    group_of = np.array([names.index(span.field) for span in spans], dtype=np.int64)
    return replace(encoded, heading_of=heading_of, group_of=group_of)


def _with_scored(tokens: Tokens, scored: CharacterSpans) -> Ids:
    """Return the segments of tokens, with `SCORED` for those inside some characters of the first text."""
    segments, own = tokens.segments.copy(), (tokens.sequence == 0) & (tokens.start < tokens.end)
    for start, end in scored:
        segments[own & (start <= tokens.start) & (tokens.end <= end)] = SCORED
    return segments


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
        return task.classifier_pieces(fields, bare_pairs=codec.reads_pairs == "bare")
    if not task.chat:
        return task.prompt_pieces(fields), []
    before, after = codec.chat_frame(task.turns())
    return [Piece(before), *task.template.render(fields), Piece(after)], []


class _TokenGroups(NamedTuple):
    """Consecutive tokens that share a character or a word; special and empty tokens are in no group."""

    tokens: Ids
    group_of: Ids
    start: Ids
    end: Ids
    """(groups,): end of the character range, exclusive."""


def _groups(tokens: Tokens, source: Source) -> _TokenGroups:
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


def _units(tokenized: Tokenized, source: Source, unit: Unit) -> tuple[Ids, tuple[Span, ...]]:
    """Return the unit of each token, `PROTECTED` for template tokens, and the spans of units in the fields."""
    unit_of = np.full(len(tokenized.tokens.ids), PROTECTED, dtype=np.int64)
    groups = _groups(tokenized.tokens, source)
    mixed = groups.group_of[np.isin(groups.tokens, tokenized.mixed)] if tokenized.mixed.size else tokenized.mixed
    found = _content_groups(groups, source, mixed)
    opens = np.ones(len(found.groups), dtype=bool)
    if unit != "token":  # spaces that are tokens of their own belong to the word before them: a word unit is no space
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


def _content_groups(groups: _TokenGroups, source: Source, mixed: Ids) -> _Content:
    """Find the removable groups: some characters belong to a field, and none to the template but a space before a word.

    Groups with a token that holds template and content are `mixed`. The span of a unit excludes the spaces around it,
    unless it is all spaces.
    """
    bounds = np.array([groups.start, groups.end]).T.ravel()
    kinds = np.bitwise_or.reduceat(source.kind, bounds)[::2] if bounds.size else source.kind[:0]
    kinds[mixed] |= TEMPLATE_WORD
    with_word = kinds & (WORD | TEMPLATE_WORD) == WORD
    found = (with_word | (kinds == SPACE)).nonzero()[0]
    first, last, with_word = groups.start[found], groups.end[found] - 1, with_word[found]
    words = (source.kind == WORD).nonzero()[0]
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


def _cut(encoded: Encoded, max_tokens: int, max_content: int | None) -> Span | None:
    """Return the span of the first unit of the longest field that must be cut, if the input is too long."""
    n_tokens, n_content = len(encoded.ids), int(np.count_nonzero(encoded.unit_of != PROTECTED))
    excess = max(0 if max_content is None else n_content - max_content, n_tokens - max_tokens)
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
                "distinguished; choose other label words with --labels."
            )


def shared_prefix(items: Sequence[Encoded]) -> int:
    """Return the number of leading tokens that all examples share before their content: the template, the shots."""
    heads = [item.ids[: item.content.start] if item.n_units else item.ids for item in items]
    return common_start(heads)


def common_start(rows: Sequence[Ids]) -> int:
    """Return the number of ids that all rows begin with."""
    shortest = min(map(len, rows), default=0)
    if not shortest:
        return 0
    stacked = np.stack([row[:shortest] for row in rows])
    differ = np.flatnonzero((stacked != stacked[0]).any(axis=0))
    return int(differ[0]) if differ.size else shortest


# --- units that infill may not write -------------------------------------------------------------------------------

_MIN_PIECE = 3
"""Length from which a piece of a label word is excluded from infill: 'neg' is, 'N' is not."""


def blacklist_of(
    codec: Codec, task: Task, units: Sequence[PooledUnits], *, label_words_only: bool = False
) -> Blacklist:
    """Return label words in all forms, the task's lexicon, special tokens, and tokens that gold labels use differently.

    With `label_words_only`, only label words and special tokens.
    """
    words = label_words(task)
    lexicon = frozenset(word.casefold() for word in task.lexicon if not label_words_only)
    tokens = frozenset[int]() if label_words_only else label_indicative(units)
    return Blacklist(words, lexicon, tokens | codec.special.every | _forms(codec, words))


def label_words(task: Task) -> frozenset[str]:
    """Return the words of all labels, casefolded."""
    return frozenset(part.casefold() for word in (*task.label_words.values(), *task.labels) for part in word.split())


def _forms(codec: Codec, words: Collection[str]) -> frozenset[int]:
    """Return tokens of the label words in every casing, with and without a leading space, except short pieces."""
    casings = {form for word in words for form in (word, word.upper(), word.capitalize())}
    found = [codec.tokenize(space + form) for form in casings for space in ("", " ")]
    ids = {int(i) for tokens in found for i in tokens.ids[tokens.sequence >= 0]}
    pieces = dict(zip(sorted(ids), codec.decode([np.array([i]) for i in sorted(ids)]), strict=True))
    return frozenset(i for i, piece in pieces.items() if len(piece.strip().strip("#")) >= _MIN_PIECE)
