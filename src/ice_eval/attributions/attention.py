"""Attention."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.attributions._base import Attribution, Lens, attribution
from ice_eval.records import Encoded, PerUnit


@attribution("attention", needs={"attentions"})
@dataclass(frozen=True, kw_only=True)
class Attention(Attribution):
    """Attention from the position that answers (last token, or [CLS]), mean over layers and heads, summed per unit."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [item.per_unit(weights) for item, weights in zip(batch, lens.attentions(batch), strict=True)]
