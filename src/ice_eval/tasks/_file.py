"""A task as a YAML file: data, prompt and label words, and whatever else a `Task` may have."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded, read_yaml
from ice_eval.tasks._base import Shot, Task, Wording, label_words_of
from ice_eval.tasks._data import DataSource, FileData, NoData


def is_task_file(name: str) -> bool:
    """Whether a name is that of a task file."""
    return Path(name).suffix.lower() in {".yaml", ".yml"}


def task_from_file(path: Path) -> Task:
    """The task of a YAML file, named after it. `data` is a path from the file's folder.

    Raises:
        ConfigError: The file cannot be read, or something in it is not as expected.
    """
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
    prompt, labels = given.pop("prompt"), given.pop("labels")
    task = Task(
        data=_data(given.pop("data", None), given.pop("columns", {}), path.parent),
        prompt=prompt,
        label_words=labels if isinstance(labels, dict) else label_words_of(prompt, labels),
        name=path.stem,
        **given,
    )
    for variant in task.variants:  # a prompt that cannot be used is told now, not when it is asked for
        task.asked(variant)
    return task


def _data(given: str | None, columns: Mapping[str, str], folder: Path) -> DataSource:
    if given is None and columns:
        raise ConfigError("'columns' says what the data call their columns, and 'data' is missing.")
    return NoData() if given is None else FileData(folder / home_expanded(given), columns)


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
    """Label names with the words that the model writes, or names alone."""
    if isinstance(value, list):
        return _texts(value, where)
    return {name: _text(word, f"{where}, {name}") for name, word in _mapping(value, where).items()}


def _columns(value: object, where: str) -> dict[str, str]:
    return {name: _text(column, f"{where}, {name}") for name, column in _mapping(value, where).items()}


def _variants(value: object, where: str) -> dict[str, Wording]:
    return {name: _wording(each, f"{where}, {name}") for name, each in _mapping(value, where).items()}


def _wording(value: object, where: str) -> Wording:
    """A prompt alone, or one with labels of its own."""
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
    return tuple(_shot(each, where) for each in value)


def _shot(value: object, where: str) -> Shot:
    given = {name: _text(each, f"{where}, {name}") for name, each in _mapping(value, where).items()}
    if "label" not in given:
        raise ConfigError(f"{where}: an example has no 'label'; it has {', '.join(given)}.")
    return Shot({name: each for name, each in given.items() if name != "label"}, given["label"])


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "data": _text,
    "columns": _columns,
    "prompt": _text,
    "labels": _words,
    "explain": _texts,
    "language": _text,
    "description": _text,
    "lexicon": lambda value, where: frozenset(_texts(value, where)),
    "shots": _shots,
    "worked": _shots,
    "variants": _variants,
    "classifier_prompt": _text,
    "chat": _flag,
    "system": _text,
}
"""What a file may hold, and how it is read."""
