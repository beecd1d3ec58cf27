"""Where tokens stand in their text, found from what they spell.

Pieces of byte-level vocabularies ("Ġgood", "Ã©") and of SentencePiece ("▁good", "<0xC3>") spell bytes. If all pieces in
a row spell the text, the characters behind each of them are known, whatever positions the tokenizer reports:

```text
text         n a ï     v e _  🙂
bytes        n a C3 AF v e 20 F0 9F 99 82
pieces       [na][Ã][¯ve  ][Ġ][ðŁ  ][ĻĤ ]
characters   0-2 2-3 2-5   5-6 6-7   6-7
```
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.records import Ids
from ice_eval.words import character_starts

_SPACE = "\u2581"
"""How SentencePiece writes a space."""
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()])
_ASCII_SPACES = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_DROPPED = frozenset("CMZ")
"""Kinds of characters that normalisers drop: control and format characters, accents, spaces."""


class Spans(NamedTuple):
    """First character of each token, and the one after its last."""

    start: Ids
    end: Ids


def spelled(text: str, pieces: Sequence[str]) -> Spans | None:
    """Where pieces stand that spell the text byte by byte, perhaps composed (NFC) or after one space more."""
    for written, spell in ((text, _byte_level), (text.replace(_SPACE, " "), _sentence_piece)):
        parts = [spell(piece) for piece in pieces]
        found = _exact(_as_it_is(written), parts)
        if found is None and not unicodedata.is_normalized("NFC", written):
            found = _exact(_read_as(written, functools.partial(unicodedata.normalize, "NFC")), parts)
        if found is not None:
            return found
    return None


def align(text: str, pieces: Sequence[str | None]) -> Spans | None:
    """Where pieces stand; None where it cannot be told.

    Pieces that do not spell the text exactly may differ from it in spaces, in case, in accents and in characters that
    normalisers drop or replace. An unknown token (None) takes what lies between its neighbours, if there is just one
    way to find them. Pieces of nothing but spaces share those between their neighbours.
    """
    known = [piece for piece in pieces if piece is not None]
    if len(known) == len(pieces) and (found := spelled(text, known)) is not None:
        return found
    forms = [form.solid() for form in _readings(text)]
    for spell in (_byte_level, _sentence_piece, _subword):
        parts = [None if piece is None else spell(piece).translate(None, _ASCII_SPACES) for piece in pieces]
        for form in forms:
            if (places := _places(form.data, parts)) is not None:
                return _with_spaces(form, *places)
    return None


def are_plausible(text: str, spans: Spans, pieces: Sequence[str]) -> bool:
    """Whether tokens may stand where a tokenizer says they do.

    Pieces that spell the text must stand where they spell it, but for the spaces around them. Those of a tokenizer
    that normalises, or of one with unknown tokens, must lie within the text, in order, and leave nothing out but what
    normalisers drop.
    """
    start, end = spans
    if not ((start >= 0) & (start <= end) & (end <= len(text))).all():
        return False
    expected = spelled(text, pieces)
    if expected is None:
        return _in_order(spans) and (_cover(text, spans) or _agree(text, spans, pieces))
    if np.array_equal(start, expected.start) and np.array_equal(end, expected.end):
        return True
    before = _solid_before(text)
    same = (before[start] == before[expected.start]) & (before[end] == before[expected.end])
    of_spaces = (start == end) & (before[expected.start] == before[expected.end])
    return bool((same | of_spaces).all())


@dataclass(frozen=True)
class _Form:
    """A text as a tokenizer may read it: its UTF-8, and the characters of the text behind each byte."""

    data: bytes
    start: Ids
    end: Ids
    length: int
    """Of the text, in characters."""

    def solid(self) -> "_Form":
        """The same without spaces."""
        kept = ~np.isin(np.frombuffer(self.data, dtype=np.uint8), np.frombuffer(_ASCII_SPACES, dtype=np.uint8))
        return _Form(self.data.translate(None, _ASCII_SPACES), self.start[kept], self.end[kept], self.length)


def _as_it_is(text: str) -> _Form:
    codes = _codes(text)
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)
    start = np.repeat(np.arange(len(text)), sizes)
    return _Form(text.encode("utf-8", "surrogatepass"), start, start + 1, len(text))


def _read_as(text: str, normalise: Callable[[str], str]) -> _Form:
    """A text that is normalised character by character."""
    first = np.flatnonzero(character_starts(text) == np.arange(len(text)))
    bounds = np.append(first, len(text))
    parts = [normalise(text[a:b]).encode("utf-8", "surrogatepass") for a, b in pairwise(bounds.tolist())]
    sizes = [len(part) for part in parts]
    return _Form(b"".join(parts), np.repeat(first, sizes), np.repeat(bounds[1:], sizes), len(text))


def _readings(text: str) -> Iterator[_Form]:
    """A text as it is, and as normalisers of more and more zeal leave it."""
    yield _as_it_is(text)
    for normalise in (_spaced, _composed, _compatible, _cleaned, _lowered, _bare):
        yield _read_as(text, normalise)


def _spaced(text: str) -> str:
    return "".join(" " if c.isspace() or c == _SPACE else c for c in text)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", _spaced(text))


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", _spaced(text))


def _cleaned(text: str) -> str:
    return "".join(c for c in _spaced(text) if not _is_noise(c))


def _lowered(text: str) -> str:
    return _cleaned(text).lower()


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", _lowered(text)) if unicodedata.category(c) != "Mn")


def _is_noise(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character).startswith("C")


@functools.cache
def _byte_alphabet() -> dict[str, int]:
    """The characters for bytes in byte-level vocabularies: printable ones stand for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    shown = {chr(byte): byte for byte in printable}
    return shown | {chr(0x100 + place): byte for place, byte in enumerate(others)}


@functools.lru_cache(maxsize=1 << 17)
def _byte_level(piece: str) -> bytes:
    alphabet = _byte_alphabet()
    if all(c in alphabet for c in piece):
        return bytes(alphabet[c] for c in piece)
    if len(piece) == 1 and ord(piece) < 0x100:  # vocabularies of bytes alone write them as they are
        return bytes([ord(piece)])
    return piece.encode("utf-8", "surrogatepass")  # and so are tokens that were added to a vocabulary


@functools.lru_cache(maxsize=1 << 17)
def _sentence_piece(piece: str) -> bytes:
    if match := _BYTE.fullmatch(piece):
        return bytes([int(match[1], 16)])
    return piece.replace(_SPACE, " ").encode("utf-8", "surrogatepass")


def _subword(piece: str) -> bytes:
    """Pieces that mark where words go on (`##ing`, `play@@`) or end (`ing</w>`)."""
    marked = piece if len(piece) < 3 else piece.removeprefix("##").removesuffix("@@")
    return marked.removesuffix("</w>").encode("utf-8", "surrogatepass")


def _exact(form: _Form, parts: Sequence[bytes]) -> Spans | None:
    joined = b"".join(parts)
    extra = len(joined) - len(form.data)
    if extra not in (0, 1) or joined != b" " * extra + form.data:
        return None
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    stop = np.cumsum(sizes) - extra
    first = np.maximum(stop - sizes, 0)
    start = np.append(form.start, form.length)[first]
    return Spans(start, np.where(stop > first, np.append(form.end, form.length)[stop - 1], start))


class _Places(NamedTuple):
    """First byte of each part, and the one after its last."""

    first: Ids
    stop: Ids


def _places(data: bytes, parts: Sequence[bytes | None]) -> _Places | None:
    """Where parts stand that make up the data, unknown ones (None) filling what is left; None if that is not one way.

    Unknown parts in a row share their bytes.
    """
    runs, run_of = [b""], []
    for part in parts:
        if part is None and (len(runs) == 1 or runs[-1]):
            runs.append(b"")
        run_of.append(len(runs) - 1)
        runs[-1] += part or b""
    at = _only_way(data, runs)
    if at is None:
        return None
    first, stop = [], []
    place = 0
    for part, run in zip(parts, run_of, strict=True):
        if part is None:
            first.append(at[run - 1] + len(runs[run - 1]))
            place = at[run]
        else:
            first.append(place)
            place += len(part)
        stop.append(place)
    return _Places(np.array(first, dtype=np.int64), np.array(stop, dtype=np.int64))


def _only_way(data: bytes, runs: Sequence[bytes]) -> list[int] | None:
    """Where runs stand that begin and end the data, in order, with something unknown between any two."""
    if len(runs) == 1:
        return [0] if data == runs[0] else None
    head, *inner, tail = runs
    if not data.startswith(head) or not data.endswith(tail) or len(head) + len(tail) >= len(data):
        return None
    low, high = len(head), len(data) - len(tail)
    earliest: list[int] = []
    latest: list[int] = []
    for run in inner:
        earliest.append(data.find(run, low + 1, high - 1))
        low = earliest[-1] + len(run)
    for run in reversed(inner):
        latest.insert(0, data.rfind(run, len(head) + 1, high - 1))
        high = latest[0]
    if -1 in earliest or earliest != latest:
        return None
    return [0, *earliest, len(data) - len(tail)]


def _with_spaces(form: _Form, first: Ids, stop: Ids) -> Spans:
    """Characters of parts of a text without spaces; those that are empty get the spaces where they stand."""
    full = stop > first
    start, end = np.append(form.start, form.length), np.append(form.end, form.length)
    reach = np.concatenate([[0], np.maximum.accumulate(form.end)])  # where the characters before a byte end
    gap_start, gap_end = reach[first], np.maximum(start[first], reach[first])
    return Spans(np.where(full, start[first], gap_start), np.where(full, end[stop - 1], gap_end))


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _solid_before(text: str) -> Ids:
    """How many characters that are no spaces begin before each place."""
    begins = (character_starts(text) == np.arange(len(text))) & ~np.isin(_codes(text), _SPACES)
    return np.concatenate([[0], np.cumsum(begins)])


def _in_order(spans: Spans) -> bool:
    full = spans.start < spans.end
    return bool((np.diff(spans.start[full]) >= 0).all() and (np.diff(spans.end[full]) >= 0).all())


def _cover(text: str, spans: Spans) -> bool:
    """Whether every character is in a span, at least in part, but for those that normalisers drop."""
    edges = np.bincount(spans.start, minlength=len(text) + 1) - np.bincount(spans.end, minlength=len(text) + 1)
    inside = np.cumsum(edges)[:-1] > 0
    missing = np.flatnonzero(~inside & ~np.isin(_codes(text), _SPACES))
    if not missing.size:
        return True
    starts = character_starts(text)
    begun = set(starts[inside].tolist())
    return all(int(starts[i]) in begun or _may_be_dropped(text[i]) for i in missing.tolist())


def _may_be_dropped(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character)[0] in _DROPPED


def _agree(text: str, spans: Spans, pieces: Sequence[str]) -> bool:
    """Whether all pieces spell what stands at their place, so that what no piece spells was left out by a tokenizer."""
    claimed = [
        text[a:b].encode("utf-8", "surrogatepass").translate(None, _ASCII_SPACES)
        for a, b in zip(spans.start.tolist(), spans.end.tolist(), strict=True)
    ]
    return any(
        claimed == [spell(piece).translate(None, _ASCII_SPACES) for piece in pieces]
        for spell in (_byte_level, _sentence_piece, _subword)
    )
