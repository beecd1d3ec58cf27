"""Overwrite every unit that is not kept with one fixed token."""

from dataclasses import dataclass

import numpy as np

from ice_eval.operators import Operator, operator
from ice_eval.records import Encoded, Fills, Ids, KeepMasks


@operator("mask-fixed")
@dataclass(frozen=True, kw_only=True)
class MaskFixed(Operator):
    """Units that are not kept become the token with this id."""

    token_id: int = 1

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> list[Ids]:
        return [np.where(item.tokens_kept(row), item.ids, self.token_id) for row in keep]
