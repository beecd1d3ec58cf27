"""Remove every unit that is not kept, or overwrite it with a special token: mask, padding or unknown."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from ice_eval.errors import CapabilityError
from ice_eval.operators._base import Operator, operator
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds, Unit


@operator("delete")
@dataclass(frozen=True, kw_only=True)
class Delete(Operator):
    """Units that are not kept are removed; what stays keeps its order."""

    units = get_args(Unit)

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        return item.without(item.tokens_kept(keep) & item.headings_kept(keep))


@operator("blank")
@dataclass(frozen=True, kw_only=True)
class Blank(Operator):
    """Passages that are not kept lose their text and keep their number, so that numbering gives nothing away."""

    units = ("sentence", "passage")

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        return item.without(item.tokens_kept(keep))


@operator("mask")
@dataclass(frozen=True, kw_only=True)
class Mask(Operator):
    """Units that are not kept become mask tokens: for models that were trained with one."""

    def prepare(self, special: SpecialIds) -> list[str]:
        if special.mask is None:
            raise CapabilityError(
                "the operator 'mask' needs a mask token that the model was trained with, and this model has none."
            )
        return []

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        assert item.special.mask is not None, "checked by prepare"
        return item.overwritten(item.tokens_kept(keep), item.special.mask)


@dataclass(frozen=True, kw_only=True)
class _SpecialToken(Operator):
    """Units that are not kept become tokens of one kind; end-of-text tokens, and a flag, where a model has none."""

    kind: ClassVar[Literal["pad", "unk"]]

    def prepare(self, special: SpecialIds) -> list[str]:
        if self._token(special) is None:
            raise CapabilityError(
                f"the operator 'mask-{self.kind}' needs a token to write, and this model has no such token, or reads "
                "plain text."
            )
        return [] if getattr(special, self.kind) is not None else [f"mask-{self.kind}_writes_end_of_text"]

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token = self._token(item.special)
        assert token is not None, "checked by prepare"
        return item.overwritten(item.tokens_kept(keep), token)

    def _token(self, special: SpecialIds) -> int | None:
        own: int | None = getattr(special, self.kind)
        return special.end if own is None else own


@operator("mask-pad")
@dataclass(frozen=True, kw_only=True)
class MaskPad(_SpecialToken):
    """Units that are not kept become padding tokens with attention on; end-of-text tokens where there is none."""

    kind = "pad"


@operator("mask-unk")
@dataclass(frozen=True, kw_only=True)
class MaskUnk(_SpecialToken):
    """Units that are not kept become unknown tokens; end-of-text tokens where a model has no unknown one."""

    kind = "unk"
