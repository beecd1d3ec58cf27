"""Tasks by name (`sst2/minimal`) or as a YAML file: data, prompt, label words and the other fields of a `Task`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded, read_yaml
from ice_eval.tasks._base import AnyTask, Shot, Task, Wording, label_words_of, tasks
from ice_eval.tasks._data import FileData, NoData

_FILE = re.compile(r"(?P<path>.*?\.ya?ml)(?:/(?P<ways>.*))?", re.IGNORECASE)


def load_task(name: str) -> Task:
    """Return a task about texts; raise ConfigError as `named_task` does, or if it is about chains of thought."""
    found = named_task(name)
    if not isinstance(found, Task):
        raise ConfigError(f"the task '{name}' is about chains of thought, and a task about texts is needed here.")
    return found


def named_task(name: str) -> AnyTask:
    """Return the task of a name (`sst2`) or a file (`mine.yaml`), perhaps in another of its prompts.

    `sst2/minimal` is another wording, `sst2/few-shot` has worked examples before the question, and
    `sst2/minimal/few-shot` is both; see `Task.asked`.

    Raises:
        ConfigError: There is no such task, prompt or file, or the file is invalid.
    """
    file = _FILE.fullmatch(name)
    if file is not None:
        return _from_file(Path(file["path"])).asked(*(file["ways"].split("/") if file["ways"] else ()))
    known, *ways = [name] if name in tasks else name.split("/")
    factory = tasks.get(known)
    found = replace(factory(), name=known, description=(factory.__doc__ or "").strip().partition("\n")[0])
    if isinstance(found, Task):
        return found.asked(*ways)
    if ways:
        raise ConfigError(f"the task '{known}' has a single prompt, and '{name}' names another; give '{known}'.")
    return found


def is_task_file(name: str) -> bool:
    return Path(name).suffix.lower() in {".yaml", ".yml"}


def _from_file(path: Path) -> Task:
    """Read the task of a YAML file, named after it. `data` is a path from the file's folder."""
    content = _mapping(read_yaml(path, what="the task file", advice="`ice task new` writes one."), str(path))
    try:
        return _task(content, path)
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def _task(content: Mapping[str, Any], path: Path) -> Task:
    for key in content:
        if key not in _READERS:
            raise ConfigError(f"no key '{key}'{did_you_mean(str(key), list(_READERS))} Known: {', '.join(_READERS)}.")
    for key in ("prompt", "labels"):
        if content.get(key) is None:
            raise ConfigError(f"'{key}' is missing; a task needs a prompt and its labels.")
    given = {key: _READERS[key](value, key) for key, value in content.items() if value is not None}
    data, columns = given.pop("data", None), given.pop("columns", {})
    if data is None and columns:
        raise ConfigError("'columns' says what the data call their columns, and 'data' is missing.")
    prompt, labels = given.pop("prompt"), given.pop("labels")
    task = Task(
        data=NoData() if data is None else FileData(path.parent / home_expanded(data), columns),
        prompt=prompt,
        label_words=labels if isinstance(labels, dict) else label_words_of(prompt, labels),
        name=path.stem,
        **given,
    )
    for variant in task.variants:  # a prompt that cannot be used is reported now, not at its first use
        task.asked(variant)
    return task


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not value:
        raise ConfigError(f"{where}: keys and values are expected, not {_shown(value)}.")
    for key in value:
        if isinstance(key, bool):  # yes and no, to YAML
            raise ConfigError(f"{where}: a key is read as {str(key).lower()}, not as text; put it in quotes.")
    return {str(key): each for key, each in value.items()}


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: text is expected, not {_shown(value)}; put it in quotes.")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where}: true or false is expected, not {_shown(value)}.")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: a list is expected, as [one, two], not {_shown(value)}.")
    return tuple(_text(each, where) for each in value)


def _words(value: object, where: str) -> dict[str, str] | tuple[str, ...]:
    """Read label names with their label words, or names alone."""
    return _texts(value, where) if isinstance(value, list) else _named_texts(value, where)


def _named_texts(value: object, where: str) -> dict[str, str]:
    return {name: _text(each, f"{where}, {name}") for name, each in _mapping(value, where).items()}


def _wording(value: object, where: str) -> Wording:
    """Read a prompt alone, or one with labels of its own."""
    if isinstance(value, str):
        return Wording(value)
    given = _mapping(value, where)
    if "prompt" not in given or set(given) - {"prompt", "labels"}:
        raise ConfigError(f"{where}: a prompt is expected, or 'prompt' and 'labels', not {', '.join(given)}.")
    prompt = _text(given["prompt"], where)
    if "labels" not in given:
        return Wording(prompt)
    labels = _words(given["labels"], f"{where}, labels")
    return Wording(prompt, labels if isinstance(labels, dict) else label_words_of(prompt, labels))


def _shots(value: object, where: str) -> tuple[Shot, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: a list of examples is expected, not {_shown(value)}.")
    shots = []
    for each in value:
        given = _named_texts(each, where)
        if "label" not in given:
            raise ConfigError(f"{where}: an example has no 'label'; it has {', '.join(given)}.")
        label = given.pop("label")
        shots.append(Shot(given, label))
    return tuple(shots)


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "data": _text,
    "columns": _named_texts,
    "prompt": _text,
    "labels": _words,
    "explain": _texts,
    "language": _text,
    "description": _text,
    "lexicon": lambda value, where: frozenset(_texts(value, where)),
    "shots": _shots,
    "worked": _shots,
    "variants": lambda value, where: {
        name: _wording(each, f"{where}, {name}") for name, each in _mapping(value, where).items()
    },
    "classifier_prompt": _text,
    "chat": _flag,
    "system": _text,
}
"""Keys of a file, and the readers of their values."""
