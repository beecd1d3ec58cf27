"""Remove every unit that is not kept."""

from dataclasses import dataclass
from typing import ClassVar, get_args

from ice_eval.operators._base import Operator, operator
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, Unit


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
