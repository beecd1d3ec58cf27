"""Grids of runs: models, tasks and prompts, one folder each, and one summary over all of them."""

from ice_eval.bench.folder import BenchFolder, RunRecord
from ice_eval.bench.grid import Grid, PlannedRun, TaskEntry, grid_of, load_grid, preset, presets
from ice_eval.bench.models import ModelEntry
from ice_eval.bench.plan import PlanLine, plan_grid
from ice_eval.bench.run import run_grid
from ice_eval.bench.summary import answers, bench_summary, finished_runs, results_of

__all__ = [
    "BenchFolder",
    "Grid",
    "ModelEntry",
    "PlanLine",
    "PlannedRun",
    "RunRecord",
    "TaskEntry",
    "answers",
    "bench_summary",
    "finished_runs",
    "grid_of",
    "load_grid",
    "plan_grid",
    "preset",
    "presets",
    "results_of",
    "run_grid",
]
