"""The place of a step in its chain."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ice_eval.cot.attributions._base import StepAttribution, StepLens, step_attribution
from ice_eval.cot.cases import Case
from ice_eval.records import PerUnit


@step_attribution("position")
@dataclass(frozen=True, kw_only=True)
class Position(StepAttribution):
    """The last steps, or the first: what an explanation must beat to say more than the order of the steps."""

    highest: Literal["last", "first"] = "last"

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        places = np.arange(len(case.steps), dtype=np.float64)
        return places if self.highest == "last" else -places
