"""A bench folder: `grid.json` is the state of the grid, `runs/` holds its runs, `bench.json` their summary."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ice_eval.analysis import GridResults, GridRun, grid_results
from ice_eval.analysis.across import QUESTIONS
from ice_eval.analysis.measures import Found, Missing
from ice_eval.bench.grid import Grid, PlannedRun, grid_of
from ice_eval.errors import ConfigError
from ice_eval.files import DRAFT, exclusive, read_json, write_json
from ice_eval.results import SCHEMA, RunFolder
from ice_eval.results.agreements import kappas
from ice_eval.results.json_files import as_json
from ice_eval.results.summary import adjusted_jointly
from ice_eval.settings import ADDABLE


@dataclass(frozen=True)
class RunRecord:
    name: str
    status: Literal["waiting", "complete", "failed"]
    error: str | None = None


class BenchFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Return True if the folder holds a grid."""
        return (path / "grid.json").is_file()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Create the folder, lock it, and remove half-written files of a killed process."""
        if self._is_foreign():
            raise ConfigError(f"{self.path} is there and holds no grid; choose an --out that is empty or new.")
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with exclusive(self.path):
            for draft in self.path.glob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            yield

    def _is_foreign(self) -> bool:
        """Return True if the path holds anything but a grid; one that was killed at once leaves almost nothing."""
        if not self.path.is_dir():
            return self.path.exists()
        names = {path.name for path in self.path.iterdir() if not path.name.startswith(DRAFT)}
        return not self.is_one(self.path) and not names <= {"runs", ".lock"}

    def run_folder(self, name: str) -> RunFolder:
        return RunFolder(self.path / "runs" / name)

    def is_complete(self, run: PlannedRun) -> bool:
        """Return True if a run is finished, with everything that the grid now requires."""
        folder = self.run_folder(run.name)
        if folder.is_new:
            return False
        manifest, asked = folder.manifest(), run.config
        return (
            manifest.status == "complete"
            and all(set(getattr(asked, key)) <= set(getattr(manifest.config, key)) for key in ADDABLE)
            and asked.eraser <= manifest.config.eraser
            # A run in which no example could be evaluated is finished too, but failed.
            and any(line.n for line in folder.summary().configurations)
        )

    def grid(self, **changes: Any) -> Grid:
        """Return the grid of the folder; `changes` are keys in place of its own."""
        where = str(self.path / "grid.json")
        content = read_json(self.path / "grid.json")
        if not {"grid", "folder", "name"} <= set(content):
            raise ConfigError(f"{where} is damaged: a grid, its folder and its name are expected.")
        folder = Path(content["folder"])
        return grid_of(content["grid"], where=where, folder=folder, default_name=content["name"], **changes)

    def write(self, grid: Grid, records: Sequence[RunRecord]) -> None:
        waiting = any(record.status == "waiting" for record in records)
        write_json(
            self.path / "grid.json",
            {
                "schema": SCHEMA,
                "name": grid.name,
                "status": "running" if waiting else "complete",
                "grid": dict(grid.source),
                "folder": str(grid.folder),
                "left_out": list(grid.left_out),
                "runs": [asdict(record) for record in records],
            },
        )

    def records(self) -> list[RunRecord]:
        """Return the state of each run, as last written."""
        return [RunRecord(**each) for each in read_json(self.path / "grid.json")["runs"]]

    def finished(self) -> list[RunFolder]:
        return [self.run_folder(record.name) for record in self.records() if record.status == "complete"]

    def summary(self) -> dict[str, Any]:
        return read_json(self.path / "bench.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_json(self.path / "bench.json", summary)


def finished_runs(grid: Grid, folder: BenchFolder) -> list[GridRun]:
    """Return the runs of a grid that are complete, in its order."""
    complete = [run for run in grid.runs() if folder.is_complete(run)]
    return [
        GridRun(**run.head, folder=folder.run_folder(run.name), base=run.model.base, tuning=run.model.tuning)
        for run in complete
    ]


def results_of(runs: Sequence[GridRun]) -> GridResults:
    """Return the results of all runs; p-values are adjusted over all configurations (Benjamini-Yekutieli)."""
    return grid_results(runs, adjusted_jointly([run.folder.summary() for run in runs]))


def answers(results: GridResults) -> dict[str, Found | Missing]:
    return {name: question(results) for name, question in QUESTIONS.items() if results.runs}


def bench_summary(grid: Grid, records: Sequence[RunRecord], results: GridResults) -> dict[str, Any]:
    """Return `bench.json`, without times, so that an interrupted grid has the same as an uninterrupted one."""
    facts = {
        run.name: {**run.head, "base": run.base, "tuning": run.tuning, "confidence": run.confidence, **run.token_counts}
        for run in results.runs
    }
    return {
        "schema": SCHEMA,
        "name": grid.name,
        "runs": [{**asdict(record), **facts.get(record.name, {})} for record in records],
        "configurations": [line.as_dict() for line in results.configurations],
        "agreement": [line.as_dict() for line in results.agreement],
        "robustness": [line.as_dict() for line in results.robustness],
        "kappa": [as_json(line) for line in kappas([results.lines_of(run) for run in results.runs])],
        "analyses": {name: found.as_dict() for name, found in answers(results).items()},
    }
