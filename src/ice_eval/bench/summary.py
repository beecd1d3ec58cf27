"""The one summary over a grid: all configurations, adjusted together, and what they say across runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ice_eval.analysis import GridResults, GridRun, grid_results
from ice_eval.analysis.across import QUESTIONS
from ice_eval.analysis.measures import Found, Missing
from ice_eval.bench.folder import BenchFolder, RunRecord
from ice_eval.bench.grid import Grid
from ice_eval.report import found_as_dict
from ice_eval.results import SCHEMA
from ice_eval.results.agreements import kappas
from ice_eval.results.json_files import as_json
from ice_eval.results.summary import adjusted_jointly


def finished_runs(grid: Grid, folder: BenchFolder) -> list[GridRun]:
    """The runs of a grid that are complete, in its order."""
    return [
        GridRun(
            name=run.name,
            folder=folder.run_folder(run.name),
            model=run.model.name,
            task=run.task_name,
            prompt=run.prompt,
            language=run.task.language,
            base=run.model.base,
            tuning=run.model.tuning,
        )
        for run in grid.runs()
        if folder.is_complete(run)
    ]


def results_of(runs: list[GridRun]) -> GridResults:
    """All of them together; p-values are adjusted over all their configurations (Benjamini-Yekutieli)."""
    return grid_results(runs, adjusted_jointly([run.folder.summary() for run in runs]))


def answers(results: GridResults) -> dict[str, Found | Missing]:
    """What the grid says to every question, by its name."""
    return {name: question(results) for name, question in QUESTIONS.items() if results.runs}


def bench_summary(grid: Grid, records: Sequence[RunRecord], results: GridResults) -> dict[str, Any]:
    """`bench.json`: it says nothing of time, so that a grid that was interrupted has the same as one that was not."""
    by_name = {run.name: run for run in results.runs}
    return {
        "schema": SCHEMA,
        "name": grid.name,
        "runs": [
            {**asdict(record), **(_facts(by_name[record.name]) if record.name in by_name else {})} for record in records
        ],
        "configurations": [line.as_dict() for line in results.configurations],
        "agreement": [line.as_dict() for line in results.agreement],
        "robustness": [line.as_dict() for line in results.robustness],
        "kappa": [as_json(line) for line in kappas([results.lines_of(run) for run in results.runs])],
        "analyses": {name: found_as_dict(found) for name, found in answers(results).items()},
    }


def _facts(run: GridRun) -> dict[str, Any]:
    texts = run.texts
    return {
        **run.head,
        "base": run.base,
        "tuning": run.tuning,
        "confidence": run.confidence,
        "tokens_median": None if texts is None else texts.tokens_median,
        "tokens_per_word": None if texts is None else texts.tokens_per_word,
        "tokens_per_character": None if texts is None else texts.tokens_per_character,
    }
