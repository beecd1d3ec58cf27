"""The control that knows how long words are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("longest-words")
@dataclass(frozen=True, kw_only=True)
class LongestWords(Attribution):
    """A control: the number of characters of each unit."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.array([len(text.strip()) for text in item.texts], dtype=np.float64) for item in batch]
