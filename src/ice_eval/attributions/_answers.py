"""Words that a model names in its answer, found in the text that it was asked about.

```text
answer   1. "Gorgeous"  2. plot: it drags  3. lovely          text   a gorgeous film , but the plot …
named    Gorgeous, plot                                               2        -      -   1
absent   lovely
```
"""

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import regex

from ice_eval.records import Encoded, PerUnit, Span
from ice_eval.words import character_starts, word_spans

_QUOTED = (
    r'"[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』|《[^》\n]+》|`[^`\n]+`|\*\*[^*\n]+\*\*'
    r"|(?<!\w)['‘][^'‘’\n]+['’](?!\w)"  # an apostrophe is no quotation mark
)
_IN_QUOTES = regex.compile(_QUOTED)
_SEPARATOR = r"[,，、،;；؛\n\r\t|]+|\s+(?=\(?\d{1,2}[.)]\s)"
_PIECE = regex.compile(rf"(?P<quoted>{_QUOTED})|(?P<separator>{_SEPARATOR})|.", regex.DOTALL)
_REMARK = regex.compile(r"[:：(（=→]|\s[-–—]+\s")
"""Between a word and what is said of it, or between an introduction and a word."""
_JOINT = regex.compile(rf"{_SEPARATOR}|(?:^|\s)(?:and|or|&)\s|[和与]")
_NUMBER = regex.compile(r"^[\s\-*•·‣▪–—>#]*(?:\(?(?:\d{1,2}|[A-Za-z](?=[.)]\s))[.):、](?!\d))?")
_EDGE = regex.compile(r"^[^\w\p{M}]+|[^\w\p{M}]+$")
_NAMEABLE = regex.compile(r"[\p{L}\p{N}\p{So}!?！？]")
_SAME = str.maketrans("’‘‛ʼ`´“”„‐‑–—", "''''''\"\"\"----")

Places = tuple[int, ...]
"""Units where a name stands; none where it is not in the text."""


class _Mention(NamedTuple):
    name: str
    places: Places


class Named(NamedTuple):
    """What an answer says of the units of a text."""

    values: PerUnit | None
    """By order of mention, the first the largest, 0 for what is not named; None where no word can be found."""
    n_named: int
    n_absent: int
    """Names that are not in the text, each counted once."""
    problem: str | None
    """Why there are no values."""


def named_units(answer: str, item: Encoded) -> Named:
    """Read a list of words in any of the ways in which lists are written, and find them in the text.

    A word may occur several times in the text: all its units share the number.
    """
    text = _Text(item)
    mentions = [mention for piece in _pieces(answer) for mention in _mentions(piece, text)]
    n_absent = len({mention.name.casefold() for mention in mentions if not mention.places})
    found = dict.fromkeys(mention.places for mention in mentions if mention.places)
    named = [places for places in found if not text.is_all(places)]
    if text.is_all(text.units_of(_bare(answer))) or (found and not named):
        return Named(None, 0, n_absent, "the model's answer repeats the whole text")
    if not named:
        said = f"no word that the model's answer names is in the text ({n_absent} named)"
        return Named(None, 0, n_absent, said if n_absent else "the model's answer names no word")
    values = np.zeros(item.n_units)
    for rank, places in enumerate(reversed(named), start=1):
        values[list(places)] = rank
    return Named(values, len(named), n_absent, None)


def _pieces(answer: str) -> Iterator[str]:
    """What stands between separators; those inside quotation marks separate nothing."""
    piece = ""
    for match in _PIECE.finditer(answer):
        if match["separator"]:
            yield piece
            piece = ""
        else:
            piece += match.group()
    yield piece


def _mentions(piece: str, text: "_Text") -> list[_Mention]:
    """The words that a piece of an answer names: as a whole, in quotes, beside a remark, or joined by "and"."""
    name = _bare(piece)
    if not name:
        return []
    whole = _Mention(name, text.units_of(name))
    if whole.places:
        return [whole]
    quoted = [_bare(match.group()) for match in _IN_QUOTES.finditer(piece)]
    if quoted and quoted != [name]:
        return [mention for each in quoted for mention in _mentions(each, text)]
    beside = [each for each in _REMARK.split(name) if each.strip()]
    if len(beside) > 1:
        # The word stands on either side, and the remark may hold words of the text too.
        sides = (_mentions(each, text) for each in beside)
        return next((side for side in sides if any(mention.places for mention in side)), [whole])
    joined = [each for each in _JOINT.split(name) if each.strip()]
    if joined != [name]:
        return [mention for each in joined for mention in _mentions(each, text)]
    return [whole]


def _bare(piece: str) -> str:
    """A name without its number in a list, its quotes and the marks around it, unless it is a mark itself."""
    name = _NUMBER.sub("", piece).strip()
    name = _EDGE.sub("", name) or name
    return name if _NAMEABLE.search(name) else ""


class _Text:
    """The explained fields of an example, to look for names in."""

    def __init__(self, item: Encoded) -> None:
        self._spans = item.spans
        self._nameable = {unit for unit, own in enumerate(item.texts) if _NAMEABLE.search(own.rstrip("!?！？"))}
        self._lines = [_Line(name, item.fields[name]) for name in dict.fromkeys(span.field for span in item.spans)]

    def is_all(self, places: Places) -> bool:
        """Whether these are all units but marks: who repeats a text names no word of it."""
        return bool(places) and self._nameable <= set(places)

    def units_of(self, name: str) -> Places:
        """Units of every occurrence, of whole words if there is one, else of parts between marks."""
        wanted = "".join(_folded(each) for each in _clusters(name))
        for whole in (True, False):
            found = [span for line in self._lines for span in line.find(wanted, whole=whole)]
            if found:
                return tuple(unit for unit, own in enumerate(self._spans) if any(_overlap(own, span) for span in found))
        return ()


class _Line:
    """A field without its spaces, in one case and one form of Unicode, and where each character comes from."""

    def __init__(self, field: str, text: str) -> None:
        self._field = field
        self._letters, self._from, self._to = "", list[int](), list[int]()
        place = 0
        for cluster in _clusters(text):
            for letter in _folded(cluster):
                self._letters += letter
                self._from.append(place)
                self._to.append(place + len(cluster))
            place += len(cluster)
        words = word_spans(text)
        self._begin, self._end = {start for start, _ in words}, {end for _, end in words}

    def find(self, wanted: str, *, whole: bool) -> Iterator[Span]:
        start = self._letters.find(wanted) if wanted else -1
        while start >= 0:
            stop = start + len(wanted)
            span = Span(self._field, self._from[start], self._to[stop - 1])
            if self._is_whole(span) if whole else self._is_apart(start) and self._is_apart(stop):
                yield span
            start = self._letters.find(wanted, start + 1)

    def _is_whole(self, span: Span) -> bool:
        return span.start in self._begin and span.end in self._end

    def _is_apart(self, place: int) -> bool:
        """Whether no word runs on here; the halves of a hyphenated one count as words."""
        if place in (0, len(self._letters)) or self._to[place - 1] < self._from[place]:
            return True
        return not (self._letters[place - 1].isalnum() and self._letters[place].isalnum())


def _clusters(text: str) -> Iterator[str]:
    """The characters of a text as people count them."""
    starts = [*np.unique(character_starts(text)).tolist(), len(text)] if text else []
    return (text[start:stop] for start, stop in zip(starts, starts[1:], strict=False))


def _folded(character: str) -> str:
    """A character in one case and one form; nothing for a space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return "".join(folded.translate(_SAME).split())


def _overlap(one: Span, other: Span) -> bool:
    return one.field == other.field and one.start < other.end and other.start < one.end
