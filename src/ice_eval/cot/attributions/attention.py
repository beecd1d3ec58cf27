"""Attention, summed over steps."""

from dataclasses import dataclass

from ice_eval.cot.attributions._base import StepAttribution, StepLens, step_attribution
from ice_eval.cot.cases import Case
from ice_eval.records import PerUnit


@step_attribution("attention")
@dataclass(frozen=True, kw_only=True)
class Attention(StepAttribution):
    """Attention from the last token before the answer, mean over layers and heads, summed over each step's tokens."""

    needs_model = True

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return lens.summed("attention")
