"""The control: an attribution that knows nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.attributions._base import Attribution, attribution
from ice_eval.attributions._lens import Lens
from ice_eval.records import Encoded, PerUnit


@attribution("random")
@dataclass(frozen=True, kw_only=True)
class Random(Attribution):
    """A uniform number per unit: its win rate is one half, and what departs from that is chance."""

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [lens.rng(item).random(item.n_units) for item in batch]
