"""Problems to reason about: how records become problems, and how they are put to a model. One file per task."""

from ice_eval.cot.tasks._base import CotTask, Problem, Worked, cot_task, cot_tasks

__all__ = ["CotTask", "Problem", "Worked", "cot_task", "cot_tasks"]
