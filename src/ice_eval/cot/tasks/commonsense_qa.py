"""CommonsenseQA."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._choices import choice_task
from ice_eval.tasks import HubData


@cot_task("commonsense_qa")
def commonsense_qa() -> CotTask:
    """Questions of common sense with five options (Talmor et al., 2019)."""
    return choice_task(
        HubData("tau/commonsense_qa", split="validation"),
        question="Where would you keep milk so that it stays fresh?",
        options=("drawer", "refrigerator", "car", "shelf", "oven"),
        steps=("Milk spoils where it is warm.", "Of these places only a refrigerator is kept cold."),
        answer="B",
    )
