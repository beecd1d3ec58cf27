"""Overwrite every unit that is not kept, whatever special tokens a model has."""

from dataclasses import dataclass

from ice_eval.errors import CapabilityError
from ice_eval.operators import Operator, operator
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds


@operator("mask-any")
@dataclass(frozen=True, kw_only=True)
class MaskAny(Operator):
    """Units that are not kept become mask tokens, or else unknown or padding tokens: the first that a model has."""

    def prepare(self, special: SpecialIds) -> list[str]:
        if _token(special) is None:
            raise CapabilityError("the operator 'mask-any' needs a special token, and this model has none; use delete.")
        return []

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token = _token(item.special)
        assert token is not None, "checked by prepare"
        return item.overwritten(item.tokens_kept(keep), token)


def _token(special: SpecialIds) -> int | None:
    return next((token for token in (special.mask, special.unk, special.pad) if token is not None), None)
