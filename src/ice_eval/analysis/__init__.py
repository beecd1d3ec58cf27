"""Questions about tasks and finished runs."""

from ice_eval.analysis.task_check import LabelLine, Segment, TaskCheck, check_task

__all__ = ["LabelLine", "Segment", "TaskCheck", "check_task"]
