"""The control that knows how often units occur."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("rarest-tokens", needs={"counts"})
@dataclass(frozen=True, kw_only=True)
class RarestTokens(Attribution):
    """A control: minus the logarithm of how often each unit occurs in the data (their first 2,000 examples)."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        # An example beyond those that were counted may hold a unit that never occurred.
        return [-np.log(np.maximum(lens.counts(item), 0.5)) for item in batch]
