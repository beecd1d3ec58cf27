"""Overwrite every unit that is not kept with the unknown token."""

from dataclasses import dataclass

from ice_eval.operators._base import Operator, operator, or_end_of_text
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds


@operator("mask-unk")
@dataclass(frozen=True, kw_only=True)
class MaskUnk(Operator):
    """Units that are not kept become unknown tokens; end-of-text tokens where a model has no unknown one."""

    def prepare(self, special: SpecialIds) -> list[str]:
        return or_end_of_text("mask-unk", special.unk, special)[1]

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token, _ = or_end_of_text("mask-unk", item.special.unk, item.special)
        return item.overwritten(item.tokens_kept(keep), token)
