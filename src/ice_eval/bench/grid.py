"""A grid: models times tasks times prompts, each a run; attributions, operators and k are part of every run.

Its tasks are about texts, or all about chains of thought, which have no prompts to choose from.
"""

import hashlib
import importlib.resources
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ice_eval import settings as declared
from ice_eval._registry import did_you_mean
from ice_eval.attributions import method_of
from ice_eval.choices import SUBJECTS, SubjectName
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded, read_yaml
from ice_eval.models import SERVED, Served, suite_model
from ice_eval.models import models as known_models
from ice_eval.rationales import DYNAMIC, Share
from ice_eval.results import content_hash, slug
from ice_eval.settings import RunConfig, Setting, chain_fields, refuse_others, run_config
from ice_eval.subjects.chain import ReasoningTask, given_task
from ice_eval.tasks import FEW_SHOT, STANDARD, AnyTask, FileData, Task, in_chat, is_task_file, named_task, with_file

Reader = Callable[[Any, str], Any]
"""Checks the value of a key, whose name in messages is the second argument, and returns it in one form."""
ALL_PROMPTS = "all"
DATA_FILES = (".jsonl", ".csv")
_NO_ROWS = {each.name for each in declared.SETTINGS.values() if each.role != "rows"}
"""Settings that may change without changing rows."""


# --- readers of values --------------------------------------------------------------------------------------------


def _wrong(where: str, expected: str, value: object) -> ConfigError:
    return ConfigError(f"{where}: {expected}, not {'nothing' if value is None else f'{value!r:.60}'}.")


def _reader(expected: str, read: Callable[[Any], Any]) -> Reader:
    """Return a reader that refuses values for which `read` returns None."""

    def checked(value: object, where: str) -> Any:
        found = read(value)
        if found is None:
            raise _wrong(where, expected, value)
        return found

    return checked


_text = _reader("text is expected", lambda value: (isinstance(value, str) and value.strip()) or None)


def _names(value: object, where: str) -> tuple[str, ...]:
    """Read a list of names, or a comma-separated text, as on the command line."""
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list) or not value:
        raise _wrong(where, "a list is expected, as [one, two]", value)
    found = tuple(_text(each, where) for each in value)
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} names something twice: {', '.join(found)}.")
    return found


def _shares(value: object) -> tuple[Share, ...] | None:
    several: list[Any] = value if isinstance(value, list) else [value]
    if not several or not all(each == DYNAMIC or type(each) in {int, float} for each in several):
        return None
    return tuple(each if each == DYNAMIC else float(each) for each in several)


def _several(value: object, where: str) -> list[Any]:
    found = value if isinstance(value, list) else [value]
    if not found:
        raise ConfigError(f"{where}: at least one is needed.")
    return found


_READERS: Mapping[declared.Kind, Reader] = {
    "text": _text,
    "names": _names,
    "shares": _reader(f"shares between 0 and 1 are expected, as [0.1, 0.2], or {DYNAMIC}", _shares),
    "count": _reader("a whole number is expected", lambda value: value if type(value) is int else None),
    "number": _reader("a number is expected", lambda value: float(value) if type(value) in {int, float} else None),
    "flag": _reader("true or false is expected", lambda value: value if isinstance(value, bool) else None),
}


_temperature = _reader(
    "a number or 'server' is expected",
    lambda value: value if value == "server" or type(value) in {int, float} else None,
)


def _readers(settings: Iterable[Setting]) -> dict[str, Reader]:
    return {each.name: _temperature if each.name == "temperature" else _READERS[each.kind] for each in settings}


OF_LOADING = declared.names_of(declared.LOADING)
_OF_MODELS = _readers((*declared.CHAT, *declared.LOADING, *declared.BATCHING))
"""Settings of all models of a grid, or of one."""
_OF_SERVERS = _readers(declared.SERVING)
_MODEL = {
    **dict.fromkeys(("model", "name", "base", "tuning"), _text), "tasks": _names, **_OF_MODELS, **_OF_SERVERS
}  # fmt: skip
_RESPONSES = "responses"
_TASK = {**dict.fromkeys(("task", "data", _RESPONSES), _text), "optional": _READERS["flag"]}
_SETTINGS = {**_readers((*declared.RUN, *(each for each in declared.CHAIN if each.name != _RESPONSES))), **_OF_MODELS}
_LISTS = {"models": _several, "tasks": _several, "prompts": _names}
_KEYS: Mapping[str, Reader] = {
    "name": _text, "description": _text, **_LISTS, "data_dir": _text, "base_url": _text, **_SETTINGS
}  # fmt: skip


def _mapping(value: object, where: str, known: Mapping[str, Reader]) -> dict[str, Any]:
    """Read keys and values, each by its reader; raise for an unknown key, skip one without a value."""
    if not isinstance(value, dict):
        raise _wrong(where, "keys and values are expected", value)
    found = {}
    for given, each in value.items():
        key = str(given).replace("-", "_")
        if key not in known:
            raise ConfigError(f"{where}: no key '{given}'{did_you_mean(key, list(known))} Known: {', '.join(known)}.")
        if each is not None:
            found[key] = known[key](each, f"{where}: {given}")
    return found


def _entry(value: object, where: str, known: Mapping[str, Reader], *keys: str) -> dict[str, Any]:
    """Read an entry of a list: a name, or keys and values with at least one of `keys`; a name alone is the first."""
    given = {keys[0]: _text(value, where)} if isinstance(value, str) else _mapping(value, where, known)
    if not any(key in given for key in keys):
        raise ConfigError(f"{where}: an entry has no '{keys[0]}'; it has {', '.join(given)}.")
    return given


def _refuse_doubles(names: Sequence[str], where: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{where}: '{twice}' is listed twice; give one of them another name.")


# --- grids --------------------------------------------------------------------------------------------------------

GridTask = Task | ReasoningTask


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model of a grid."""

    ref: str | Served
    """The value of `ice run --model`, or a model behind a server."""
    name: str
    base: str | None = None
    """Name of the model that it was tuned from, for the comparison of the two."""
    tuning: str | None = None
    """`base`, or the kind of tuning, as `instruct`; known for models of the published suite."""
    tasks: tuple[str, ...] | None = None
    """Names of the grid's tasks that it is run on; None for all."""
    settings: Mapping[str, Any]
    """`chat`, `system`, `token_budget` and loading settings, as `device`, in place of the grid's."""

    @property
    def is_served(self) -> bool:
        return isinstance(self.ref, Served)

    def settings_within(self, grid: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of its runs: the grid's, overridden by its own; none of loading if served."""
        left_out = OF_LOADING if self.is_served else ()
        return {**{key: value for key, value in grid.items() if key not in left_out}, **self.settings}


class TaskEntry(NamedTuple):
    task: GridTask
    prompts: tuple[str, ...]
    """Names of its prompts; chains of thought have one."""
    responses: Path | None = None
    """A file of chains that were written before."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    model: ModelEntry
    task: GridTask
    """Task in one wording, which its name includes."""
    task_name: str
    prompt: str
    settings: Mapping[str, Any]
    """Arguments of `evaluate` beside model and task."""

    @property
    def config(self) -> RunConfig:
        """Configuration, defaults included."""
        return run_config(self.settings, self.task.subject, task=self.task.name, language=self.language)

    @property
    def language(self) -> str:
        return self.task.language if isinstance(self.task, Task) else "und"

    @property
    def head(self) -> dict[str, Any]:
        """Its name, and the names of model, task, prompt and language in the grid."""
        names = {"model": self.model.name, "task": self.task_name, "prompt": self.prompt}
        return {"name": self.name, **names, "language": self.language}

    @cached_property
    def name(self) -> str:
        """Name of its folder, unique to its rows: `smollm2_sst2-minimal_1a2b3c4d`."""
        ref, task = self.model.ref, self.task
        rows = {
            "model": SERVED + ref.name if isinstance(ref, Served) else ref,
            # A server shows no weights; the tokenizer that cuts its texts, and further fields of requests define rows.
            "weights": [ref.tokenizer, *filter(None, [ref.extra_text])]
            if isinstance(ref, Served)
            else _weights(Path(ref)),
            "data": _content(task),
            "task": {"name": task.name, "version": task.version, **self._asked},
            "settings": {
                key: value for key, value in sorted(self.settings.items()) if key not in {*_NO_ROWS, _RESPONSES}
            },
        }
        return f"{_slug(self.model.name)}_{_slug(task.name)}_{content_hash(rows)[:8]}"

    @property
    def _asked(self) -> dict[str, Any]:
        """Return what defines the rows of its task, beside name and version."""
        task = self.task
        if isinstance(task, ReasoningTask):
            return {"pose": chain_fields(self.settings)["poses"][0], "given": _RESPONSES in self.settings}
        return {
            "prompt": [task.prompt, task.classifier_prompt, dict(task.label_words), [*map(asdict, task.shots)]],
            "explained": task.explained,
            "chat": [task.chat, task.system],
            "lexicon": sorted(task.lexicon),
        }

    def __str__(self) -> str:
        prompt = "" if self.prompt == STANDARD else f", prompt {self.prompt}"
        return f"{self.model.name} on {self.task_name}{prompt}"


def _weights(path: Path) -> list[Any]:
    """Return size and time of the weights in a folder: a model that was trained further is another model."""
    files = [path] if path.is_file() else sorted(path.glob("*.safetensors")) if path.is_dir() else []
    return [[file.name, (stat := file.stat()).st_size, stat.st_mtime_ns] for file in files]


def _content(task: GridTask) -> str:
    """Return the identity of the data: for a file its content and column mapping, whatever its path."""
    if isinstance(task.data, FileData):
        found = hashlib.sha256(task.data.path.read_bytes()).hexdigest()
        return f"{found} {sorted(task.data.columns.items())}" if task.data.columns else found
    return repr(task.data)


def _slug(text: str) -> str:
    """Return a name in plain letters and digits; of a folder, its own name."""
    return slug(re.sub(r"[^A-Za-z0-9.]+", "-", Path(text).name if Path(text).is_absolute() else text))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Models, tasks and settings to run."""

    name: str
    models: tuple[ModelEntry, ...]
    tasks: tuple[TaskEntry, ...]
    settings: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    """Optional tasks for which there are no data."""
    source: Mapping[str, Any]
    """Keys as given, to read the grid again from a bench folder."""
    folder: Path
    """Base of relative paths."""

    @property
    def subject(self) -> SubjectName:
        """Return the kind of input of all its tasks."""
        return self.tasks[0].task.subject

    def runs(self) -> list[PlannedRun]:
        """Return all runs, model after model, so that one is loaded at a time."""
        return [
            PlannedRun(
                model=model,
                task=in_chat(entry.task.asked(*prompt.split("/")), own.get("chat"), own.get("system"))
                if isinstance(entry.task, Task)
                else entry.task,
                task_name=entry.task.name,
                prompt=prompt,
                settings={key: value for key, value in own.items() if key not in {"chat", "system"}}
                | ({} if entry.responses is None else {_RESPONSES: str(entry.responses)}),
            )
            for model in self.models
            for own in [model.settings_within(self.settings)]
            for entry in self.tasks
            if model.tasks is None or entry.task.name in model.tasks
            for prompt in entry.prompts
        ]


def load_grid(path: Path, **changes: Any) -> Grid:
    """Read the grid of a YAML file; `changes` are keys in place of its own."""
    content, folder = read_yaml(path, what="the grid"), path.parent.resolve()
    return grid_of(content, where=str(path), folder=folder, default_name=path.stem, **changes)


def presets() -> dict[str, str]:
    """Return the names of the grids that come with the package, and a line on each."""
    return {name: str(content["description"]) for name, content in _presets().items()}


def preset(name: str, **changes: Any) -> Grid:
    """Return a grid that comes with the package; raise `ConfigError` for an unknown name."""
    known = _presets()
    if name not in known:
        raise ConfigError(f"no preset '{name}'{did_you_mean(name, list(known))} Known: {', '.join(known)}.")
    return grid_of(known[name], where=f"preset {name}", folder=Path.cwd(), default_name=name, **changes)


def _presets() -> dict[str, Any]:
    import yaml

    files = (importlib.resources.files("ice_eval.bench") / "presets").iterdir()
    texts = {file.name.removesuffix(".yaml"): file.read_text("utf-8") for file in files if file.name.endswith(".yaml")}
    return {name: yaml.safe_load(text) for name, text in sorted(texts.items())}


def grid_of(content: object, *, where: str, folder: Path, default_name: str, **changes: Any) -> Grid:
    """Return a grid from the content of a YAML file; checks everything that needs no model and no hub.

    `where` is the file's name in messages, `folder` the base of relative paths, `default_name` the grid's name unless
    it gives one; `changes` are keys in place of its own, None for those that stay.

    Raises:
        ConfigError: A key or a value is invalid.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: keys and values are expected, as in 'models: [smollm2]'.")
    source = {**content, **{key: value for key, value in changes.items() if value is not None}}
    given = _mapping(source, where, _KEYS)
    for key in ("models", "tasks"):
        if key not in given:
            raise ConfigError(f"{where}: '{key}' is missing; a grid needs models and tasks.")
    settings = {key: given[key] for key in _SETTINGS if key in given}
    models = _models(given["models"], f"{where}: models", folder, given.get("base_url"))
    data_dir = None if "data_dir" not in given else folder / home_expanded(given["data_dir"])
    if data_dir is not None and not data_dir.is_dir():
        raise ConfigError(
            f"{where}: there is no folder {data_dir}; data_dir holds a TASK.jsonl or TASK.csv for each task."
        )
    entries = [_task(each, f"{where}: tasks", folder, data_dir) for each in given["tasks"]]
    tasks = [each for each in entries if isinstance(each, TaskEntry)]
    left_out = tuple(each for each in entries if isinstance(each, str))
    _refuse_doubles([each.task.name for each in tasks], f"{where}: tasks")
    if not tasks:
        raise ConfigError(f"{where}: no task has data; give --data-dir with a file for {' or '.join(left_out)}.")
    _refuse_mixture([each.task for each in tasks], where)
    known = [*(each.task.name for each in tasks), *left_out]
    for name in (name for model in models for name in model.tasks or () if name not in known):
        raise ConfigError(
            f"{where}: models: no task '{name}' in the grid{did_you_mean(name, known)} It has {', '.join(known)}."
        )
    _check_settings(settings, models, tasks[0].task, where)
    of_texts = [each.task for each in tasks if isinstance(each.task, Task)]
    if not of_texts and "prompts" in given:
        raise ConfigError(
            f"{where}: 'prompts' are those of tasks about texts, and its tasks have one each; leave it out."
        )
    return Grid(
        name=given.get("name", default_name),
        models=models,
        tasks=tuple(_with_prompts(of_texts, given.get("prompts", (STANDARD,)), where) if of_texts else tasks),
        settings=settings,
        left_out=left_out,
        source=source,
        folder=folder,
    )


def _refuse_mixture(tasks: Sequence[GridTask], where: str) -> None:
    """Raise ConfigError if tasks are about several subjects: most settings are about one of them."""
    first = tasks[0]
    for other in (task for task in tasks if task.subject != first.subject):
        raise ConfigError(
            f"{where}: a grid is about texts or about chains of thought, and '{first.name}' is about "
            f"{SUBJECTS[first.subject]}, '{other.name}' about {SUBJECTS[other.subject]}; give each a grid of its own."
        )


def _check_settings(settings: Mapping[str, Any], models: Sequence[ModelEntry], task: GridTask, where: str) -> None:
    """Raise for names and numbers that no run accepts, before anything is loaded; `task` is one of the grid's."""
    try:
        config = run_config(settings, task.subject)
        for name in config.attributions:
            method_of(name)
        for model in models:
            tokenizer = {"tokenizer": model.ref.tokenizer} if isinstance(model.ref, Served) else {}
            refuse_others({**settings, **model.settings, **tokenizer}, task.subject, task.name)
        if task.subject == "chain" and chain_fields(settings)["levels"]:
            for model in (model for model in models if model.is_served):
                raise ConfigError(
                    f"'levels' look into the model, and '{model.name}' is behind a server; load it here, or leave them "
                    "out."
                )
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    for model in models:
        if task.subject == "text" and model.is_served and config.unit != "word":
            raise ConfigError(
                f"{where}: '{model.name}' is behind a server, so its tokens are not known here; give `unit: word`."
            )


def _models(given: Sequence[object], where: str, folder: Path, base_url: str | None) -> tuple[ModelEntry, ...]:
    found = list[ModelEntry]()
    for value in given:
        entry = _model(value, where, folder, base_url)
        alike = [each for each in found if each.name == entry.name]
        is_named = isinstance(value, Mapping) and value.get("name") is not None
        if alike and not is_named and not any(_place(each) == _place(entry) for each in alike):
            # The first of its name keeps it, so its runs are those of a grid without the others.
            entry = replace(entry, name=f"{entry.name} ({_place(entry)})")
        found.append(entry)
    if base_url is not None and not any(entry.is_served for entry in found):
        raise ConfigError(
            f"{where}: 'base_url' applies only to served models, and the grid has none; write {SERVED}NAME, or leave "
            "it out."
        )
    names = [entry.name for entry in found]
    _refuse_doubles(names, where)
    for entry in found:
        if entry.base is not None and entry.base not in names:
            raise ConfigError(
                f"{where}: the base '{entry.base}' of '{entry.name}' is not among them"
                f"{did_you_mean(entry.base, names)} There are {', '.join(names)}."
            )
    return tuple(found)


def _place(entry: ModelEntry) -> str:
    """Return where a model is: the address of its server, or its folder."""
    if isinstance(entry.ref, Served):
        address = urlsplit(entry.ref.base_url)
        return f"{address.netloc}{address.path}".removesuffix("/").removesuffix("/v1")
    return str(Path(entry.ref).parent)


def _model(value: object, where: str, folder: Path, base_url: str | None) -> ModelEntry:
    given = _entry(value, where, _MODEL, "model")
    name: str = given["model"]
    if name.startswith(SERVED) and base_url is not None:
        given = {"base_url": base_url, **given}
    ref = _served(given, where) if name.startswith(SERVED) else _loadable(given, where, folder)
    suite = suite_model(ref) if isinstance(ref, str) else None
    called = Path(ref).name if isinstance(ref, str) and Path(ref).is_absolute() else name
    return ModelEntry(
        ref=ref,
        name=given.get("name", called),
        base=given.get("base"),
        tuning=given.get("tuning", None if suite is None else suite.tuning),
        tasks=given.get("tasks"),
        settings={key: given[key] for key in _OF_MODELS if key in given},
    )


def _loadable(given: Mapping[str, Any], where: str, folder: Path) -> str:
    name: str = given["model"]
    for key in (key for key in _OF_SERVERS if key in given):
        raise ConfigError(
            f"{where}: '{key}' applies only to served models, and '{name}' is not one; write {SERVED}{name} if a "
            "server has it."
        )
    place = folder / home_expanded(name)
    return str(place.resolve()) if name not in known_models and place.exists() else name


def _served(given: Mapping[str, Any], where: str) -> Served:
    name: str = given["model"]
    if "base_url" not in given:
        raise ConfigError(
            f"{where}: '{name}' is served; add its address: {{model: {name}, base_url: http://localhost:8000/v1}}."
        )
    for key in (key for key in OF_LOADING if key in given):
        raise ConfigError(f"{where}: '{key}' applies only to models loaded here, and '{name}' is behind a server.")
    try:
        own = {"timeout_s" if key == "timeout" else key: given[key] for key in _OF_SERVERS if key in given}
        return Served(name.removeprefix(SERVED), **own)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


def _task(value: object, where: str, folder: Path, data_dir: Path | None) -> TaskEntry | str:
    """Return the task with its data, or the name of an optional one without data."""
    given = _entry(value, where, _TASK, "task", _RESPONSES)
    responses = _file(given[_RESPONSES], folder, where, "of chains") if _RESPONSES in given else None
    name: str | None = given.get("task")
    task: AnyTask
    if name is None:
        assert responses is not None, "an entry has a task or responses"
        task = given_task(responses.stem)
    else:
        task = named_task(str(folder / name) if is_task_file(name) else name)
    if not isinstance(task, GridTask):
        raise ConfigError(
            f"{where}: '{task.name}' is about {SUBJECTS[task.subject]}, and a grid takes tasks about texts or chains "
            "of thought; run it by itself: `ice run`."
        )
    if responses is not None:
        if not isinstance(task, ReasoningTask):
            raise ConfigError(f"{where}: 'responses' are chains of thought, and '{task.name}' is about texts.")
        if "data" in given:
            raise ConfigError(f"{where}: 'responses' hold their questions themselves; leave out 'data'.")
        return TaskEntry(replace(task, data=FileData(responses)), (STANDARD,), responses)
    found = None if data_dir is None or "data" in given else _data_file(task.name.partition("/")[0], data_dir, where)
    if "data" in given:
        found = _file(given["data"], folder, where, f"for the task '{task.name}'")
    if found is None and given.get("optional"):
        return task.name
    return TaskEntry(task if found is None else with_file(task, found), (STANDARD,))


def _file(given: str, folder: Path, where: str, purpose: str) -> Path:
    path = folder / home_expanded(given)
    if not path.is_file():
        raise ConfigError(f"{where}: there is no file {path} {purpose}.")
    return path


def _data_file(task: str, data_dir: Path, where: str) -> Path | None:
    """Return the file that is named after a task: `german.jsonl`, or `german_posts.jsonl`."""
    exact = [path for kind in DATA_FILES if (path := data_dir / f"{task}{kind}").is_file()]
    longer = sorted(path for kind in DATA_FILES for path in data_dir.glob(f"{task}_*{kind}"))
    if not exact and len(longer) > 1:
        raise ConfigError(
            f"{where}: {len(longer)} files of {data_dir} begin with '{task}_': {', '.join(p.name for p in longer)}; "
            f"name one of them {task}{DATA_FILES[0]}, or give it as `data`."
        )
    return next(iter(exact or longer), None)


def _with_prompts(tasks: Sequence[Task], asked: Sequence[str], where: str) -> Iterator[TaskEntry]:
    """Yield every task with those of the prompts that it has; `all` is every wording of every task."""
    everything = tuple(asked) == (ALL_PROMPTS,)
    known = list(dict.fromkeys(way for task in tasks for way in task.ways))
    for unknown in (way for prompt in asked if not everything for way in prompt.split("/") if way not in known):
        raise ConfigError(
            f"{where}: no task of the grid has a prompt '{unknown}'{did_you_mean(unknown, known)} "
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
