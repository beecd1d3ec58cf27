"""The units of some texts as their words use them: which of them are words, and which are pieces of words."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ice_eval.records import Encoded
from ice_eval.words import word_spans

UnitIds = tuple[int, ...]
Kind = Literal["full word", "prefix", "sub-word"]


@dataclass(frozen=True)
class Piece:
    """A unit as the data use it, wherever it stands."""

    text: str
    kind: Kind
    """What it mostly is: a word, the beginning of one, or another piece of one."""
    count: int
    """How often it stands in the data."""


def pieces(items: Sequence[Encoded]) -> dict[UnitIds, Piece]:
    """Every unit of the data, the most frequent first."""
    texts: dict[UnitIds, str] = {}
    kinds: dict[UnitIds, Counter[Kind]] = {}
    for ids, text, kind, _ in _placed(items):
        texts.setdefault(ids, text)
        kinds.setdefault(ids, Counter())[kind] += 1
    ranked = sorted(kinds, key=lambda ids: (-kinds[ids].total(), texts[ids]))
    return {ids: Piece(texts[ids], kinds[ids].most_common(1)[0][0], kinds[ids].total()) for ids in ranked}


def inside(items: Sequence[Encoded], words: Collection[str]) -> frozenset[UnitIds]:
    """Units that stand in one of the words at least every other time."""
    balance: Counter[UnitIds] = Counter()
    for ids, _, _, word in _placed(items):
        balance[ids] += 1 if word.casefold() in words else -1
    return frozenset(ids for ids, value in balance.items() if value >= 0)


def _placed(items: Sequence[Encoded]) -> Iterator[tuple[UnitIds, str, Kind, str]]:
    """Ids and text of every unit, what it is, and the word that it stands in or begins with."""
    for item in items:
        fields = {**item.fields, **item.whole}
        words = {name: word_spans(text) for name, text in fields.items()}
        for ids, span, text in zip(item.unit_ids(), item.spans, item.texts, strict=True):
            start, end = span.start + len(text) - len(text.lstrip()), span.end - len(text) + len(text.rstrip())
            place = bisect_right(words[span.field], (start, len(fields[span.field]))) - 1
            first, last = words[span.field][place] if place >= 0 else (start, end)
            kind: Kind = "sub-word" if start > first else "prefix" if end < last else "full word"
            yield tuple(ids.tolist()), text.strip(), kind, fields[span.field][first:last]
