"""Attributions that use no model: chance, position, length, frequency, marks, citations and retrieval."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ice_eval.attributions._base import Attribution, Lens, attribution
from ice_eval.records import Encoded, PerUnit, Span, Unit
from ice_eval.words import word_spans

_LONG_UNITS: tuple[Unit, ...] = ("step", "sentence", "passage")
_PASSAGES: tuple[Unit, ...] = ("sentence", "passage")


class _Control(Attribution):
    """A control that looks at one example at a time."""

    @abstractmethod
    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        """Return a number for each unit."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self.of(lens, item) for item in batch]


@attribution("random")
class Random(_Control):
    """A uniform number per unit: its win rate is one half, and what departs from that is chance."""

    units = get_args(Unit)

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return lens.rng(item).random(item.n_units)


@attribution("first-k")
class FirstK(_Control):
    """A control: the earlier a unit stands, the higher its number."""

    units = get_args(Unit)

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return np.arange(item.n_units, 0, -1, dtype=np.float64)


@attribution("last-k")
class LastK(_Control):
    """A control: the later a unit stands, the higher its number."""

    units = get_args(Unit)

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return np.arange(1, item.n_units + 1, dtype=np.float64)


@attribution("longest-words")
class LongestWords(_Control):
    """A control: the number of characters of each unit."""

    units = get_args(Unit)

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return np.array([len(text.strip()) for text in item.texts], dtype=np.float64)


@attribution("length")
class StepLength(_Control):
    """A control: the longest steps or passages, by characters."""

    units = _LONG_UNITS

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return np.array([len(text) for text in item.texts], dtype=np.float64)


@attribution("position")
@dataclass(frozen=True, kw_only=True)
class StepPosition(_Control):
    """A control: the last steps or passages, or the first; explanations must beat it to say more than their order."""

    units = _LONG_UNITS
    highest: Literal["last", "first"] = "last"

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        sign = 1.0 if self.highest == "last" else -1.0
        return sign * np.arange(item.n_units, dtype=np.float64)


@attribution("rarest-tokens", needs={"counts"})
class RarestTokens(_Control):
    """A control: minus the logarithm of how often each unit occurs in the data (their first 2,000 examples)."""

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        # An example beyond those that were counted may hold a unit that never occurred.
        return -np.log(np.maximum(lens.counts(item), 0.5))


@attribution("lexicon", needs={"lexicon"})
class Lexicon(_Control):
    """A control: 1 for units that give a label away, else 0.

    These are the units that infill never writes: label words in all their forms, the words of the task's `lexicon`, and
    tokens that are used differently under different gold labels. The label they indicate is ignored.
    """

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return lens.lexicon(item)


@attribution("human", needs={"human"})
class Human(_Control):
    """A control: the share of each unit's characters that a person marked, from the data's `rationale`.

    The units with a mark are its rationale, whatever their number. An example without marks (or whose marks were
    truncated), or with marks everywhere, is counted as skipped.
    """

    sized = True

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return _marked_shares(item.spans, lens.human(item))


def _marked_shares(units: Sequence[Span], marks: Sequence[Span]) -> PerUnit:
    """Return the share of each unit's characters that are marked; marks may overlap."""
    marked = {(mark.field, place) for mark in marks for place in range(mark.start, mark.end)}
    inside = [sum((unit.field, place) in marked for place in range(unit.start, unit.end)) for unit in units]
    shares: PerUnit = np.array(inside, dtype=np.float64) / np.array([unit.end - unit.start for unit in units])
    return shares


@attribution("cited", needs={"citations"})
class Cited(_Control):
    """The passages that a claim cites, whatever their number: the answer's own explanation.

    A claim that cites all passages has no other set of that size, and is skipped.
    """

    units = _PASSAGES
    sized = True

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return lens.cited(item)


@attribution("retrieval", needs={"retrieval"})
class Retrieval(_Control):
    """The score that the retrieval gave to each passage, from the data; all sentences of a passage have its score."""

    units = _PASSAGES

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return lens.retrieval(item)


@attribution("bm25", needs={"citations"})
@dataclass(frozen=True, kw_only=True)
class BM25(_Control):
    """Words that a passage shares with the claim, rare ones first (Okapi BM25; Robertson & Zaragoza, 2009).

    The passages shown with the question are the collection in which words are rare or frequent.
    """

    units = _PASSAGES
    k1: float = 1.5
    b: float = 0.75

    def of(self, lens: Lens, item: Encoded) -> PerUnit:
        return self._scores(item.fields["claim"], item.texts)

    def _scores(self, claim: str, texts: Sequence[str]) -> PerUnit:
        counts = [Counter(_words(text)) for text in texts]
        lengths = np.array([each.total() for each in counts], dtype=np.float64)
        relative, found = lengths / max(lengths.mean(), 1.0), np.zeros(len(texts))
        for word in set(_words(claim)):
            tf = np.array([each[word] for each in counts], dtype=np.float64)
            n_with = np.count_nonzero(tf)
            rarity = np.log1p((len(texts) - n_with + 0.5) / (n_with + 0.5))
            found += rarity * tf * (self.k1 + 1) / (tf + self.k1 * (1 - self.b + self.b * relative))
        return found


def _words(text: str) -> list[str]:
    words = (text[start:end].casefold() for start, end in word_spans(text))
    return [word for word in words if any(map(str.isalnum, word))]
