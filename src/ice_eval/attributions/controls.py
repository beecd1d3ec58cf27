"""Controls: attributions that use no model, from chance to human marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from ice_eval.attributions._base import Attribution, Lens, attribution
from ice_eval.records import Encoded, PerUnit, Span, Unit

_EVERY: tuple[Unit, ...] = get_args(Unit)


@attribution("random")
@dataclass(frozen=True, kw_only=True)
class Random(Attribution):
    """A uniform number per unit: its win rate is one half, and what departs from that is chance."""

    units: ClassVar[tuple[Unit, ...]] = _EVERY

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.rng(item).random(item.n_units) for item in batch]


@attribution("first-k")
@dataclass(frozen=True, kw_only=True)
class FirstK(Attribution):
    """A control: the earlier a unit stands, the higher its number."""

    units: ClassVar[tuple[Unit, ...]] = _EVERY

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.arange(item.n_units, 0, -1, dtype=np.float64) for item in batch]


@attribution("last-k")
@dataclass(frozen=True, kw_only=True)
class LastK(Attribution):
    """A control: the later a unit stands, the higher its number."""

    units: ClassVar[tuple[Unit, ...]] = _EVERY

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.arange(1, item.n_units + 1, dtype=np.float64) for item in batch]


@attribution("longest-words")
@dataclass(frozen=True, kw_only=True)
class LongestWords(Attribution):
    """A control: the number of characters of each unit."""

    units: ClassVar[tuple[Unit, ...]] = _EVERY

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.array([len(text.strip()) for text in item.texts], dtype=np.float64) for item in batch]


@attribution("rarest-tokens", needs={"counts"})
@dataclass(frozen=True, kw_only=True)
class RarestTokens(Attribution):
    """A control: minus the logarithm of how often each unit occurs in the data (their first 2,000 examples)."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        # An example beyond those that were counted may hold a unit that never occurred.
        return [-np.log(np.maximum(lens.counts(item), 0.5)) for item in batch]


@attribution("lexicon", needs={"lexicon"})
@dataclass(frozen=True, kw_only=True)
class Lexicon(Attribution):
    """A control: 1 for units that give a label away, else 0.

    These are the units that infill never writes: label words in all their forms, the words of the task's `lexicon`, and
    tokens that are used differently under different gold labels. The label they indicate is ignored.
    """

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.lexicon(item) for item in batch]


@attribution("human", needs={"human"})
@dataclass(frozen=True, kw_only=True)
class Human(Attribution):
    """A control: the share of each unit's characters that a person marked, from the data's `rationale`.

    The units with a mark are its rationale, whatever their number. An example without marks (or whose marks were
    truncated), or with marks everywhere, is counted as skipped.
    """

    @property
    def sized(self) -> bool:
        return True

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [_marked_shares(item.spans, lens.human(item)) for item in batch]


def _marked_shares(units: Sequence[Span], marks: Sequence[Span]) -> PerUnit:
    """Return the share of each unit's characters that are marked; marks may overlap."""
    marked = {(mark.field, place) for mark in marks for place in range(mark.start, mark.end)}
    inside = [sum((unit.field, place) in marked for place in range(unit.start, unit.end)) for unit in units]
    shares: PerUnit = np.array(inside, dtype=np.float64) / np.array([unit.end - unit.start for unit in units])
    return shares
