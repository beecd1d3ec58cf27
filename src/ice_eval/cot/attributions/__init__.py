"""A number per step: what somebody says that mattered. One file per method."""

from ice_eval.cot.attributions._base import (
    Probe,
    StepAttribution,
    StepLens,
    Unexplained,
    step_attribution,
    step_attributions,
)

__all__ = ["Probe", "StepAttribution", "StepLens", "Unexplained", "step_attribution", "step_attributions"]
