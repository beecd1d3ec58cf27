"""Overwrite every unit that is not kept with the padding token, which the model still attends to."""

from dataclasses import dataclass

from ice_eval.operators._base import Operator, operator, or_end_of_text
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds


@operator("mask-pad")
@dataclass(frozen=True, kw_only=True)
class MaskPad(Operator):
    """Units that are not kept become padding tokens with attention on; end-of-text tokens where there is none."""

    def prepare(self, special: SpecialIds) -> list[str]:
        return or_end_of_text("mask-pad", special.pad, special)[1]

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token, _ = or_end_of_text("mask-pad", item.special.pad, item.special)
        return item.overwritten(item.tokens_kept(keep), token)
