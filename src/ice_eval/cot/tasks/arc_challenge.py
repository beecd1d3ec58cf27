"""ARC-Challenge."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._choices import choice_task
from ice_eval.tasks import HubData


@cot_task("arc_challenge")
def arc_challenge() -> CotTask:
    """Science questions of school exams, the harder part (Clark et al., 2018)."""
    return choice_task(
        HubData("allenai/ai2_arc", config="ARC-Challenge", split="test"),
        question="Which of these makes its own light?",
        options=("a mirror", "the moon", "the sun", "a window"),
        steps=("A mirror and the moon throw light back.", "A window lets light through, and the sun burns."),
        answer="C",
    )
