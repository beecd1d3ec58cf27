"""Replace every unit that is not kept by a unit of another example."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.operators._base import Operator, operator
from ice_eval.records import PROTECTED, Encoded, Fills, Ids, KeepMasks


@operator("infill")
@dataclass(frozen=True, kw_only=True)
class Infill(Operator):
    """Retrieval infill: units that are not kept are overwritten by their fills.

    A fill has as many tokens as the unit it stands for, so the length is preserved.
    """

    needs_fills: ClassVar[bool] = True

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> list[Ids]:
        replaced = item.ids.copy()
        inside = item.unit_of != PROTECTED
        # Units are runs of tokens in order, so their fills in order line up with the content tokens.
        if inside.any():
            replaced[inside] = np.concatenate(list(fills))
        return [np.where(item.tokens_kept(row), item.ids, replaced) for row in keep]
