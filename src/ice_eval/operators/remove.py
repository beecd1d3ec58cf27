"""Remove every unit that is not kept, or overwrite it with a special token: mask, padding or unknown."""

from dataclasses import dataclass
from typing import ClassVar, get_args

from ice_eval.errors import CapabilityError
from ice_eval.operators._base import Operator, operator
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds, Unit


@operator("delete")
@dataclass(frozen=True, kw_only=True)
class Delete(Operator):
    """Units that are not kept are removed; what stays keeps its order."""

    units: ClassVar[tuple[Unit, ...]] = get_args(Unit)

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        return item.without(item.tokens_kept(keep) & item.headings_kept(keep))


@operator("blank")
@dataclass(frozen=True, kw_only=True)
class Blank(Operator):
    """Passages that are not kept lose their text and keep their number, so that numbering gives nothing away."""

    units: ClassVar[tuple[Unit, ...]] = ("sentence", "passage")

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


@operator("mask-pad")
@dataclass(frozen=True, kw_only=True)
class MaskPad(Operator):
    """Units that are not kept become padding tokens with attention on; end-of-text tokens where there is none."""

    def prepare(self, special: SpecialIds) -> list[str]:
        return _or_end_of_text("mask-pad", special.pad, special)[1]

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token, _ = _or_end_of_text("mask-pad", item.special.pad, item.special)
        return item.overwritten(item.tokens_kept(keep), token)


@operator("mask-unk")
@dataclass(frozen=True, kw_only=True)
class MaskUnk(Operator):
    """Units that are not kept become unknown tokens; end-of-text tokens where a model has no unknown one."""

    def prepare(self, special: SpecialIds) -> list[str]:
        return _or_end_of_text("mask-unk", special.unk, special)[1]

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        token, _ = _or_end_of_text("mask-unk", item.special.unk, item.special)
        return item.overwritten(item.tokens_kept(keep), token)


def _or_end_of_text(name: str, token: int | None, special: SpecialIds) -> tuple[int, list[str]]:
    """Return a special token, or the end-of-text token in its place with a flag."""
    if token is not None:
        return token, []
    if special.end is None:
        raise CapabilityError(
            f"the operator '{name}' needs a token to write, and this model has no such token, or reads plain text."
        )
    return special.end, [f"{name}_writes_end_of_text"]
