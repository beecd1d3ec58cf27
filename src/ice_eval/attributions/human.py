"""What a person marked as decisive."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit, Span


@attribution("human", needs={"human"})
@dataclass(frozen=True, kw_only=True)
class Human(Attribution):
    """A control: the share of each unit's characters that a person marked, from the data's `rationale`.

    The units with a mark are its rationale, however many they are. An example without one (nobody marked it, or the
    marks were cut off with the end of the text), or with marks everywhere, is counted as skipped.
    """

    @property
    def sized(self) -> bool:
        return True

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [_shares(item, lens.human(item)) for item in batch]


def _shares(item: Encoded, marked: Sequence[Span]) -> PerUnit:
    return np.array([_share(span, marked) for span in item.spans], dtype=np.float64)


def _share(unit: Span, marked: Sequence[Span]) -> float:
    """The share of a unit's characters that lie in a mark; marks may overlap."""
    inside = {
        place
        for mark in marked
        if mark.field == unit.field
        for place in range(max(mark.start, unit.start), min(mark.end, unit.end))
    }
    return len(inside) / (unit.end - unit.start)
