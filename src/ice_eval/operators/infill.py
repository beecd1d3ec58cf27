"""Replace every unit that is not kept by a unit of another example."""

from dataclasses import dataclass
from typing import ClassVar

from ice_eval.operators._base import Operator, operator
from ice_eval.records import PROTECTED, Encoded, Fills, Inputs, KeepMasks


@operator("infill")
@dataclass(frozen=True, kw_only=True)
class Infill(Operator):
    """Retrieval infill: units that are not kept are overwritten by their fills.

    A fill has as many tokens as the unit it stands for, so the length is preserved.
    """

    needs_fills: ClassVar[bool] = True

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        replaced = item.ids.copy()
        # Units are numbered in the order of tokens, so their fills in order line up with the tokens of units.
        replaced[item.unit_of != PROTECTED] = fills
        return item.overwritten(item.tokens_kept(keep), replaced)
