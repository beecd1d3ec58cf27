"""Where tokens stand in a text: they are followed from left to right, and must spell it.

Spaces never decide: tokenizers write them before, after or not at all. Four things are tried, in this order, and the
first that holds is taken:

1. the tokens spell the text;
2. they spell it but for case, accents and width;
3. they spell more, and the text once inside it (a prompt around the text, which begins and ends no word of it): what is
   outside is left out;
4. they spell the beginning of the text (a tool that cut it): the rest has no score. A few tokens that end inside a word
   are of another text.
"""

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import regex

from ice_eval.interop._tokens import RUN, WORD, Stream, fold, readings
from ice_eval.words import word_spans

_UNKNOWN_WORD = regex.compile(r"[\p{P}$+<=>^`|~\p{Han}]|[^\s\p{P}$+<=>^`|~\p{Han}]+")
"""A word of WordPiece: a mark or a Chinese character by itself, or all up to the next."""
_GOES_ON = regex.compile(r"^##\w|\w@@$|\w</w>$")
_AHEAD = 3
"""Characters after an unknown token that tell where it ends."""

_MANY = 32
"""Tokens from which on a cut may fall inside a word: tools cut long texts, at a number of sub-words."""

Places = list[tuple[int, int] | None]  # for each character of a stream those of the text behind it; None: outside


class Placed(NamedTuple):
    """Where tokens stand in a text."""

    shares: list[list[tuple[int, Fraction]]]
    """For each token the characters that it spells and the share of the token that each carries.

    The shares of a token that is partly outside the text sum to less than 1. A token of spaces is where its spaces are,
    or before the next character where the text has none. Fractions, so that a token inside a unit gives all it has.
    """
    cut: bool
    """Whether the text goes on after the last token."""


class _Text(NamedTuple):
    """A text as it is compared, and where each of its characters comes from."""

    text: str
    source: list[int]


def place(tokens: Sequence[str], text: str, fields: Sequence[str]) -> Placed | None:
    """Find the tokens in a text.

    Args:
        tokens: As some tokenizer writes them.
        text: What they should spell.
        fields: The parts that the text is made of, in order; a prompt may stand around each.

    Returns:
        Where they are, or None if they spell something else.
    """
    streams = list(readings(tokens))
    plain = [(each, _word_edges(tokens, each)) for each in streams if not _takes_marks_for_text(tokens, each)]
    for strict in (True, False):
        for stream in streams:
            found = _whole(stream, text, strict, to_end=True)
            if found is not None:
                return found
    for strict in (True, False):
        for stream, edges in plain:
            found = _inside(stream, text, fields, strict, edges)
            if found is not None:
                return found
    for strict in (True, False):
        for stream in streams:
            found = _whole(stream.ended(), text, strict, to_end=False)
            if found is not None:
                return found
    return None


def _whole(stream: Stream, text: str, strict: bool, *, to_end: bool) -> Placed | None:
    stream = stream if strict else stream.folded()
    compared = _compared(text, strict)
    places, end = _follow(stream.text, compared.text)
    rest = compared.text[end:].strip()
    if places is None or (to_end and rest) or not stream.text.strip():
        return None
    if rest and len(stream.parts) < _MANY and _in_word(compared.text, end):
        return None
    return _placed(stream, places, compared, cut=bool(rest))


def _inside(stream: Stream, text: str, fields: Sequence[str], strict: bool, edges: Collection[int]) -> Placed | None:
    """The fields one after another in a stream that spells more; there must be one way, and their words whole."""
    if not strict:
        places_of = stream.folded_places()
        stream, edges = stream.folded(), {places_of[edge] for edge in edges}
    solid = [index for index, c in enumerate(stream.text) if not c.isspace()]
    whole = "".join(stream.text[index] for index in solid)
    compared = _compared(text, strict)
    candidates: list[list[slice]] = []
    for field in fields:
        wanted = "".join(_compared(field, strict).text.split())
        found_at = [slice(solid[at], solid[at + len(wanted) - 1] + 1) for at in _occurrences(wanted, whole)]
        candidates.append([s for s in found_at if not any(_in_word(stream.text, e, edges) for e in (s.start, s.stop))])
    chosen = _only_way(candidates)
    places: Places = [None] * len(stream.text)
    begin = 0
    for inside in chosen or ():
        found, size = _follow(stream.text[inside], compared.text[begin:])
        if found is None:
            return None
        places[inside] = [(start + begin, end + begin) for start, end in found]
        begin += size
    return None if chosen is None else _placed(stream, places, compared, cut=False)


def _only_way(candidates: Sequence[Sequence[slice]]) -> list[slice] | None:
    """One place for each field, in order and apart; None where there is no way, or more than one."""
    ends, starts = [0], [max((s.stop for each in candidates for s in each), default=0)]
    for each in candidates:
        ends.append(min((s.stop for s in each if s.start >= ends[-1]), default=starts[0] + 1))
    for each in reversed(candidates):
        starts.append(max((s.start for s in each if s.stop <= starts[-1]), default=-1))
    after = zip(candidates, ends, reversed(starts[:-1]), strict=False)
    possible = [[s for s in each if end <= s.start and s.stop <= start] for each, end, start in after]
    return [each[0] for each in possible] if all(len(each) == 1 for each in possible) else None


def _occurrences(wanted: str, whole: str) -> Iterator[int]:
    """Where a text stands in another; a text that is empty stands nowhere."""
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = whole.find(wanted, at + 1)


def _in_word(text: str, place: int, edges: Collection[int] = ()) -> bool:
    """Whether a place lies between two characters of one word; scripts without spaces have words of one character."""
    return place not in edges and word_spans(text[place - 1 : place + 1]) == [(0, 2)]


def _word_edges(tokens: Sequence[str], stream: Stream) -> set[int]:
    """Where one word ends and another begins though no space is written: between tokens that are words themselves.

    A special token that was left out parts words in any writing.
    """
    parts = list(zip(tokens, stream.parts, strict=True))
    left_out = {start for token, (start, end) in parts if start == end and token}
    if any(token != token.strip() or token[:1] in {"Ġ", "▁"} for token in tokens):
        return left_out  # spaces are written, so where there is none a word goes on
    if any(token.endswith("</w>") for token in tokens):
        return left_out | {end for token, (_, end) in parts if token.endswith("</w>")}
    inner = {start for token, (start, _) in parts if token.startswith("##")}
    inner |= {end for token, (_, end) in parts if token.endswith("@@")}
    return left_out | {edge for part in stream.parts for edge in part} - inner


def _takes_marks_for_text(tokens: Sequence[str], stream: Stream) -> bool:
    """Whether a reading spells marks out that say that a word goes on, and so would end it there."""
    return any(
        _GOES_ON.search(token) is not None and stream.text[start:end] == token
        for token, (start, end) in zip(tokens, stream.parts, strict=True)
    )


def _compared(text: str, strict: bool) -> _Text:
    if strict:
        return _Text(text, list(range(len(text))))
    folded = [fold(c) for c in text]
    return _Text("".join(folded), [index for index, each in enumerate(folded) for _ in each])


def _follow(stream: str, text: str) -> tuple[list[tuple[int, int]] | None, int]:
    """The characters of the text behind each of the stream, and where they end; None as soon as one differs."""
    places: list[tuple[int, int]] = []
    at = 0
    for index, c in enumerate(stream):
        begin = at
        if c.isspace():
            at += at < len(text) and text[at].isspace()
            places.append((begin, at))
            continue
        while at < len(text) and text[at].isspace():
            at += 1
        begin = at
        if c == WORD:
            match = _UNKNOWN_WORD.match(text, at)
            at = match.end() if match else at
        elif c == RUN:
            at = _run_end(stream[index + 1 :], text, at)
        else:
            at += text[at : at + 1] == c
        if at == begin:
            return None, begin
        places.append((begin, at))
    return places, at


def _run_end(rest: str, text: str, at: int) -> int:
    """Where a run of unknown characters ends: before the next that is known, at a space at the latest."""
    following = "".join(rest.partition(RUN)[0].split())[:_AHEAD]
    end = at
    while end < len(text) and not text[end].isspace():
        end += 1
        if following and "".join(text[end : end + 2 * _AHEAD].split()).startswith(following):
            break
    return end


def _placed(stream: Stream, places: Sequence[tuple[int, int] | None], compared: _Text, *, cut: bool) -> Placed:
    return Placed([_shares(stream.text, part, places, compared) for part in stream.parts], cut)


def _shares(
    spelled: str, part: tuple[int, int], places: Sequence[tuple[int, int] | None], compared: _Text
) -> list[tuple[int, Fraction]]:
    solid = [index for index in range(*part) if not spelled[index].isspace()]
    counted = solid or list(range(*part))
    found: list[tuple[int, Fraction]] = []
    for index in counted:
        where = places[index]
        if where is not None:
            # A space that the text does not have is before the character that follows.
            behind = compared.source[slice(*where)] or [(*compared.source, len(compared.source))[where[0]]]
            found += [(character, Fraction(1, len(counted) * len(behind))) for character in behind]
    return found
