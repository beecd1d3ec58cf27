"""A grid: models times tasks times prompts, each a run; attributions, operators and k are inside of every run."""

import importlib.resources
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ice_eval._files import home_expanded, read_yaml
from ice_eval._registry import did_you_mean
from ice_eval.attributions import method_of
from ice_eval.bench import _read
from ice_eval.bench._identity import run_name
from ice_eval.bench.models import OF_MODELS, ModelEntry, models_of
from ice_eval.errors import ConfigError
from ice_eval.settings import RUN, RunConfig, run_config
from ice_eval.tasks import FEW_SHOT, STANDARD, Task, in_chat, is_task_file, load_task, with_file

ALL_PROMPTS = "all"
DATA_FILES = (".jsonl", ".csv")


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """A task of a grid, with the data that it is given."""

    task: Task
    prompts: tuple[str, ...]
    """Which of its wordings."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a grid."""

    model: ModelEntry
    task: Task
    """In one wording; its name says which."""
    task_name: str
    prompt: str
    settings: Mapping[str, Any]
    """What `evaluate` is to be called with beside model and task."""

    @property
    def config(self) -> RunConfig:
        """What is asked of it, defaults included."""
        return run_config(self.settings)

    @cached_property
    def name(self) -> str:
        """Of its folder: readable, and another one for other rows."""
        return run_name(self.model.ref, self.model.name, self.task, self.settings)

    def __str__(self) -> str:
        prompt = "" if self.prompt == STANDARD else f", prompt {self.prompt}"
        return f"{self.model.name} on {self.task_name}{prompt}"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is to be run."""

    name: str
    models: tuple[ModelEntry, ...]
    tasks: tuple[TaskEntry, ...]
    settings: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    """Optional tasks for which there are no data."""
    source: Mapping[str, Any]
    """The keys as they were given, to read the grid again from a bench folder."""
    folder: Path
    """Where relative paths start."""

    def runs(self) -> list[PlannedRun]:
        """Model after model, so that one is loaded at a time."""
        return [
            PlannedRun(
                model=model,
                task=in_chat(entry.task.asked(*prompt.split("/")), own.get("chat"), own.get("system")),
                task_name=entry.task.name,
                prompt=prompt,
                settings={key: value for key, value in own.items() if key not in {"chat", "system"}},
            )
            for model in self.models
            for own in [model.settings_within(self.settings)]
            for entry in self.tasks
            for prompt in entry.prompts
        ]


_TASK: Mapping[str, _read.Reader] = {"task": _read.text, "data": _read.text, "optional": _read.flag}
_SETTINGS: Mapping[str, _read.Reader] = {**_read.readers(RUN), **OF_MODELS}


def _several(value: object, where: str) -> list[Any]:
    """One entry or several."""
    found = value if isinstance(value, list) else [value]
    if not found:
        raise ConfigError(f"{where}: at least one is needed.")
    return found


_KEYS: Mapping[str, _read.Reader] = {
    "name": _read.text,
    "description": _read.text,
    "models": _several,
    "tasks": _several,
    "prompts": _read.names,
    "data_dir": _read.text,
    **_SETTINGS,
}


def load_grid(path: Path, **changes: Any) -> Grid:
    """The grid of a YAML file; `changes` are keys in place of its own.

    Raises:
        ConfigError: The file cannot be read, or something in it is not as expected.
    """
    content = read_yaml(path, what="the grid")
    return grid_of(content, where=str(path), folder=path.parent.resolve(), default_name=path.stem, **changes)


def presets() -> dict[str, str]:
    """The grids that come with the package, and a line on each."""
    folder = importlib.resources.files("ice_eval.bench") / "presets"
    paths = sorted(path.name for path in folder.iterdir() if path.name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): str(_preset(name)["description"]) for name in paths}


def preset(name: str, **changes: Any) -> Grid:
    """A grid that comes with the package.

    Raises:
        ConfigError: There is none of that name.
    """
    known = presets()
    if name not in known:
        raise ConfigError(f"no preset '{name}'{did_you_mean(name, list(known))} Known: {', '.join(known)}.")
    where = f"preset {name}"
    return grid_of(_preset(f"{name}.yaml"), where=where, folder=Path.cwd(), default_name=name, **changes)


def _preset(file: str) -> Any:
    import yaml

    path = importlib.resources.files("ice_eval.bench") / "presets" / file
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def grid_of(content: object, *, where: str, folder: Path, default_name: str, **changes: Any) -> Grid:
    """A grid from keys and values; all that can be checked without a model or a hub is checked.

    Args:
        content: As a YAML file holds it.
        where: What messages call it.
        folder: Where relative paths start.
        default_name: The grid's name unless it gives one.
        **changes: Keys in place of its own; None for those that stay.

    Raises:
        ConfigError: Something is not as expected.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: keys and values are expected, as in 'models: [smollm2]'.")
    source = {**content, **{key: value for key, value in changes.items() if value is not None}}
    given = _read.mapping(source, where, _KEYS)
    for key in ("models", "tasks"):
        if key not in given:
            raise ConfigError(f"{where}: '{key}' is missing; a grid needs models and tasks.")
    settings = {key: given[key] for key in _SETTINGS if key in given}
    models = models_of(given["models"], f"{where}: models", folder)
    _check_settings(settings, models, where)
    data_dir = _data_dir(given.get("data_dir"), folder, where)
    entries = [_task(each, f"{where}: tasks", folder, data_dir) for each in given["tasks"]]
    tasks = [task for task in entries if isinstance(task, Task)]
    _read.refuse_doubles([task.name for task in tasks], f"{where}: tasks")
    if not tasks:
        raise ConfigError(
            f"{where}: no task has data; give --data-dir with a file for {' or '.join(map(str, entries))}."
        )
    return Grid(
        name=given.get("name", default_name),
        models=models,
        tasks=tuple(_with_prompts(tasks, given.get("prompts", (STANDARD,)), where)),
        settings=settings,
        left_out=tuple(each for each in entries if isinstance(each, str)),
        source=source,
        folder=folder,
    )


def _check_settings(settings: Mapping[str, Any], models: Sequence[ModelEntry], where: str) -> None:
    """Refuse names and numbers that no run would take, before anything is loaded."""
    try:
        config = run_config(settings)
        for name in config.attributions:
            method_of(name)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    for model in models:
        if model.is_served and config.unit != "word":
            raise ConfigError(
                f"{where}: '{model.name}' is behind a server, and how that cuts a text into tokens is its own affair; "
                "give `unit: word`."
            )


def _task(value: object, where: str, folder: Path, data_dir: Path | None) -> Task | str:
    """The task with its data, or the name of an optional one that has none."""
    given = {"task": _read.text(value, where)} if isinstance(value, str) else _read.mapping(value, where, _TASK)
    if "task" not in given:
        raise ConfigError(f"{where}: an entry has no 'task'; it has {', '.join(given)}.")
    name = str(folder / given["task"]) if is_task_file(given["task"]) else given["task"]
    task = load_task(name)
    data = _data_file(given.get("data"), task.name, folder, data_dir, where)
    if data is None and given.get("optional"):
        return task.name
    return task if data is None else with_file(task, data)


def _data_dir(given: str | None, folder: Path, where: str) -> Path | None:
    found = None if given is None else folder / home_expanded(given)
    if found is not None and not found.is_dir():
        raise ConfigError(
            f"{where}: there is no folder {found}; data_dir holds a TASK.jsonl or TASK.csv for each task."
        )
    return found


def _data_file(given: str | None, task: str, folder: Path, data_dir: Path | None, where: str) -> Path | None:
    """The file that is given for a task, or the one that is named after it: `german.jsonl`, or `german_posts.jsonl`."""
    if given is not None:
        path = folder / home_expanded(given)
        if not path.is_file():
            raise ConfigError(f"{where}: there is no file {path} for the task '{task}'.")
        return path
    if data_dir is None:
        return None
    stem = task.partition("/")[0]
    exact = [path for kind in DATA_FILES if (path := data_dir / f"{stem}{kind}").is_file()]
    longer = sorted(path for kind in DATA_FILES for path in data_dir.glob(f"{stem}_*{kind}"))
    if not exact and len(longer) > 1:
        raise ConfigError(
            f"{where}: {len(longer)} files of {data_dir} begin with '{stem}_': {', '.join(p.name for p in longer)}; "
            f"name one of them {stem}{DATA_FILES[0]}, or give it as `data`."
        )
    return next(iter(exact or longer), None)


def _with_prompts(tasks: Sequence[Task], asked: Sequence[str], where: str) -> Iterator[TaskEntry]:
    """Every task with those of the prompts that it has; `all` stands for every wording of every task."""
    everything = tuple(asked) == (ALL_PROMPTS,)
    known = list(dict.fromkeys(way for task in tasks for way in task.ways))
    for prompt in () if everything else asked:
        unknown = [way for way in prompt.split("/") if way not in known]
        if unknown:
            raise ConfigError(
                f"{where}: no task of the grid has a prompt '{unknown[0]}'{did_you_mean(unknown[0], known)} "
                f"They have {', '.join(known)}; '{ALL_PROMPTS}' takes all wordings."
            )
    for task in tasks:
        wordings = [way for way in task.ways if way != FEW_SHOT]
        own = wordings if everything else [each for each in asked if set(each.split("/")) <= set(task.ways)]
        if not own:
            raise ConfigError(
                f"{where}: the task '{task.name}' has none of these prompts; it has {', '.join(task.ways)}."
            )
        yield TaskEntry(task=task, prompts=tuple(own))
