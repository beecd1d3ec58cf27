"""All sets of the same size: the null of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass

from ice_eval.nulls._base import Null, null
from ice_eval.nulls._strata import Strata
from ice_eval.rationales import Units
from ice_eval.records import Encoded


@null("size")
@dataclass(frozen=True, kw_only=True)
class Size(Null):
    """All sets of as many units."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([0] * item.n_units, rationale)
