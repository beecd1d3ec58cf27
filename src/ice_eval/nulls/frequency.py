"""Sets of words that are as common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ice_eval.errors import DataError
from ice_eval.nulls._base import Null, counts_of, null
from ice_eval.nulls._strata import Strata
from ice_eval.rationales import Units
from ice_eval.records import Encoded

_UNSEEN = -1


@null("frequency")
@dataclass(frozen=True, kw_only=True)
class Frequency(Null):
    """Sets with as many units that occur 1 to 3 times in the data, 4 to 15 times, 16 to 63 times and so on."""

    needs_counts: ClassVar[bool] = True

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        if not counts:
            raise DataError("the null 'frequency' needs to know how often units occur in the data; give it counts.")
        return Strata.of([_band(count) for count in counts_of(item.texts, counts)], rationale)


def _band(count: int) -> int:
    """The whole part of log4 of a count, which floating point gets wrong; units that never occur are a band below."""
    return (count.bit_length() - 1) // 2 if count else _UNSEEN
