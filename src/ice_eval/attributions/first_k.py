"""The control that knows where a text begins."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("first-k")
@dataclass(frozen=True, kw_only=True)
class FirstK(Attribution):
    """A control: the earlier a unit stands, the higher its number."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.arange(item.n_units, 0, -1, dtype=np.float64) for item in batch]
