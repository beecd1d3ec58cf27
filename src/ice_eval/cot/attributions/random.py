"""No explanation at all."""

from dataclasses import dataclass

from ice_eval.cot.attributions._base import StepAttribution, StepLens, step_attribution
from ice_eval.cot.cases import Case
from ice_eval.records import PerUnit


@step_attribution("random")
@dataclass(frozen=True, kw_only=True)
class Random(StepAttribution):
    """Steps at random: it must score one half, or the evaluation is broken."""

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return lens.rng.random(len(case.steps))
