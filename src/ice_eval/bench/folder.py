"""A bench folder: `grid.json` says how far the grid is, `runs/` holds its runs, `bench.json` their summary."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ice_eval._files import DRAFT, alone, read_json, write_json
from ice_eval.bench.grid import Grid, PlannedRun, grid_of
from ice_eval.errors import ConfigError
from ice_eval.results import SCHEMA, RunFolder
from ice_eval.settings import ADDABLE

Status = Literal["waiting", "complete", "failed"]


@dataclass(frozen=True)
class RunRecord:
    """How far one run of a grid is."""

    name: str
    status: Status
    error: str | None = None
    """Why it failed."""


class BenchFolder:
    """Where a grid is run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Whether a grid was run there."""
        return (path / "grid.json").is_file()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and remove what a killed one left half-written."""
        if self._is_foreign():
            raise ConfigError(f"{self.path} is there and holds no grid; choose an --out that is empty or new.")
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with alone(self.path):
            for draft in self.path.glob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            yield

    def _is_foreign(self) -> bool:
        """Whether the path holds what no grid left there; one that was killed at once leaves next to nothing."""
        if not self.path.is_dir():
            return self.path.exists()
        names = {path.name for path in self.path.iterdir() if not path.name.startswith(DRAFT)}
        return not self.is_one(self.path) and not names <= {"runs", ".lock"}

    def run_folder(self, name: str) -> RunFolder:
        """The folder of one run."""
        return RunFolder(self.path / "runs" / name)

    def is_complete(self, run: PlannedRun) -> bool:
        """Whether a run is finished, with all that is asked of it now."""
        folder = self.run_folder(run.name)
        if folder.is_new:
            return False
        manifest, config = folder.manifest(), run.config
        held = manifest.config
        return (
            manifest.status == "complete"
            and all(set(getattr(config, key)) <= set(getattr(held, key)) for key in ADDABLE)
            and config.eraser <= held.eraser
            # A run in which no example could be evaluated is finished too, but failed.
            and any(line.n for line in folder.summary().configurations)
        )

    def grid(self, **changes: Any) -> Grid:
        """The grid that was run there; `changes` are keys in place of its own."""
        content = read_json(self.path / "grid.json")
        where = str(self.path / "grid.json")
        if not {"grid", "folder", "name"} <= set(content):
            raise ConfigError(f"{where} is damaged: a grid, its folder and its name are expected.")
        folder = Path(content["folder"])
        return grid_of(content["grid"], where=where, folder=folder, default_name=content["name"], **changes)

    def write(self, grid: Grid, records: Sequence[RunRecord]) -> None:
        """Say how far the grid is."""
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
        """How far each run is, as it was written last."""
        return [RunRecord(**each) for each in read_json(self.path / "grid.json")["runs"]]

    def finished(self) -> list[RunFolder]:
        """The folders of the runs that are complete."""
        return [self.run_folder(record.name) for record in self.records() if record.status == "complete"]

    def summary(self) -> dict[str, Any]:
        """What `bench.json` holds."""
        return read_json(self.path / "bench.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `bench.json`."""
        write_json(self.path / "bench.json", summary)
