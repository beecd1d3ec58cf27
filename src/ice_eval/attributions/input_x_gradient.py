"""Input times gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("input-x-gradient", needs={"gradients"})
@dataclass(frozen=True, kw_only=True)
class InputXGradient(Attribution):
    """Embedding of each token dotted with the gradient of the target's log-odds there, summed per unit; signed."""

    signed: ClassVar[bool] = True

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = zip(batch, lens.gradients(batch), strict=True)
        return [item.per_unit(np.einsum("td,td->t", g.embedding, g.gradient)) for item, g in found]
