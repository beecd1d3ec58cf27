"""The control that knows where a text ends."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("last-k")
@dataclass(frozen=True, kw_only=True)
class LastK(Attribution):
    """A control: the later a unit stands, the higher its number."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.arange(1, item.n_units + 1, dtype=np.float64) for item in batch]
