"""Attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.errors import ConfigError
from ice_eval.models import AttentionMaps
from ice_eval.records import Encoded, PerToken, PerUnit


@attribution("attention", needs={"attentions"})
@dataclass(frozen=True, kw_only=True)
class Attention(Attribution):
    """Attention from the position that answers (last token, or [CLS]), mean over layers and heads, summed per unit."""

    layer: int | None = None
    """The only layer that counts, from 0 on or, negative, from the last; those without attention are left out."""
    head: int | None = None
    """The only head that counts."""

    def __post_init__(self) -> None:
        if self.layer is not None or self.head is not None:
            object.__setattr__(self, "needs", frozenset({"attention_maps"}))  # the mean is cheaper, and not enough

    @property
    def passes(self) -> int:
        return int("attention_maps" in self.needs)

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        if "attention_maps" in self.needs:
            found = (self._chosen(maps) for maps in lens.attention_maps(batch))
            return [item.per_unit(weights) for item, weights in zip(batch, found, strict=True)]
        return [item.per_unit(weights) for item, weights in zip(batch, lens.attentions(batch), strict=True)]

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
