"""A folder that reproduces the paper: the grids of its tables and figures, their cost, their state, and their files."""

import json
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ice_eval.analysis.grid import GridResults, grid_results
from ice_eval.bench import BenchFolder, Grid, PlannedRun, finished_runs, plan_grid, preset, results_of, run_grid
from ice_eval.errors import ConfigError, DataError, require
from ice_eval.executors import Executor
from ice_eval.files import read_json, write_atomically, write_json
from ice_eval.models import SERVED, Served, suite_model
from ice_eval.pipeline import Reporter
from ice_eval.report import data_text
from ice_eval.report.data import DataTable
from ice_eval.report.figures import write_figures
from ice_eval.reproduce.catalogue import EXPERIMENTS, ITEMS, Experiment, Item
from ice_eval.reproduce.contents import Sources
from ice_eval.reproduce.findings import Finding, findings
from ice_eval.reproduce.layout import Printed, Value, as_csv, as_latex, as_svg, figure_latex, printed
from ice_eval.tasks import Task, load_task
from ice_eval.words import word_spans

State = Literal[
    "done", "done, no result", "partly done", "not begun", "failed", "needs data", "no numbers", "no run needed"
]
SENTENCES = (
    "a gorgeous , witty , seductive movie .",
    "a tender , heartfelt family drama .",
    "a fast , funny , highly enjoyable movie .",
    "uses high comedy to evoke surprising poignance .",
)
"""The sentences of SST-2 that the paper shows, all positive."""
_WITHOUT_RUNS = {"tab:contamination", "tab:models", "tab:versions"}
_USUAL_SIZES = {"distilbert-base": 0.066, "bert-base": 0.11, "smollm2": 0.135}
"""Billions of parameters of models whose names do not tell them."""
_LONGEST_HEADER = 10**8
"""In bytes, of a file in safetensors."""
_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([bBmM])(?![a-zA-Z])")
_TOKENS_PER_WORD = 1.3
_PART_READ = 0.6
"""Mean share of a text's tokens in a row: a fifth under deletion, all under infill."""
FLOPS = 5e14
"""Useful operations per second of an H200 in bfloat16, measured: 63 % of its peak."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Departures from the paper's grids; None and empty: as in the paper."""

    models: Mapping[str, tuple[str, ...]]
    """Models by the name of an experiment, or of one and a task (`encoder/sst2`); those of all others under an empty
    name."""
    n: int | None = None
    m: int | None = None
    protocol: str = "paper"
    data_dir: str | None = None
    base_url: str | None = None
    loading: Mapping[str, Any] = field(default_factory=dict)
    """Settings of loading that are not the default, as `device`."""
    serving: Mapping[str, Any] = field(default_factory=dict)
    """Settings of models behind a server, as `price_in`."""

    def models_of(self, experiment: Experiment) -> tuple[str, ...] | None:
        """Return the models of an experiment: its own, or of those for all the ones behind a server, or loaded here."""
        own = [*self.models.get(experiment.name, ()), *self._tasks_of(experiment)]
        general = (name for name in self.models.get("", ()) if name.startswith(SERVED) == experiment.served)
        return tuple(dict.fromkeys(own or general)) or None

    def _tasks_of(self, experiment: Experiment) -> dict[str, list[str]]:
        """Return the tasks of models that were given for single tasks of an experiment."""
        found: dict[str, list[str]] = {}
        for key, names in self.models.items():
            name, _, task = key.partition("/")
            for model in names if task and name == experiment.name else ():
                found.setdefault(model, []).append(task)
        return found

    def entries(self, experiment: Experiment, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return models as entries of a grid: some for single tasks, those behind a server with their settings."""
        tasks, everywhere = self._tasks_of(experiment), self.models.get(experiment.name, ())
        return [
            {
                "model": name,
                **({"tasks": tasks[name]} if name in tasks and name not in everywhere else {}),
                **(self.serving if name.startswith(SERVED) else {}),
            }
            for name in names
        ]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How much of an item is there."""

    label: str
    title: str
    experiments: tuple[str, ...]
    """Its grids."""
    state: State
    finished: int
    planned: int
    failed: int = 0
    """Number of runs that failed, and were not finished since."""
    missing: tuple[str, ...] = ()
    """Runs that are not finished, with the reason if they failed."""
    needs: str = ""
    """Data or models that are missing, or the reason why finished runs have no result."""


@dataclass(frozen=True, kw_only=True)
class ExperimentCost:
    """The cost of the runs of an experiment that are left."""

    experiment: str
    runs: int | None = None
    """Number of runs, also of those that cannot start; None where the grid cannot be made."""
    rows: int | None = None
    """Rows of the runs whose data can be read; None where none can."""
    gpu_hours: float | None = None
    """Hours on one H200; None where the size of a model is unknown, or its rows."""
    price: float | None = None
    """Largest price of the requests to servers; None without prices."""
    hours: float | None = None
    """Hours at the pace of finished runs of the same models in this folder."""
    problems: tuple[str, ...] = ()


class Reproduction:
    """A folder with a bench folder for each grid, and the paper's tables and figures made of them."""

    def __init__(self, path: Path, choices: Choices) -> None:
        self.path, self.choices = path, choices
        self._grids: dict[str, Grid | ConfigError] = {}

    @classmethod
    def opened(cls, path: Path, given: Mapping[str, Any]) -> "Reproduction":
        """Return the folder with given choices, and for those that are None its earlier ones."""
        file = path / "choices.json"
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{path} is a file; --out takes a folder.")
        if path.is_dir() and not file.is_file() and any(path.iterdir()):
            raise ConfigError(f"{path} exists but is not a reproduction folder; choose an --out that is empty or new.")
        earlier = read_json(file) if file.is_file() else {}
        merged = {**earlier, **{name: value for name, value in given.items() if value is not None}}
        models = {name: tuple(each) for name, each in (merged.pop("models", None) or {}).items()}
        for name in models:
            if name and name.partition("/")[0] not in EXPERIMENTS:
                raise ConfigError(f"--models {name}=…: no experiment '{name}'. Known: {', '.join(EXPERIMENTS)}.")
        known = {name: value for name, value in merged.items() if name in Choices.__dataclass_fields__}
        return cls(path, Choices(models=models, **known))

    def folder(self, experiment: str) -> BenchFolder:
        return BenchFolder(self.path / "grids" / experiment)

    def grid(self, experiment: str) -> Grid:
        """Return the grid of an experiment; raise `ConfigError` where it lacks data or models."""
        if experiment not in self._grids:
            try:
                self._grids[experiment] = self._grid(EXPERIMENTS[experiment])
            except ConfigError as exc:
                self._grids[experiment] = exc
        found = self._grids[experiment]
        if isinstance(found, ConfigError):
            raise found
        return found

    def _grid(self, experiment: Experiment) -> Grid:
        changes: dict[str, Any] = {"n": self.choices.n, "m": self.choices.m, **self.choices.loading}
        own = self.choices.models_of(experiment)
        if own is not None:
            changes["models"] = self.choices.entries(experiment, own)
        if experiment.steps and own == ("toy",):
            raise ConfigError(f"{experiment.name} needs {experiment.needs}.")
        if experiment.served if own is None else any(each.startswith(SERVED) for each in own):
            if self.choices.base_url is None:
                raise ConfigError(f"{experiment.name} needs {experiment.needs or 'a server: --base-url URL'}.")
            changes["base_url"] = self.choices.base_url
            if own is None and self.choices.serving:
                usual = preset(experiment.preset, **changes).models
                names = [f"{SERVED}{each.ref.name}" for each in usual if isinstance(each.ref, Served)]
                changes["models"] = self.choices.entries(experiment, names)
        # --m is that of texts
        changes |= {"m": None} if experiment.steps else {"protocol": self.choices.protocol}
        data_dir = None if self.choices.data_dir is None else Path(self.choices.data_dir)
        if experiment.name == "translation":
            if data_dir is None or not (data_dir / "translated").is_dir():
                raise ConfigError(f"translated texts are missing: {experiment.needs}.")
            data_dir = data_dir / "translated"
        if experiment.name == "examples":
            changes["n"] = len(SENTENCES)
            data_dir = self._sentences if self._sentences.is_dir() else data_dir
        return preset(experiment.preset, data_dir=None if data_dir is None else str(data_dir), **changes)

    @property
    def _sentences(self) -> Path:
        """Folder of the paper's sentences, followed by other texts of SST-2, from which infill draws."""
        return (self.path / "data").resolve()

    def _write_sentences(self) -> None:
        """Write the texts of the experiment `examples`; raise `IceError` where SST-2 cannot be read."""
        file = self._sentences / "sst2.jsonl"
        if file.is_file():
            return
        # The grid without the sentences reads SST-2 from the same place.
        [source] = {run.task.data for run in self.grid("examples").runs()}
        task = load_task("sst2")
        assert isinstance(task, Task)
        others = replace(task, data=source).examples()
        rows = [{"text": text, "label": "positive"} for text in SENTENCES]
        rows += [
            {"text": each.fields["text"], "label": task.labels[each.gold]}
            for each in others
            if each.gold is not None and each.fields["text"] not in SENTENCES
        ]
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(file) as stream:
            stream.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        del self._grids["examples"]

    def _runs(self, experiment: str, tasks: Container[str] | None) -> list[tuple[PlannedRun, str | None]]:
        """Return the planned runs of an experiment on some tasks or all, each with why it is not finished, or None."""
        folder = self.folder(experiment)
        failed = folder.failed() if BenchFolder.is_one(folder.path) else {}
        runs = [run for run in self.grid(experiment).runs() if tasks is None or run.task_name in tasks]
        return [(run, None if folder.is_complete(run) else failed.get(run.name, "")) for run in runs]

    def sources(self) -> Sources:
        """Return access to the finished runs of all grids; a grid without any has none."""

        @cache
        def grid(experiment: str) -> GridResults:
            try:
                runs = finished_runs(self.grid(experiment), self.folder(experiment))
            except ConfigError:
                return grid_results((), ())
            return results_of(runs) if runs else grid_results((), ())

        def tasks(experiment: str) -> list[tuple[str, Task]]:
            found = {(str(run.model.ref), run.task.name): run.task for run in self.grid(experiment).runs()}
            return [(model, task) for (model, _), task in found.items() if isinstance(task, Task)]

        return Sources(grid, tasks)

    def progress(self, items: Sequence[Item]) -> list[Progress]:
        """Return the state of items, without a model, a hub or a server."""
        sources = self.sources()
        return [self._progress(item, sources) for item in items]

    def _progress(self, item: Item, sources: Sources) -> Progress:
        head: dict[str, Any] = {"label": item.label, "title": item.title, "experiments": item.experiments}
        if item.content is None:
            return Progress(**head, state="no numbers", finished=0, planned=0, needs=item.note)
        if item.label in _WITHOUT_RUNS:
            return Progress(**head, state="no run needed", finished=0, planned=0)
        runs, needs = list[tuple[PlannedRun, str | None]](), list[str]()
        for name in item.experiments:
            try:
                runs += self._runs(name, item.tasks or None)
            except ConfigError as exc:
                needs.append(str(exc))
        missing = [f"{run}{f' ({reason})' if reason else ''}" for run, reason in runs if reason is not None]
        finished, failed = len(runs) - len(missing), sum(bool(reason) for _, reason in runs)
        state: State = "done"
        if missing:
            state = "partly done" if finished else "failed" if failed else "not begun"
        elif needs:
            state = "needs data"
        else:
            values = item.content(sources)
            if item.needs and not _known(values):
                state = "needs data"
            elif not _has_results(item, values):
                reasons = dict.fromkeys(value.reason for value in values if value.reason)
                state, needs = "done, no result", [*reasons] or ["these runs have no number for it"]
        known = needs or [item.needs, *(EXPERIMENTS[name].needs for name in item.experiments)]
        return Progress(
            **head, state=state, finished=finished, planned=len(runs), failed=failed,
            missing=tuple(missing), needs="; ".join(filter(None, known)) if state != "done" else "",
        )  # fmt: skip

    def costs(self, items: Sequence[Item]) -> list[ExperimentCost]:
        """Return what the unfinished runs would take; data are read, and no model is loaded."""
        return [self._cost(name, tasks) for name, tasks in _experiments(items)]

    def _cost(self, experiment: str, tasks: Container[str] | None) -> ExperimentCost:
        try:
            grid = self.grid(experiment)
        except ConfigError as exc:
            return ExperimentCost(experiment=experiment, problems=(str(exc),))
        lines = {line.name: line for line in plan_grid(grid, self.folder(experiment), tasks=tasks)}
        plan = [(run, lines[run.name]) for run in grid.runs() if run.name in lines]
        waiting = [(run, line) for run, line in plan if line.status != "complete"]
        left = [(run, line) for run, line in waiting if line.rows]
        problems = dict.fromkeys(f"{line.task}: {line.problem}" for _, line in waiting if line.problem)
        unread = all(line.problem for _, line in waiting) if waiting else False
        seconds = None if problems else _total(_gpu_seconds(run, line.rows or 0) for run, line in left)
        minutes = _total(line.minutes for _, line in left) if left else None
        return ExperimentCost(
            experiment=experiment,
            runs=len(waiting),
            rows=None if unread else sum(line.rows or 0 for _, line in left),
            gpu_hours=None if seconds is None else seconds / 3600,
            price=_total(line.cost for _, line in left) if left else None,
            hours=None if minutes is None else minutes / 60,
            problems=(*problems, *dict.fromkeys(_pickled(run) for run, _ in left if _pickled(run))),
        )

    def run(self, items: Sequence[Item], *, executor: Executor | None, reporter: Reporter) -> None:
        """Run what is left of the grids of items, or continue; grids that cannot start are reported and skipped.

        Raises:
            ConfigError: None of the grids can start.
        """
        wanted = dict(_experiments(items))
        grids, problems = list[str](), dict[str, str]()
        for name in wanted:
            try:
                self.grid(name)
                grids.append(name)
            except ConfigError as exc:
                problems[name] = str(exc)
        if wanted and not grids:
            raise ConfigError(" ".join(problems.values()))
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "choices.json", asdict(self.choices))
        for name, problem in problems.items():
            reporter.say(f"{name} is skipped: {problem}")
        for name in grids:
            try:
                if name == "examples":
                    self._write_sentences()
                grid = self.grid(name)
            except (ConfigError, DataError) as exc:
                reporter.say(f"{name} is skipped: {exc}")
                continue
            if all(reason is None for _, reason in self._runs(name, wanted[name])):
                continue
            reporter.say(f"{name}: {EXPERIMENTS[name].title}")
            here = grid.subject == "chain"  # chains of thought are not spread
            place = None if here else executor
            run_grid(grid, self.folder(name).path, executor=place, reporter=reporter, tasks=wanted[name])

    def written(self, items: Sequence[Item], reporter: Reporter) -> list["Made"]:
        """Write the files of every item that has numbers, and return them; what is undefined has no files."""
        sources = self.sources()
        made = [found for item in items if (found := self._made(item, sources, reporter)) is not None]
        contents = {each.item.label: [value.row() for value in each.values] for each in made}
        known = read_json(self.path / "values.json") if (self.path / "values.json").is_file() else {}
        write_json(self.path / "values.json", {**known, **contents})
        return made

    def _made(self, item: Item, sources: Sources, reporter: Reporter) -> "Made | None":
        if item.content is None or item.layout is None:
            return None
        try:
            values = item.content(sources)
        except (ConfigError, DataError) as exc:
            reporter.say(f"{item.label}: {exc}")
            return None
        if not _known(values):
            return None
        table, folder = printed(values, item.layout), self.path / "tables"
        caption = f"{item.title}. {item.note}".strip()
        folder.mkdir(parents=True, exist_ok=True)
        data = DataTable(item.file, [value.row() for value in values])
        paths = {f"{item.file}.csv": as_csv(table).encode()}
        paths[f"{item.file}-values.csv"] = (data_text(data, "csv") + "\n").encode()
        if item.figure:
            write_figures([item.drawn(values, sources)], folder)
            paths[f"{item.file}.tex"] = figure_latex(f"{item.file}.pdf", caption=caption, label=item.label).encode()
        else:
            converter = require("vl_convert", install="vl-convert-python", purpose="to write tables as PDF")
            svg = as_svg(table, caption=caption)
            paths[f"{item.file}.tex"] = as_latex(table, caption=caption, label=item.label).encode()
            paths[f"{item.file}.svg"] = svg.encode()
            paths[f"{item.file}.pdf"] = converter.svg_to_pdf(svg)
        for name, content in paths.items():
            with write_atomically(folder / name) as stream:
                stream.write(content)
        return Made(item, values, table, folder)

    def findings(self, items: Sequence[Item]) -> list[Finding]:
        """Return the paper's statements about items beside these runs; write all of them as `findings.json`."""
        sources = self.sources()
        found = findings(sources)
        write_json(self.path / "findings.json", {"findings": [each._asdict() for each in found]})
        if len(items) == len(ITEMS):
            return found
        return findings(sources, [item.content for item in items if item.content is not None])


@dataclass(frozen=True)
class Made:
    """An item with its numbers, and the folder of its files."""

    item: Item
    values: Sequence[Value]
    table: Printed
    folder: Path


def _known(values: Sequence[Value]) -> bool:
    """Return True if there is a number or word of ours."""
    return any(value.ours is not None for value in values)


def _total(numbers: Iterable[float | None]) -> float | None:
    """Return a sum; None where a number is unknown."""
    known = list(numbers)
    return None if None in known else sum(each or 0.0 for each in known)


def _has_results(item: Item, values: Sequence[Value]) -> bool:
    """Return True if there is a number or word of ours that the table prints, beside counts of examples."""
    shown = {} if item.layout is None else item.layout.quantities
    return any(v.ours is not None and v.quantity in shown and shown[v.quantity].kind != "count" for v in values)


def _pickled(run: PlannedRun) -> str:
    """Return why a model of the suite cannot be read from the hub, if so."""
    suite = suite_model(run.model.ref) if isinstance(run.model.ref, str) else None
    return f"{suite.name} cannot run: {suite.note}" if suite is not None and suite.pickled else ""


def _experiments(items: Sequence[Item]) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield the experiments that items must run, in the order of their declaration, with the tasks or None for all."""
    for name in EXPERIMENTS:
        wanted = [item.tasks for item in items if name in item.experiments and item.label not in _WITHOUT_RUNS]
        if wanted:
            yield name, frozenset().union(*wanted) if all(wanted) else None


def _parameters(ref: str | Served) -> float | None:
    """Return billions of parameters: of a folder by its weights, of others by their names (`Qwen2.5-3B` has three)."""
    suite = suite_model(ref) if isinstance(ref, str) else None
    if suite is not None or not isinstance(ref, str):
        return None if suite is None else suite.parameters
    stored = sum(map(_n_values, Path(ref).glob("*.safetensors")))
    if stored:
        return stored / 1e9
    name = ref.partition("@")[0].rpartition("/")[2]
    named = _SIZE.search(name)
    if named is None:
        return next((size for start, size in _USUAL_SIZES.items() if name.startswith(start)), None)
    return float(named[1]) * (1e-3 if named[2] in "mM" else 1.0)


def _n_values(file: Path) -> int:
    """Return the number of values in a file of weights by its header; 0 where that is damaged."""
    try:
        with file.open("rb") as stream:
            head = json.loads(stream.read(min(int.from_bytes(stream.read(8), "little"), _LONGEST_HEADER)))
        return sum(math.prod(each["shape"]) for name, each in head.items() if name != "__metadata__")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0


def _gpu_seconds(run: PlannedRun, rows: int) -> float | None:
    """Return the seconds of the rows of a run on one H200; None where the size of the model is unknown."""
    parameters, task = _parameters(run.model.ref), run.task
    if parameters is None or not isinstance(task, Task):
        return None
    texts = [each.fields[name] for each in task.examples(limit=100) for name in task.explained]
    words = sum(len(word_spans(text)) for text in texts) / max(1, len(texts)) * len(task.explained)
    return 2e9 * parameters * rows * words * _TOKENS_PER_WORD * _PART_READ / FLOPS


assert set(EXPERIMENTS) == {name for item in ITEMS.values() for name in item.experiments}
