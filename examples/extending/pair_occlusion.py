"""Worth of a unit together with its neighbour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.attributions import Attribution, Lens, attribution
from ice_eval.records import Encoded, KeepMasks, PerUnit


@attribution("pair-occlusion", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class PairOcclusion(Attribution):
    """Log-odds lost without a unit and the next one; each gets half of every pair that it is in."""

    signed: ClassVar[bool] = True

    def n_probes(self, n_units: int) -> int:
        return n_units

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        found = lens.values(batch, [_masks(item.n_units) for item in batch])
        return [_halves(values[0] - values[1:]) for values in found]


def _masks(n_units: int) -> KeepMasks:
    """Row 0 keeps all units, row i all but the units i - 1 and i."""
    first = np.arange(n_units - 1)[:, None]
    units = np.arange(n_units)[None, :]
    return np.concatenate([np.ones((1, n_units), dtype=bool), (units != first) & (units != first + 1)])


def _halves(lost: PerUnit) -> PerUnit:
    """From what each pair loses to a number per unit."""
    values: PerUnit = (np.append(lost, 0.0) + np.append(0.0, lost)) / 2
    return values
