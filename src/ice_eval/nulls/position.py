"""Sets that lie in the same parts of the text."""

from collections.abc import Mapping
from dataclasses import dataclass

from ice_eval.nulls._base import Null, null
from ice_eval.nulls._strata import Strata
from ice_eval.rationales import Units
from ice_eval.records import Encoded

_PARTS = 4


@null("position")
@dataclass(frozen=True, kw_only=True)
class Position(Null):
    """Sets with as many units in each quarter of the text: unit `i` of `n` lies in quarter `4 * i // n`."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([_PARTS * unit // item.n_units for unit in range(item.n_units)], rationale)
