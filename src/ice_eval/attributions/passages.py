"""Attributions of the passages that an answer was written from, or of their sentences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens, PerRow
from ice_eval.attributions.perturbation import Perturbation, all_fit, all_masks, check_samples
from ice_eval.errors import ConfigError
from ice_eval.records import Encoded, KeepMasks, PerUnit, Unit
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


@attribution("bm25")
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
        found = np.zeros(len(texts))
        for word in set(_words(claim)):
            tf = np.array([each[word] for each in counts], dtype=np.float64)
            n_with = np.count_nonzero(tf)
            rarity = np.log1p((len(texts) - n_with + 0.5) / (n_with + 0.5))
            found += rarity * tf * (self.k1 + 1) / (tf + self.k1 * (1 - self.b + self.b * lengths / lengths.mean()))
        return found


def _words(text: str) -> list[str]:
    words = (text[start:end].casefold() for start, end in word_spans(text))
    return [word for word in words if any(map(str.isalnum, word))]


@attribution("context-cite", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class ContextCite(Perturbation):
    """Weights of a sparse linear model of the claim's log-probability (ContextCite; Cohen-Wang et al., 2024).

    Every probe keeps each unit with probability one half. The regression is a LASSO on standardised columns. Where
    there are no more sets than probes, all are probed.
    """

    units: ClassVar[tuple[Unit, ...]] = ("token", "word", "sentence", "passage")
    n_samples: int = 64
    """Probes of an example."""
    alpha: float = 0.01
    """Weight of the penalty."""

    def __post_init__(self) -> None:
        check_samples(self.n_samples, least=2)
        if not 0 < self.alpha < np.inf:
            raise ConfigError(f"context-cite: alpha = {self.alpha}; a positive number is needed.")

    def n_probes(self, n_units: int) -> int:
        return 2**n_units if all_fit(n_units, self.n_samples) else self.n_samples

    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        return all_masks(n_units) if all_fit(n_units, self.n_samples) else rng.random((self.n_samples, n_units)) < 0.5

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        from sklearn.linear_model import Lasso

        spread = masks.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        columns = (masks - masks.mean(axis=0)) / scale
        return np.asarray(Lasso(alpha=self.alpha).fit(columns, values).coef_ / scale, dtype=np.float64)
