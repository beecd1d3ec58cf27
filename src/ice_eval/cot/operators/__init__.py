"""What happens to the steps of a chain. One file per operator."""

from ice_eval.cot.operators._base import Arrangement, Removal, StepOperator, step_operator, step_operators

__all__ = ["Arrangement", "Removal", "StepOperator", "step_operator", "step_operators"]
