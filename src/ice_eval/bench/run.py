"""Run a grid: one model at a time, every run in its own folder; what fails is recorded and the rest goes on."""

import gc
import itertools
from pathlib import Path

from ice_eval.api import evaluate
from ice_eval.bench.folder import BenchFolder, RunRecord
from ice_eval.bench.grid import Grid, PlannedRun
from ice_eval.bench.models import OF_LOADING
from ice_eval.bench.summary import bench_summary, finished_runs, results_of
from ice_eval.errors import IceError, MissingExtraError
from ice_eval.executors import Executor, Local
from ice_eval.pipeline import Replicas, Reporter, Silent, load_replicas
from ice_eval.report import write_html


def run_grid(
    grid: Grid, out: Path, *, executor: Executor | None = None, reporter: Reporter | None = None
) -> BenchFolder:
    """Run, or continue, a grid; the folder then holds the summary, the report and the figures of what is finished.

    Runs that are complete are not touched and need no model; those that failed before are tried again.

    Args:
        grid: What to run.
        out: The bench folder.
        executor: Where models compute; by default in this process.
        reporter: Gets progress and messages.

    Raises:
        ConfigError: The folder holds something else, or another process writes to it.
    """
    reporter, folder, runs, place = reporter or Silent(), BenchFolder(out), grid.runs(), executor or Local()
    with folder.opened(), place.opened():
        records = {run.name: RunRecord(run.name, "complete" if folder.is_complete(run) else "waiting") for run in runs}
        folder.write(grid, list(records.values()))
        left = [(number, run) for number, run in enumerate(runs, start=1) if records[run.name].status == "waiting"]
        for _, group in itertools.groupby(left, key=lambda each: _loaded_for(each[1])):
            loaded = Loaded(place, reporter)
            for number, run in group:
                reporter.say(f"[{number}/{len(runs)}] {run}")
                records[run.name] = _record(run, loaded, folder, reporter)
                folder.write(grid, list(records.values()))
            loaded.release()
        _sum_up(grid, folder, reporter)
    return folder


def _loaded_for(run: PlannedRun) -> str:
    """Runs that one loading of a model serves; the answers of a server belong to one run, whose folder keeps them."""
    return run.name if run.model.is_served else run.model.name


def _record(run: PlannedRun, loaded: "Loaded", folder: BenchFolder, reporter: Reporter) -> RunRecord:
    """Do one run, and say how it went."""
    settings = {key: value for key, value in run.settings.items() if key not in OF_LOADING}
    try:
        run.task.examples(limit=1)  # data that are not there are told before a model is loaded
        evaluate(loaded.model_of(run), run.task, **settings, out=folder.run_folder(run.name).path, reporter=reporter)
    except Exception as exc:  # whatever it is, it is recorded, and the next run may be in no such trouble
        error = _told(exc)
        reporter.say(f"failed: {error}")
        return RunRecord(run.name, "failed", error)
    return RunRecord(run.name, "complete")


class Loaded:
    """The model of some runs: loaded when it is first needed, and once, even where that fails."""

    def __init__(self, executor: Executor, reporter: Reporter) -> None:
        self._executor, self._reporter = executor, reporter
        self._model: Replicas | None = None
        self._error: Exception | None = None

    def model_of(self, run: PlannedRun) -> Replicas:
        """The model, where it computes.

        Raises:
            IceError: It cannot be loaded; the same error every time.
        """
        if self._error is not None:
            raise self._error
        if self._model is None:
            where = {name: run.settings[name] for name in OF_LOADING if name in run.settings}
            try:
                # Reports and figures tell models apart by what the grid calls them.
                self._model = load_replicas(
                    run.model.ref, self._executor, **where, name=run.model.name, reporter=self._reporter
                )
            except Exception as exc:
                self._error = exc
                raise
        return self._model

    def release(self) -> None:
        """Let go of it, so that its memory is there for the next one."""
        if self._model is not None:
            self._model.release()
        self._model = None
        gc.collect()


def _told(exc: Exception) -> str:
    """An error in a sentence; those that were not foreseen with their type."""
    return str(exc) if isinstance(exc, IceError) else f"{type(exc).__name__}: {str(exc).strip().partition(chr(10))[0]}"


def _sum_up(grid: Grid, folder: BenchFolder, reporter: Reporter) -> None:
    """Summary, report and figures over what is finished."""
    results = results_of(finished_runs(grid, folder))
    folder.write_summary(bench_summary(grid, folder.records(), results))
    if not results.runs:
        return
    write_html([run.folder for run in results.runs], folder.path / "report.html")
    try:
        from ice_eval.bench.figures import write_grid_figures
    except MissingExtraError as exc:
        reporter.say(f"without figures: {exc}")
    else:
        write_grid_figures(results, folder.path / "figures")
