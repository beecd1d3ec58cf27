"""Questions about tasks, explanations and finished runs."""

from ice_eval.analysis.explanations import ExplanationCheck, check_explanations
from ice_eval.analysis.task_check import LabelLine, Segment, TaskCheck, check_task

__all__ = ["ExplanationCheck", "LabelLine", "Segment", "TaskCheck", "check_explanations", "check_task"]
