"""What a grid will take, from counting: rows of every run, and minutes where the folder has seen the model work."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ice_eval.attributions import method_of
from ice_eval.bench.folder import BenchFolder
from ice_eval.bench.grid import Grid, PlannedRun
from ice_eval.errors import IceError
from ice_eval.nulls import SIZE
from ice_eval.operators import operators
from ice_eval.rationales import DYNAMIC, ERASER_SHARES, n_sets, set_size
from ice_eval.records import Example
from ice_eval.settings import RunConfig
from ice_eval.words import word_spans


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """One run of a grid."""

    name: str
    model: str
    task: str
    prompt: str
    language: str
    n: int | None
    """Examples; None where the data cannot be read."""
    rows: int | None
    """To be scored, about; 0 where all are there."""
    minutes: float | None
    """By the pace of the model's finished runs in the folder; None where there are none."""
    status: str
    """`complete`, `waiting` or `cannot start`."""
    problem: str | None = None
    """Why it cannot start."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def plan_grid(grid: Grid, folder: BenchFolder) -> list[PlanLine]:
    """Count what is left to do; no model is loaded."""
    runs = grid.runs()
    done = [run for run in runs if folder.is_complete(run)]
    return [_done(run, folder) if run in done else _line(run, _pace(run, done, folder)) for run in runs]


def _done(run: PlannedRun, folder: BenchFolder) -> PlanLine:
    n = folder.run_folder(run.name).manifest().data.examples
    return PlanLine(**_head(run), n=n, rows=0, minutes=0.0, status="complete")


def _line(run: PlannedRun, pace: float | None) -> PlanLine:
    config = run.config
    try:
        examples = run.task.examples(limit=config.n)
    except IceError as exc:
        return PlanLine(**_head(run), n=None, rows=None, minutes=None, status="cannot start", problem=str(exc))
    rows = sum(_rows(example, run, config) for example in examples)
    minutes = None if pace is None else pace * rows / 60
    return PlanLine(**_head(run), n=len(examples), rows=rows, minutes=minutes, status="waiting")


def _head(run: PlannedRun) -> dict[str, str]:
    return {
        "name": run.name,
        "model": run.model.name,
        "task": run.task_name,
        "prompt": run.prompt,
        "language": run.task.language,
    }


def _rows(example: Example, run: PlannedRun, config: RunConfig) -> int:
    """Of one example, words taken for units: what a tokenizer makes of them is not known yet."""
    n_units = sum(len(word_spans(example.fields[name])) for name in run.task.explained)
    if n_units < 2:
        return 0
    # A dynamic k is taken for a tenth of the units: how many peaks an attribution has is not known yet.
    sizes = {set_size(n_units, 0.1 if k == DYNAMIC else k) for k in config.k}
    sets = sum(min(config.m + 1, n_sets(n_units, size)) for size in sizes)
    draws = sum(config.n_fills if operators.get(name)().needs_fills else 1 for name in config.operators)
    n_methods = len(config.attributions)
    # Sets of equal size are shared by all attributions, matched ones are each one's own.
    nulls = sum(sets if null == SIZE else sets * n_methods for null in config.nulls)
    compared = draws * len(config.directions) * (nulls + n_methods * len(sizes))
    beside = draws * (2 * n_methods * len({set_size(n_units, share) for share in ERASER_SHARES}) + n_units)
    probes = sum(method_of(name).n_probes(n_units) for name in config.attributions)
    return 2 + compared + probes + (beside if config.eraser else 0)


def _pace(run: PlannedRun, done: Sequence[PlannedRun], folder: BenchFolder) -> float | None:
    """Seconds per row in the finished runs of the same model."""
    manifests = [folder.run_folder(each.name).manifest() for each in done if each.model == run.model]
    costs = [manifest.cost for manifest in manifests if manifest.cost is not None]
    rows = sum(cost.rows for cost in costs)
    return sum(cost.seconds for cost in costs) / rows if rows else None
