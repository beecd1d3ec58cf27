"""Occlusion."""

from dataclasses import dataclass

import numpy as np

from ice_eval.attributions._base import attribution
from ice_eval.attributions._lens import PerRow
from ice_eval.attributions._perturbation import Perturbation
from ice_eval.records import KeepMasks, PerUnit


@attribution("occlusion", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class Occlusion(Perturbation):
    """What the log-odds of the target lose when a unit alone is taken away (leave-one-out; Li et al., 2016)."""

    def n_probes(self, n_units: int) -> int:
        return n_units + 1

    def masks(self, n_units: int, rng: np.random.Generator) -> KeepMasks:
        return np.concatenate([np.ones((1, n_units), dtype=bool), ~np.eye(n_units, dtype=bool)])

    def credit(self, masks: KeepMasks, values: PerRow) -> PerUnit:
        lost: PerUnit = values[0] - values[1:]
        return lost
