"""Tasks of problems to reason about, in files that are discovered."""

from ice_eval.subjects.chain.problems import CotTask, WorkedExample, cot_task, cot_tasks

__all__ = ["CotTask", "WorkedExample", "cot_task", "cot_tasks"]
