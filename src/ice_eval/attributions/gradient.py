"""Gradient norm."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("gradient", needs={"gradients"})
@dataclass(frozen=True, kw_only=True)
class Gradient(Attribution):
    """L2 norm of the gradient of the target's log-odds at each token's embedding, summed per unit."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.gradients(batch), strict=True)
        return [item.per_unit(np.linalg.norm(g.gradient, axis=1)) for item, g in found]
