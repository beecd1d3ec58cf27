"""Attention rollout."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.models import AttentionMaps
from ice_eval.records import Encoded, PerToken, PerUnit


@attribution("attention-rollout", needs={"attention_maps"})
@dataclass(frozen=True, kw_only=True)
class AttentionRollout(Attribution):
    """Attention followed through the layers to the position that answers, half of it staying in place, per unit.

    Product over layers of `0.5 A + 0.5 I`, A the mean over heads: the half that stays is the residual connection. Abnar
    & Zuidema, 2020.
    """

    @property
    def passes(self) -> int:
        return 1

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.attention_maps(batch), strict=True)
        return [item.per_unit(_rolled_out(maps)) for item, maps in found]


def _rolled_out(maps: AttentionMaps) -> PerToken:
    # Only the row of the answer is asked for: from the last layer down, a vector times a matrix.
    row: PerToken = np.eye(maps.weights.shape[-1])[maps.position]
    for heads in maps.weights[::-1]:
        row = 0.5 * row @ heads.mean(axis=0, dtype=np.float64) + 0.5 * row
    return row
