"""Attributions of the passages that an answer was written from, or of their sentences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, Lens, attribution
from ice_eval.records import Encoded, PerUnit, Unit
from ice_eval.words import word_spans

_PASSAGES: tuple[Unit, ...] = ("sentence", "passage")


@attribution("cited", needs={"citations"})
@dataclass(frozen=True, kw_only=True)
class Cited(Attribution):
    """The passages that a claim cites, whatever their number: the answer's own explanation.

    A claim that cites all passages has no other set of that size, and is skipped.
    """

    units: ClassVar[tuple[Unit, ...]] = _PASSAGES

    @property
    def sized(self) -> bool:
        return True

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.cited(item) for item in batch]


@attribution("retrieval", needs={"retrieval"})
@dataclass(frozen=True, kw_only=True)
class Retrieval(Attribution):
    """The score that the retrieval gave to each passage, from the data; all sentences of a passage have its score."""

    units: ClassVar[tuple[Unit, ...]] = _PASSAGES

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.retrieval(item) for item in batch]


@attribution("bm25", needs={"citations"})
@dataclass(frozen=True, kw_only=True)
class BM25(Attribution):
    """Words that a passage shares with the claim, rare ones first (Okapi BM25; Robertson & Zaragoza, 2009).

    The passages shown with the question are the collection in which words are rare or frequent.
    """

    units: ClassVar[tuple[Unit, ...]] = _PASSAGES
    k1: float = 1.5
    b: float = 0.75

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self._scores(item.fields["claim"], item.texts) for item in batch]

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
