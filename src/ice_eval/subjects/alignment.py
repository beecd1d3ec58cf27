"""The characters of a text behind its tokens, found from what the tokens spell.

Tokens spell bytes, and each vocabulary writes them in its own way. If all tokens in a row spell the text, the
characters behind each of them are known, whatever positions a tokenizer reports:

```text
text         n a ï     v e _  🙂
bytes        n a C3 AF v e 20 F0 9F 99 82
byte level   [na][Ã][¯ve  ][Ġ][ðŁ  ][ĻĤ ]            a letter for every byte, as in GPT-2, Llama 3 and Qwen
characters   0-2 2-3 2-5   5-6 6-7   6-7
with marks   ▁na | ïve | ▁ | <0xF0> …                ▁ Ġ Ċ ## @@ </w> and the bytes of SentencePiece
```

`align` is for the tokenizer of a model, whose tokens must cover the whole text; `place` is for tokens of another tool,
which may include a prompt around the text, or end before it does.
"""

import functools
import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import AnyStr, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ice_eval.records import Ids
from ice_eval.words import character_starts, word_spans

_SPACE = "\u2581"
_SPACE_MARKS = {_SPACE: " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t", "č": "\r"}
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()])
_ASCII_SPACES = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"


# How vocabularies spell bytes


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = sorted({*range(0x100)} - {*_PRINTABLE})
BYTE_ALPHABET = {chr(b): b for b in _PRINTABLE} | {chr(0x100 + place): b for place, b in enumerate(_OTHERS)}
"""The letters for bytes in byte-level vocabularies: printable bytes represent themselves."""


def _letters(token: str) -> bytes | None:
    """Return the bytes of letters; None where a letter represents none."""
    return bytes(BYTE_ALPHABET[c] for c in token) if all(c in BYTE_ALPHABET for c in token) else None


@functools.lru_cache(maxsize=1 << 17)
def _byte_level(piece: str) -> bytes:
    found = _letters(piece)
    if found is None and len(piece) == 1 and ord(piece) < 0x100:  # vocabularies of bytes alone write them as they are
        return bytes([ord(piece)])
    return _utf8(piece) if found is None else found  # tokens that were added to a vocabulary are plain text


@functools.lru_cache(maxsize=1 << 17)
def _sentence_piece(piece: str) -> bytes:
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else _utf8(piece.replace(_SPACE, " "))


def _subword(piece: str) -> bytes:
    """Spell pieces that mark where words continue (`##ing`, `play@@`) or end (`ing</w>`)."""
    marked = piece if len(piece) < 3 else piece.removeprefix("##").removesuffix("@@")
    return _utf8(marked.removesuffix("</w>"))


def _marked(token: str) -> bytes:
    if _BYTE.fullmatch(token):
        return _sentence_piece(token)
    bare = token.removeprefix("##").removesuffix("@@").removesuffix("</w>")
    return _utf8("".join(_SPACE_MARKS.get(c, c) for c in bare))


# Tokens of a model's own tokenizer


class Spans(NamedTuple):
    """First character of each token, and the one after its last."""

    start: Ids
    end: Ids


def spelled(text: str, pieces: Sequence[str]) -> Spans | None:
    """Locate pieces that spell the text byte by byte, perhaps composed (NFC) or after one space more."""
    for written, spell in ((text, _byte_level), (text.replace(_SPACE, " "), _sentence_piece)):
        parts = [spell(piece) for piece in pieces]
        found = _exact(_as_it_is(written), parts)
        if found is None and not unicodedata.is_normalized("NFC", written):
            found = _exact(normalised(written, functools.partial(unicodedata.normalize, "NFC")), parts)
        if found is not None:
            return found
    return None


def align(text: str, pieces: Sequence[str | None]) -> Spans | None:
    """Locate pieces in their text; None where that is not possible.

    Pieces that do not spell the text exactly may differ from it in spaces, in case, in accents and in characters that
    normalisers drop or replace. An unknown token (None) covers the characters between its neighbours, if there is just
    one way to find them. Pieces of nothing but spaces share those between their neighbours.
    """
    known = [piece for piece in pieces if piece is not None]
    if len(known) == len(pieces) and (found := spelled(text, known)) is not None:
        return found
    forms = [_as_it_is(text).solid(), *(normalised(text, each).solid() for each in _NORMALISERS)]
    for spell in (_byte_level, _sentence_piece, _subword):
        parts = [None if piece is None else spell(piece).translate(None, _ASCII_SPACES) for piece in pieces]
        for form in forms:
            if (places := _byte_places(form.data, parts)) is not None:
                return form.with_spaces(*places)
    return None


def are_plausible(text: str, spans: Spans, pieces: Sequence[str]) -> bool:
    """Return True if the positions that a tokenizer reports may be right.

    Pieces that spell the text must be where they spell it, except for the spaces around them. Those of a tokenizer that
    normalises, or of one with unknown tokens, must be within the text, in order, and omit only what normalisers drop.
    """
    start, end = spans
    if not ((start >= 0) & (start <= end) & (end <= len(text))).all():
        return False
    expected = spelled(text, pieces)
    if expected is None:
        full = start < end
        in_order = (np.diff(start[full]) >= 0).all() and (np.diff(end[full]) >= 0).all()
        if not in_order or _cover(text, spans):
            return bool(in_order)
        # Do all pieces spell the text at their position? Characters that no piece spells were dropped.
        claimed = [text[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]
        solid = [_utf8(each).translate(None, _ASCII_SPACES) for each in claimed]
        return any(
            solid == [spell(piece).translate(None, _ASCII_SPACES) for piece in pieces]
            for spell in (_byte_level, _sentence_piece, _subword)
        )
    if np.array_equal(start, expected.start) and np.array_equal(end, expected.end):
        return True
    begins = (character_starts(text) == np.arange(len(text))) & ~np.isin(_codes(text), _SPACES)
    before = np.concatenate([[0], np.cumsum(begins)])  # characters that are no spaces before each place
    same = (before[start] == before[expected.start]) & (before[end] == before[expected.end])
    of_spaces = (start == end) & (before[expected.start] == before[expected.end])
    return bool((same | of_spaces).all())


@dataclass(frozen=True)
class Form:
    """A text as a tokenizer may read it: its UTF-8, and the characters of the text behind each byte."""

    data: bytes
    start: Ids
    end: Ids
    length: int

    def solid(self) -> "Form":
        """Return the form without spaces."""
        kept = ~np.isin(np.frombuffer(self.data, dtype=np.uint8), np.frombuffer(_ASCII_SPACES, dtype=np.uint8))
        return Form(self.data.translate(None, _ASCII_SPACES), self.start[kept], self.end[kept], self.length)

    def with_spaces(self, first: Ids, stop: Ids) -> Spans:
        """Return the characters of parts of a text without spaces; empty parts get the spaces at their position."""
        full = stop > first
        start, end = np.append(self.start, self.length), np.append(self.end, self.length)
        reach = np.concatenate([[0], np.maximum.accumulate(self.end)])  # where the characters before a byte end
        gap_start, gap_end = reach[first], np.maximum(start[first], reach[first])
        return Spans(np.where(full, start[first], gap_start), np.where(full, end[stop - 1], gap_end))


def _as_it_is(text: str) -> Form:
    codes = _codes(text)
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    start = np.repeat(np.arange(len(text)), sizes)
    return Form(_utf8(text), start, start + 1, len(text))


def normalised(text: str, normalise: Callable[[str], str]) -> Form:
    """Return a text that is normalised character by character."""
    first = np.flatnonzero(character_starts(text) == np.arange(len(text)))
    bounds = np.append(first, len(text))
    parts = [_utf8(normalise(text[a:b])) for a, b in itertools.pairwise(bounds.tolist())]
    sizes = [len(part) for part in parts]
    return Form(b"".join(parts), np.repeat(first, sizes), np.repeat(bounds[1:], sizes), len(text))


def _spaced(text: str) -> str:
    return "".join(" " if c.isspace() or c == _SPACE else c for c in text)


def _cleaned(text: str) -> str:
    return "".join(c for c in _spaced(text) if not _is_dropped(c, "C"))


def _bare(text: str) -> str:
    """Return a text without accents and case."""
    plain = unicodedata.normalize("NFD", _cleaned(text).lower())
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


def _is_dropped(character: str, kinds: str) -> bool:
    """Return True if normalisers may drop a character of these kinds: control (C), accent (M) or space (Z)."""
    return character == "\ufffd" or unicodedata.category(character)[0] in kinds


_NORMALISERS: tuple[Callable[[str], str], ...] = (
    _spaced,
    lambda text: unicodedata.normalize("NFC", _spaced(text)),
    lambda text: unicodedata.normalize("NFKC", _spaced(text)),
    _cleaned,
    lambda text: _cleaned(text).lower(),
    _bare,
)
"""Normalisations of tokenizers, each of which changes more than the one before."""


def _exact(form: Form, parts: Sequence[bytes]) -> Spans | None:
    joined = b"".join(parts)
    extra = len(joined) - len(form.data)
    if extra not in (0, 1) or joined != b" " * extra + form.data:
        return None
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    stop = np.cumsum(sizes) - extra
    first = np.maximum(stop - sizes, 0)
    start = np.append(form.start, form.length)[first]
    return Spans(start, np.where(stop > first, np.append(form.end, form.length)[stop - 1], start))


def _byte_places(data: bytes, parts: Sequence[bytes | None]) -> tuple[Ids, Ids] | None:
    """Return the first byte of each part and the one after its last, if the parts make up the data in just one way."""
    # Unknown parts (None) fill what is left; those in a row share their bytes.
    runs, run_of = [b""], []
    for part in parts:
        if part is None and (len(runs) == 1 or runs[-1]):
            runs.append(b"")
        run_of.append(len(runs) - 1)
        runs[-1] += part or b""
    if len(runs) == 1:
        at = [slice(0, len(data))] if data == runs[0] else None
    else:
        head, *inner, tail = runs
        at = _only_way(
            [
                [slice(0, len(head))] if data.startswith(head) else [],
                *([slice(place, place + len(run)) for place in occurrences(run, data)] for run in inner),
                [slice(len(data) - len(tail), len(data))] if data.endswith(tail) else [],
            ],
            gap=1,
        )
    if at is None:
        return None
    first, stop, place = [], [], 0
    for part, run in zip(parts, run_of, strict=True):
        first.append(at[run - 1].stop if part is None else place)
        place = at[run].start if part is None else place + len(part)
        stop.append(place)
    return np.array(first, dtype=np.int64), np.array(stop, dtype=np.int64)


def _only_way(candidates: Sequence[Sequence[slice]], *, gap: int = 0) -> list[slice] | None:
    """Choose one position of each part, in order and at least `gap` apart; None where there is no way, or several."""
    earliest: list[slice] = []
    latest: list[slice] = []
    for each in candidates:
        after = [s for s in each if not earliest or s.start >= earliest[-1].stop + gap]
        if not after:
            return None
        earliest.append(min(after, key=lambda s: int(s.stop)))
    for each in reversed(candidates):
        before = [s for s in each if not latest or s.stop + gap <= latest[-1].start]
        latest.append(max(before, key=lambda s: int(s.start)))
    return earliest if earliest == latest[::-1] else None


def occurrences(wanted: AnyStr, whole: AnyStr) -> Iterator[int]:
    """Yield the positions of a text in another; none for an empty text."""
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = whole.find(wanted, at + 1)


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _cover(text: str, spans: Spans) -> bool:
    """Return True if every character is in a span, at least in part, except those that normalisers drop."""
    edges = np.bincount(spans.start, minlength=len(text) + 1) - np.bincount(spans.end, minlength=len(text) + 1)
    inside = np.cumsum(edges)[:-1] > 0
    missing = np.flatnonzero(~inside & ~np.isin(_codes(text), _SPACES))
    if not missing.size:
        return True
    starts = character_starts(text)
    begun = set(starts[inside].tolist())
    return all(int(starts[i]) in begun or _is_dropped(text[i], "CMZ") for i in missing.tolist())


# Tokens that another tool wrote

_SPECIAL = re.compile(
    r"\[(?:CLS|SEP|PAD|BOS|EOS|MASK)\]|<\|[^|<>]*\|>|<｜[^<>]*｜>|"
    r"</?s>|<(?:pad|bos|eos|cls|sep|mask|end|endoftext|start_of_turn|end_of_turn)>|\[/?INST\]"
)
"""Tokens that frame a text and belong to none."""
_UNKNOWN = frozenset({"[UNK]", "<unk>", "<UNK>", "⁇", "▁⁇"})
_WORD, _RUN = "\U0010fffe", "\U0010ffff"
"""Placeholders for an unknown token (WordPiece: a word, SentencePiece: a run of characters); in no text."""
_LONE_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))
"""Decoded bytes that are not a character."""
_UNKNOWN_WORD = regex.compile(r"[\p{P}$+<=>^`|~\p{Han}]|[^\s\p{P}$+<=>^`|~\p{Han}]+")
"""A word of WordPiece: a mark or a Chinese character by itself, or all up to the next."""
_GOES_ON = regex.compile(r"^##\w|\w@@$|\w</w>$")
_AHEAD = 3
"""Number of characters after an unknown token that locate its end."""
_MANY = 32
"""Fewest tokens of a text that may be cut inside a word: tools cut long texts at a number of sub-words."""

Shares = list[tuple[int, Fraction]]  # characters of a text, and the share of a token that each carries


class Placed(NamedTuple):
    shares: list[Shares]
    """For each token, the characters that it spells and the share of the token that each carries.

    The shares of a token that is partly outside the text sum to less than 1. A token of spaces is at its spaces, or
    before the next character where the text has none. Fractions, so that a token inside a unit gives all it has.
    """
    cut: bool
    """True if the text continues after the last token."""


def place(tokens: Sequence[str], fields: Sequence[str]) -> Placed | None:
    """Locate tokens of any vocabulary in the fields of a text, joined by new lines; None if they spell something else.

    Spaces are ignored: tokenizers write them before, after or not at all. The first of these that holds is used, as the
    tokens are written or else ignoring case, accents and width:

    1. the tokens spell the text;
    2. they spell more, and the text once inside it (a prompt around the text, which begins and ends no word of it): the
       rest is ignored;
    3. they spell the beginning of the text (a tool that cut it): the rest has no score. A few tokens that end inside a
       word are of another text.
    """
    streams = list(_streams(tokens))
    attempts = (
        (streams, functools.partial(_whole, to_end=True)),
        ([each for each in streams if not each.spells_marks(tokens)], _inside),
        ([each.ended() for each in streams], functools.partial(_whole, to_end=False)),
    )
    for candidates, attempt in attempts:
        for strict, stream in itertools.product((True, False), candidates):
            found = attempt(stream if strict else stream.mapped(_fold), fields=fields, strict=strict)
            if found is not None:
                return found
    return None


def folded(text: str) -> str:
    """Return a text without spaces, case, accents and width, for comparison."""
    return "".join("".join(map(_fold, text)).split())


def word_places(word: str, text: str) -> list[tuple[int, int]]:
    """Return where a text has a whole word, as it is written or else ignoring case, accents and width."""
    for strict in (True, False):
        wanted, (whole, source) = _compared(word, strict)[0], _compared(text, strict)
        spans = ((at, at + len(wanted)) for at in occurrences(wanted, whole))
        found = [(a, b) for a, b in spans if not (_in_word(whole, a) or _in_word(whole, b))]
        if found:
            return [(source[a], source[b - 1] + 1) for a, b in found]
    return []


def side_by_side(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """Return two tokenisations of what should be one text around the first difference, which is marked »so«."""
    ends = [0, *itertools.accumulate(map(len, ours))]
    streams = [_Stream("".join(ours), tuple(itertools.pairwise(ends))), *_streams(theirs)]
    our_stream, *their_streams = (stream.mapped(lambda c: "" if c.isspace() else _fold(c)) for stream in streams)
    common = [len(os.path.commonprefix([stream.text, our_stream.text])) for stream in their_streams]
    n_same = max(common)
    their_stream = their_streams[common.index(n_same)]
    return f"theirs: {_shown(theirs, their_stream, n_same)}\nours:   {_shown(ours, our_stream, n_same)}"


def _shown(pieces: Sequence[str], stream: "_Stream", place: int) -> str:
    """Return the pieces around the one at a position of the stream, which is marked."""
    marked = next((index for index, (start, end) in enumerate(stream.parts) if start <= place < end), len(pieces))
    first, last = max(0, marked - 6), marked + 5
    shown = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in p.strip() or p) for p in pieces[first:last]]
    if marked < len(pieces):
        shown[marked - first] = f"»{shown[marked - first]}«"
    else:
        shown.append("»end«")
    return ("… | " if first else "") + " | ".join(shown) + (" | …" if last < len(pieces) else "")


@functools.cache
def _fold(c: str) -> str:
    """Return a character without case, accents and width; empty for control characters."""
    if c.isspace() or c in (_WORD, _RUN):
        return c
    plain = unicodedata.normalize("NFKD", c).casefold()
    kept = "".join(each for each in plain if unicodedata.category(each) not in {"Mn", "Cc", "Cf"})
    return kept.replace(" ", "")


@dataclass(frozen=True)
class _Stream:
    """The characters that tokens spell, and the share of them that each token has; a character may have several."""

    text: str
    parts: tuple[tuple[int, int], ...]
    edges: frozenset[int] = frozenset()
    """Positions where one word ends and another begins without a space."""

    def mapped(self, change: Callable[[str], str]) -> "_Stream":
        changed = [change(c) for c in self.text]
        places = [0, *itertools.accumulate(map(len, changed))]
        parts = tuple((places[start], places[end]) for start, end in self.parts)
        return _Stream("".join(changed), parts, frozenset(places[edge] for edge in self.edges))

    def ended(self) -> "_Stream":
        """Return the stream without an incomplete character at the end, where a cut went through one."""
        whole = len(self.text.rstrip(_LONE_BYTES))
        return _Stream(self.text[:whole], tuple((min(start, whole), min(end, whole)) for start, end in self.parts))

    def spells_marks(self, tokens: Sequence[str]) -> bool:
        """Return True if marks for the continuation of a word are read as text, which would end the word there."""
        parts = zip(tokens, self.parts, strict=True)
        return any(_GOES_ON.search(token) is not None and self.text[slice(*part)] == token for token, part in parts)


def _streams(tokens: Sequence[str]) -> Iterator[_Stream]:
    """Yield readings of the tokens in all known notations, the most literal one first."""
    for placeholder in (None, _WORD, _RUN) if any(token in _UNKNOWN for token in tokens) else (None, _WORD):
        for spell in (_utf8, _marked, _letters):
            spelled = [spell(token) for token in tokens]
            for index, token in enumerate(tokens if placeholder else ()):
                if _SPECIAL.fullmatch(token.strip("Ġ▁ ")):
                    spelled[index] = b""
                elif token in _UNKNOWN:
                    spelled[index] = None if placeholder is None else placeholder.encode()
            known = [each for each in spelled if each is not None]
            if len(known) < len(spelled):
                continue
            text = b"".join(known).decode("utf-8", "surrogateescape")
            character = [place for place, c in enumerate(text) for _ in c.encode("utf-8", "surrogateescape")]
            character.append(len(text))
            ends = itertools.pairwise([0, *itertools.accumulate(map(len, known))])
            parts = [(character[a], character[b - 1] + 1 if b > a else character[a]) for a, b in ends]
            yield _Stream(text, tuple(parts), frozenset(_word_edges(tokens, parts)))


def _word_edges(tokens: Sequence[str], parts: Sequence[tuple[int, int]]) -> set[int]:
    """Return where one word ends and another begins without a space: between tokens that are words themselves."""
    # A skipped special token separates words in any notation.
    pairs = list(zip(tokens, parts, strict=True))
    left_out = {start for token, (start, end) in pairs if start == end and token}
    if any(token != token.strip() or token[:1] in {"Ġ", "▁"} for token in tokens):
        return left_out  # spaces are written, so where there is none a word goes on
    if any(token.endswith("</w>") for token in tokens):
        return left_out | {end for token, (_, end) in pairs if token.endswith("</w>")}
    inner = {start for token, (start, _) in pairs if token.startswith("##")}
    inner |= {end for token, (_, end) in pairs if token.endswith("@@")}
    return left_out | {edge for part in parts for edge in part} - inner


def _compared(text: str, strict: bool) -> tuple[str, list[int]]:
    """Return a text for comparison, and the original position of each of its characters."""
    changed = list(text) if strict else [_fold(c) for c in text]
    return "".join(changed), [index for index, each in enumerate(changed) for _ in each]


def _whole(stream: _Stream, *, fields: Sequence[str], to_end: bool, strict: bool) -> Placed | None:
    """Match a stream that spells the text up to its end, or just its beginning."""
    wanted, source = _compared("\n".join(fields), strict)
    places, end = _follow(stream.text, wanted)
    rest = wanted[end:].strip()
    is_short = rest and len(stream.parts) < _MANY and _in_word(wanted, end)
    if places is None or (to_end and rest) or not stream.text.strip() or is_short:
        return None
    return _placed(stream, places, source, cut=bool(rest))


def _inside(stream: _Stream, *, fields: Sequence[str], strict: bool) -> Placed | None:
    """Match the fields one after another in a stream that spells more: in just one way, and with whole words."""
    wanted, source = _compared("\n".join(fields), strict)
    solid = [index for index, c in enumerate(stream.text) if not c.isspace()]
    whole = "".join(stream.text[index] for index in solid)
    candidates: list[list[slice]] = []
    for field in fields:
        letters = "".join(_compared(field, strict)[0].split())
        at = [slice(solid[first], solid[first + len(letters) - 1] + 1) for first in occurrences(letters, whole)]
        is_inner = functools.partial(_in_word, stream.text, edges=stream.edges)
        candidates.append([each for each in at if not (is_inner(each.start) or is_inner(each.stop))])
    chosen = _only_way(candidates)
    if chosen is None:
        return None
    places: list[tuple[int, int] | None] = [None] * len(stream.text)
    begin = 0
    for each in chosen:
        found, size = _follow(stream.text[each], wanted[begin:])
        if found is None:
            return None
        places[each] = [(start + begin, end + begin) for start, end in found]
        begin += size
    return _placed(stream, places, source, cut=False)


def _in_word(text: str, place: int, edges: Collection[int] = ()) -> bool:
    """Return True if a position is between two characters of one word; unspaced scripts have words of one character."""
    return place not in edges and word_spans(text[place - 1 : place + 1]) == [(0, 2)]


def _follow(stream: str, text: str) -> tuple[list[tuple[int, int]] | None, int]:
    """Return the characters of the text behind each of the stream, and their end; None as soon as one differs."""
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
        if c == _WORD:
            match = _UNKNOWN_WORD.match(text, at)
            at = match.end() if match else at
        elif c == _RUN:
            at = _run_end(stream[index + 1 :], text, at)
        else:
            at += text[at : at + 1] == c
        if at == begin:
            return None, begin
        places.append((begin, at))
    return places, at


def _run_end(rest: str, text: str, at: int) -> int:
    """Return the end of a run of unknown characters: before the next that is known, at a space at the latest."""
    following = "".join(rest.partition(_RUN)[0].split())[:_AHEAD]
    while at < len(text) and not text[at].isspace():
        at += 1
        if following and "".join(text[at : at + 2 * _AHEAD].split()).startswith(following):
            break
    return at


def _placed(stream: _Stream, places: Sequence[tuple[int, int] | None], source: Sequence[int], *, cut: bool) -> Placed:
    """Spread each token over the characters behind its own; `places` are None outside the text."""
    tokens: list[Shares] = []
    for part in stream.parts:
        counted = [index for index in range(*part) if not stream.text[index].isspace()] or range(*part)
        shares: Shares = []
        for where in (places[index] for index in counted):
            if where is not None:
                # A space that the text does not have is before the character that follows.
                behind = source[slice(*where)] or [(*source, len(source))[where[0]]]
                shares += [(character, Fraction(1, len(counted) * len(behind))) for character in behind]
        tokens.append(shares)
    return Placed(tokens, cut)
