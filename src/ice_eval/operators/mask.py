"""Overwrite every unit that is not kept with the mask token."""

from dataclasses import dataclass

from ice_eval.errors import CapabilityError
from ice_eval.operators._base import Operator, operator
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds


@operator("mask")
@dataclass(frozen=True, kw_only=True)
class Mask(Operator):
    """Units that are not kept become mask tokens: for models that were trained with one."""

    def prepare(self, special: SpecialIds) -> list[str]:
        if special.mask is None:
            raise CapabilityError(
                "the operator 'mask' needs a mask token, and this model has none; use mask-unk or mask-pad, or "
                "delete or infill where it reads plain text."
            )
        return []

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        assert item.special.mask is not None, "checked by prepare"
        return item.overwritten(item.tokens_kept(keep), item.special.mask)
