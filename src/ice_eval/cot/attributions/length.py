"""How much a step writes."""

from dataclasses import dataclass

import numpy as np

from ice_eval.cot.attributions._base import StepAttribution, StepLens, step_attribution
from ice_eval.cot.cases import Case
from ice_eval.records import PerUnit


@step_attribution("length")
@dataclass(frozen=True, kw_only=True)
class Length(StepAttribution):
    """The longest steps, by characters."""

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return np.array([len(text) for text in case.texts], dtype=np.float64)
