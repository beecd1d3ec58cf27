"""Attention from the position that answers, followed through the layers, and times its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from ice_eval.attributions._base import Attribution, Lens, attribution
from ice_eval.errors import ConfigError
from ice_eval.models import AttentionMaps
from ice_eval.records import Encoded, PerToken, PerUnit, Unit


@attribution("attention", needs={"attentions"})
@dataclass(frozen=True, kw_only=True)
class Attention(Attribution):
    """Attention from the position that answers (last token, or [CLS]), mean over layers and heads, summed per unit."""

    units = get_args(Unit)
    layer: int | None = None
    """Only this layer, from 0 on or, negative, from the last; layers without attention are not counted."""
    head: int | None = None
    """Only this head."""

    def __post_init__(self) -> None:
        if self.layer is not None or self.head is not None:
            object.__setattr__(self, "needs", frozenset({"attention_maps"}))  # the mean is cheaper, and not enough

    @property
    def passes(self) -> int:
        return int("attention_maps" in self.needs)

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        if "attention_maps" in self.needs:
            found = [self._chosen(maps) for maps in lens.attention_maps(batch)]
        else:
            found = lens.attentions(batch)
        return [item.per_unit(weights) for item, weights in zip(batch, found, strict=True)]

    def _chosen(self, maps: AttentionMaps) -> PerToken:
        weights = maps.weights[:, :, maps.position].astype(np.float64)
        for axis, (name, index) in enumerate((("layer", self.layer), ("head", self.head))):
            if index is not None:
                n_known = weights.shape[axis]
                if not -n_known <= index < n_known:
                    raise ConfigError(
                        f"attention: {name} = {index}, and the model has {n_known} {name}s with attention: 0 … "
                        f"{n_known - 1}, or negative from the last."
                    )
                weights = weights.take([index], axis=axis)
        mean: PerToken = weights.mean(axis=(0, 1))
        return mean


@attribution("attention-rollout", needs={"attention_maps"})
class AttentionRollout(Attribution):
    """Attention followed through the layers to the position that answers, half of it staying in place, per unit.

    Product over layers of `0.5 A + 0.5 I`, A the mean over heads: the half that stays is the residual connection. Abnar
    & Zuidema, 2020.
    """

    passes = 1

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.attention_maps(batch), strict=True)
        return [item.per_unit(_rolled_out(maps)) for item, maps in found]


def _rolled_out(maps: AttentionMaps) -> PerToken:
    # Only the row of the answer is needed: from the last layer down, a vector times a matrix.
    row: PerToken = np.eye(maps.weights.shape[-1])[maps.position]
    for heads in maps.weights[::-1]:
        row = 0.5 * row @ heads.mean(axis=0, dtype=np.float64) + 0.5 * row
    return row


@attribution("attention-x-gradient", needs={"attention_maps"})
@dataclass(frozen=True, kw_only=True)
class AttentionXGradient(Attribution):
    """Attention from the position that answers, times the gradient of the target's log-odds there where it is positive.

    Mean over layers and heads of `relu(A * dA)` (the product of Grad-SAM, Barkan et al., 2021). With `through=true` the
    products are followed through the layers, `R = R + mean_heads(relu(A * dA)) R` from the first on (Chefer et al.,
    2021), so that indirect attention counts too.
    """

    through: bool = False
    """True if attention of other positions counts, as far as it reaches the one that answers."""

    passes = 3

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.attention_maps(batch, gradients=True), strict=True)
        return [item.per_unit(self._products(maps)) for item, maps in found]

    def _products(self, maps: AttentionMaps) -> PerToken:
        assert maps.gradients is not None
        if not self.through:
            read = np.s_[:, :, maps.position]
            products = maps.weights[read].astype(np.float64) * maps.gradients[read]
            return np.maximum(products, 0).mean(axis=(0, 1))  # type: ignore[no-any-return]
        start: PerToken = np.eye(maps.weights.shape[-1])[maps.position]
        row = start
        for weights, gradients in zip(maps.weights[::-1], maps.gradients[::-1], strict=True):
            row = row + row @ np.maximum(weights * gradients, 0).mean(axis=0, dtype=np.float64)
        return row - start  # the position that answers is no reason for itself
