"""Grids of runs: models, tasks and prompts, one folder each, and one summary over all of them."""

from ice_eval.analysis.across import answers
from ice_eval.bench.grid import Grid, ModelEntry, PlannedRun, TaskEntry, grid_of, load_grid, preset, presets
from ice_eval.bench.run import BenchFolder, PlanLine, RunRecord, finished_runs, plan_grid, results_of, run_grid

__all__ = [
    "BenchFolder", "Grid", "ModelEntry", "PlanLine", "PlannedRun", "RunRecord", "TaskEntry", "answers",
    "finished_runs", "grid_of", "load_grid", "plan_grid", "preset", "presets", "results_of", "run_grid",
]  # fmt: skip
