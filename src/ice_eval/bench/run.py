"""A bench folder, and the runs of a grid in it: planned, run one model at a time, and summed up.

`grid.json` is the state of the grid, `runs/` holds its runs, `bench.json` their summary. After a failed run, the others
continue.
"""

import contextlib
import gc
import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ice_eval.analysis import GridResults, GridRun, grid_results
from ice_eval.analysis.across import answers
from ice_eval.analysis.measures import Found, Missing
from ice_eval.api import evaluate
from ice_eval.api import plan as plan_run
from ice_eval.attributions import method_of
from ice_eval.bench.grid import OF_LOADING, Grid, PlannedRun, grid_of
from ice_eval.errors import ConfigError, IceError, MissingExtraError
from ice_eval.executors import Executor, Local
from ice_eval.files import DRAFT, exclusive, read_json, write_json
from ice_eval.models import Model, load_reader
from ice_eval.nulls import SIZE
from ice_eval.operators import operators
from ice_eval.pipeline import Replicas, Reporter, Silent, load_replicas
from ice_eval.rationales import DYNAMIC, ERASER_FILLS, ERASER_SHARES, n_sets, set_size
from ice_eval.records import Example
from ice_eval.report import write_grid
from ice_eval.results import SCHEMA, RunFolder
from ice_eval.results.agreements import kappas
from ice_eval.results.json_files import as_json
from ice_eval.results.records import ChainSettings, ChainSummary
from ice_eval.results.summary import adjusted_jointly
from ice_eval.settings import ADDABLE, CHAIN, RunConfig, chain_fields, refuse_others
from ice_eval.subjects.chain.subject import ChainPlan
from ice_eval.tasks import Task, read_as
from ice_eval.words import word_spans


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
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        # A grid that was killed at once leaves almost nothing.
        left = {name for name in names if not name.startswith(DRAFT)} <= {"runs", ".lock"}
        if self.path.exists() and not (self.is_one(self.path) or (self.path.is_dir() and left)):
            raise ConfigError(f"{self.path} exists but is not a bench folder; choose an --out that is empty or new.")
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"the folder {self.path} cannot be made: {exc.strerror}; choose another --out.") from exc
        with exclusive(self.path):
            for draft in self.path.glob(f"{DRAFT}*"):
                draft.unlink(missing_ok=True)
            yield

    def run_folder(self, name: str) -> RunFolder:
        return RunFolder(self.path / "runs" / name)

    def is_complete(self, run: PlannedRun) -> bool:
        """Return True if a run is finished, with everything that the grid now requires."""
        folder = self.run_folder(run.name)
        if folder.is_new:
            return False
        manifest, asked = folder.manifest(), run.config
        if manifest.status != "complete":
            return False
        stored, of_chains = manifest.config, manifest.config.chain
        known = {key: set(getattr(stored, key)) for key in ADDABLE}
        if of_chains is not None:
            known["operators"] |= set(of_chains.arrangements)
            if not _has_fields(of_chains, run.settings):
                return False
        summary = folder.summary()
        # A run in which no example could be evaluated is finished too, but failed.
        n_chains = 0 if summary.chains is None else summary.chains.problems.n_evaluated
        was_evaluated = n_chains > 0 or any(line.n for line in summary.configurations)
        has_lists = all(set(getattr(asked, key)) <= known[key] for key in ADDABLE)
        return has_lists and asked.eraser <= stored.eraser and was_evaluated

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
        content = {
            "schema": SCHEMA,
            "name": grid.name,
            "status": "running" if waiting else "complete",
            "grid": dict(grid.source),
            "folder": str(grid.folder),
            "left_out": list(grid.left_out),
            "runs": [asdict(record) for record in records],
        }
        write_json(self.path / "grid.json", content)

    def records(self) -> list[RunRecord]:
        """Return the state of each run, as last written."""
        return [RunRecord(**each) for each in read_json(self.path / "grid.json")["runs"]]

    def failed(self) -> dict[str, str]:
        """Return the errors of runs that failed, by name."""
        return {record.name: record.error or "" for record in self.records() if record.status == "failed"}

    def finished(self) -> list[RunFolder]:
        return [self.run_folder(record.name) for record in self.records() if record.status == "complete"]

    def summary(self) -> dict[str, Any]:
        return read_json(self.path / "bench.json")


def _has_fields(stored: ChainSettings, settings: Mapping[str, Any]) -> bool:
    """Return True if a run about chains has all that settings may add to it; it may have more, or longer replies."""
    asked = chain_fields(settings)
    for name in (each.name for each in CHAIN if each.role == "adds" and each.name in asked):
        has, wanted = getattr(stored, name), asked[name]
        if not (set(wanted) <= set(has) if isinstance(wanted, tuple) else wanted <= has):
            return False
    return True


def finished_runs(grid: Grid, folder: BenchFolder) -> list[GridRun]:
    """Return the runs of a grid that are complete, in its order."""
    complete = [run for run in grid.runs() if folder.is_complete(run)]
    return [
        GridRun(**run.head, folder=folder.run_folder(run.name), base=run.model.base, tuning=run.model.tuning)
        for run in complete
    ]


def results_of(runs: Sequence[GridRun]) -> GridResults:
    """Return the results of all runs; p-values are adjusted over all configurations (Holm)."""
    return grid_results(runs, adjusted_jointly([run.folder.summary() for run in runs]))


def bench_summary(
    grid: Grid, records: Sequence[RunRecord], results: GridResults, found: Mapping[str, Found | Missing]
) -> dict[str, Any]:
    """Return `bench.json`, without times, so that an interrupted grid has the same as an uninterrupted one."""
    lines = {name: getattr(results, name) for name in ("configurations", "agreement", "robustness")}
    facts = {
        run.name: {**run.head, "base": run.base, "tuning": run.tuning, **_facts(run, results.chains.get(run.name))}
        for run in results.runs
    }
    of_chains: dict[str, list[dict[str, Any]]] = {}
    for run, name in itertools.product(results.runs if results.chains else (), ("capacity", "levels", "raw")):
        chain_lines = getattr(results.chains[run.name], name) or ()
        of_chains.setdefault(name, []).extend({"run": run.name, **as_json(x), **run.head} for x in chain_lines)
    return {
        "schema": SCHEMA,
        "name": grid.name,
        "runs": [{**asdict(record), **facts.get(record.name, {})} for record in records],
        **{name: [line.as_dict() for line in own] for name, own in lines.items()},
        "kappa": [as_json(line) for line in kappas([results.lines_of(run) for run in results.runs])],
        **({"chains": of_chains} if of_chains else {}),
        "analyses": {name: each.as_dict() for name, each in found.items()},
    }


def _facts(run: GridRun, chains: ChainSummary | None) -> dict[str, Any]:
    """Return what is known of a finished run beside its configurations."""
    if chains is None:
        return {"confidence": run.confidence, **run.token_counts}
    content = as_json(chains)
    return {"accuracy": chains.problems.accuracy} | {
        name: content[name] for name in ("problems", "steps", "noise_floor", "no_steps")
    }


# --- planning and running -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    name: str
    model: str
    task: str
    prompt: str
    language: str
    n: int | None = None
    """Number of examples; None where the data cannot be read."""
    rows: int | None = None
    """Approximate number of rows to score; 0 where all are scored. Of chains of thought: requests."""
    cost: float | None = None
    """Largest price of the requests to a server; None without prices."""
    exceeds: str | None = None
    """The limit that the requests exceed, if any."""
    minutes: float | None = None
    """Estimated from the model's finished runs in the folder; None where there are none."""
    status: Literal["complete", "waiting", "cannot start"] = "waiting"
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def plan_grid(grid: Grid, folder: BenchFolder, *, tasks: Container[str] | None = None) -> list[PlanLine]:
    """Count the rows that remain to be scored, of some tasks or of all; no model is loaded."""
    runs = grid.runs()
    done, readers = [run for run in runs if folder.is_complete(run)], dict[str, Model]()
    return [_plan(run, done, folder, readers) for run in runs if tasks is None or run.task_name in tasks]


def _plan(run: PlannedRun, done: Sequence[PlannedRun], folder: BenchFolder, readers: dict[str, Model]) -> PlanLine:
    config = run.config
    if run in done:
        n = folder.run_folder(run.name).manifest().data.examples
        return PlanLine(**run.head, n=n, rows=0, minutes=0.0, status="complete")
    of_server: dict[str, Any] = {}
    try:
        if isinstance(run.task, Task):
            task = read_as(run.task, **config.reading)
            examples = task.examples(limit=config.n)
            n, rows = len(examples), sum(_rows(example, task, config) for example in examples)
        else:
            ref = run.model.ref
            if isinstance(ref, str) and ref not in readers:  # a tokenizer is loaded once, weights are not
                readers[ref] = load_reader(ref)
            model = readers[ref] if isinstance(ref, str) else ref
            found = plan_run(model, run.task, **_without_loading(run.settings))
            assert isinstance(found, ChainPlan), "the task is about chains"
            n, rows, of_server = found.n_problems, found.n_to_ask, {"cost": found.cost, "exceeds": found.exceeds}
    except IceError as exc:
        return PlanLine(**run.head, status="cannot start", problem=str(exc))
    manifests = [folder.run_folder(each.name).manifest() for each in done if each.model == run.model]
    costs = [manifest.cost for manifest in manifests if manifest.cost is not None]
    known = sum(cost.rows for cost in costs)
    minutes = sum(cost.seconds for cost in costs) / known * rows / 60 if known else None
    return PlanLine(**run.head, n=n, rows=rows, minutes=minutes, **of_server)


def _without_loading(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in OF_LOADING}


def _rows(example: Example, task: Task, config: RunConfig) -> int:
    """Count the rows of one example, with words for units: the tokenizer is not loaded yet."""
    n_units = sum(len(word_spans(example.fields[name])) for name in task.explained)
    if n_units < 2:
        return 0
    # A dynamic k is taken for a tenth of the units: the number of peaks of an attribution is not known yet.
    sizes = {set_size(n_units, 0.1 if k == DYNAMIC else k) for k in config.k}
    sets = sum(min(config.m + 1, n_sets(n_units, size)) for size in sizes)
    most = min(config.n_fills, config.m)
    n_fills = [most if operators.get(name)().needs_fills else 1 for name in config.operators]
    n_methods = len(config.attributions)
    # Sets of equal size are shared by all attributions, matched ones are each one's own.
    nulls = sum(sets if null == SIZE else sets * n_methods for null in config.nulls)
    compared = len(config.directions) * (len(n_fills) * nulls + sum(n_fills) * n_methods * len(sizes))
    of_eraser = 2 * n_methods * len({set_size(n_units, share) for share in ERASER_SHARES}) + n_units
    eraser = of_eraser * sum(min(each, ERASER_FILLS) for each in n_fills)
    probes = sum(method_of(name).n_probes(n_units) for name in config.attributions)
    return 2 + compared + probes + (eraser if config.eraser else 0)


def run_grid(
    grid: Grid,
    out: Path,
    *,
    executor: Executor | None = None,
    reporter: Reporter | None = None,
    tasks: Container[str] | None = None,
) -> BenchFolder:
    """Run, or continue, a grid; the folder then holds the summary, the report and the figures of its finished runs.

    Complete runs are not changed and need no model; failed ones are tried again. Without `executor`, models compute in
    this process. With `tasks`, runs of other tasks wait.

    Raises:
        ConfigError: The folder holds something else, or another process writes to it, or the executor is not for the
            subject of the grid.
    """
    if executor is not None and not isinstance(executor, Local):
        refuse_others({"executor": "ray"}, grid.subject, grid.tasks[0].task.name)
    reporter, folder, runs, place = reporter or Silent(), BenchFolder(out), grid.runs(), executor or Local()
    with folder.opened(), place.opened():
        records = {run.name: RunRecord(run.name, "complete" if folder.is_complete(run) else "waiting") for run in runs}
        folder.write(grid, list(records.values()))
        left = [
            (number, run)
            for number, run in enumerate(runs, start=1)
            if records[run.name].status == "waiting" and (tasks is None or run.task_name in tasks)
        ]
        # Runs that share a loaded model; the replies of a server belong to the folder of one run.
        key = {run.name: run.name if run.model.is_served else run.model.name for run in runs}
        for _, group in itertools.groupby(left, key=lambda each: key[each[1].name]):
            loaded = _ModelCache(place, reporter)
            for number, run in group:
                reporter.say(f"[{number}/{len(runs)}] {run}")
                records[run.name] = _record(run, loaded, folder, reporter)
                folder.write(grid, list(records.values()))
            loaded.release()
        results = results_of(finished_runs(grid, folder))
        found = answers(results)
        write_json(folder.path / "bench.json", bench_summary(grid, folder.records(), results, found))
        if results.runs:
            write_grid(results, found, folder.path / "report.html", name=grid.name, failed=folder.failed())
            try:
                write_grid_figures(results, folder.path / "figures")
            except MissingExtraError as exc:
                reporter.say(f"without figures: {exc}")
    return folder


def _record(run: PlannedRun, loaded: "_ModelCache", folder: BenchFolder, reporter: Reporter) -> RunRecord:
    try:
        if isinstance(run.task, Task):  # missing data are reported before a model is loaded
            run.task.examples(limit=1)
        elif "responses" not in run.settings:
            run.task.problems(limit=1)
        out, settings = folder.run_folder(run.name).path, _without_loading(run.settings)
        evaluate(loaded.model_of(run), run.task, **settings, out=out, reporter=reporter).report()
    except IceError as exc:
        error = str(exc)
    except Exception as exc:  # any failure is recorded, and the next run may not have it
        error = f"{type(exc).__name__}: {str(exc).strip().partition(chr(10))[0]}"
    else:
        return RunRecord(run.name, "complete")
    reporter.say(f"failed: {error}")
    return RunRecord(run.name, "failed", error)


class _ModelCache:
    """The model of some runs, loaded at first use, and once, even where that fails."""

    def __init__(self, executor: Executor, reporter: Reporter) -> None:
        self._executor, self._reporter = executor, reporter
        self._found: Replicas | Exception | None = None

    def model_of(self, run: PlannedRun) -> Replicas:
        """Return the model; where it cannot be loaded, raise the same error every time."""
        if self._found is None:
            where = {name: run.settings[name] for name in OF_LOADING if name in run.settings}
            # Reports and figures distinguish models by their names in the grid.
            where |= {"name": run.model.name, "reporter": self._reporter}
            try:
                self._found = load_replicas(run.model.ref, self._executor, **where)
            except Exception as exc:
                self._found = exc
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def release(self) -> None:
        if self._found is not None and not isinstance(self._found, Exception):
            self._found.release()
        self._found = None
        gc.collect()


def write_grid_figures(grid: GridResults, folder: Path) -> None:
    """Draw the win rates of a grid; prompts and languages where there are several, and what chains show."""
    from ice_eval.report.figures import chain_figures, grid_figures, write_figures

    of_chains = chain_figures([run.folder for run in grid.runs]) if grid.chains else []
    write_figures([*of_chains, *grid_figures(grid)], folder)
