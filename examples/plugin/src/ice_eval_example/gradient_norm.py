"""Gradient norms of any order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions import Attribution, Lens, attribution
from ice_eval.records import Encoded, PerUnit


@attribution("gradient-norm", needs={"gradients"})
@dataclass(frozen=True, kw_only=True)
class GradientNorm(Attribution):
    """Norm of the gradient of the target's log-odds at each token's embedding, of a chosen order, per unit."""

    order: int = 1  # on the command line: gradient-norm:order=2

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.gradients(batch), strict=True)
        return [item.per_unit(np.linalg.norm(g.gradient, ord=self.order, axis=1)) for item, g in found]
