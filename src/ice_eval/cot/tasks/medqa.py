"""MedQA."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._choices import choice_task
from ice_eval.tasks import HubData


@cot_task("medqa")
def medqa() -> CotTask:
    """Questions of the medical licensing exam of the USA (Jin et al., 2021)."""
    return choice_task(HubData("GBaker/MedQA-USMLE-4-options", split="test"))
