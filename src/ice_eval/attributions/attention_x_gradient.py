"""Attention times its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.models import AttentionMaps
from ice_eval.records import Encoded, PerToken, PerUnit


@attribution("attention-x-gradient", needs={"attention_maps"})
@dataclass(frozen=True, kw_only=True)
class AttentionXGradient(Attribution):
    """Attention from the position that answers, times the gradient of the target's log-odds there where it is positive.

    Mean over layers and heads of `relu(A * dA)` (the product of Grad-SAM, Barkan et al., 2021). With `through=true` the
    products are followed through the layers, `R = R + mean_heads(relu(A * dA)) R` from the first on (Chefer et al.,
    2021), so that what other tokens hand on counts too.
    """

    through: bool = False
    """Whether attention of other positions counts, as far as it reaches the one that answers."""

    @property
    def passes(self) -> int:
        return 3

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        reduce = _through if self.through else _direct
        found = zip(batch, lens.attention_maps(batch, gradients=True), strict=True)
        return [item.per_unit(reduce(maps)) for item, maps in found]


def _direct(maps: AttentionMaps) -> PerToken:
    assert maps.gradients is not None
    read = np.s_[:, :, maps.position]
    products = maps.weights[read].astype(np.float64) * maps.gradients[read]
    mean: PerToken = np.maximum(products, 0).mean(axis=(0, 1))
    return mean


def _through(maps: AttentionMaps) -> PerToken:
    assert maps.gradients is not None
    start: PerToken = np.eye(maps.weights.shape[-1])[maps.position]
    row = start
    for weights, slopes in zip(maps.weights[::-1], maps.gradients[::-1], strict=True):
        row = row + row @ np.maximum(weights * slopes, 0).mean(axis=0, dtype=np.float64)
    return row - start  # the position that answers is no reason for itself
