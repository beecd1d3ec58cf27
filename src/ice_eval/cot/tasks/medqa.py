"""MedQA."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._choices import choice_task
from ice_eval.tasks import HubData


@cot_task("medqa")
def medqa() -> CotTask:
    """Questions of the medical licensing exam of the USA (Jin et al., 2021)."""
    return choice_task(
        HubData("GBaker/MedQA-USMLE-4-options", split="test"),
        question="A day after a walk through bushes a hiker has itchy red lines on one leg. What is the cause?",
        options=("contact with a plant", "a broken bone", "high blood pressure", "an infection of the ear"),
        steps=(
            "The rash follows lines, as where leaves brushed the skin.",
            "It itches and came a day after the contact.",
        ),
        answer="A",
    )
