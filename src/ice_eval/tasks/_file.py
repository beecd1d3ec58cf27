"""Tasks by name (`sst2/minimal`) or as a YAML file, and drafts of such files for a user's data."""

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ice_eval._registry import did_you_mean
from ice_eval.choices import SUBJECTS
from ice_eval.errors import ConfigError
from ice_eval.files import home_expanded, read_yaml
from ice_eval.records import Example
from ice_eval.tasks._base import AnyTask, Shot, Task, Wording, label_words_of, tasks
from ice_eval.tasks._data import OPTIONAL, SAME_TEXT, FileData, NoData, Row

T = TypeVar("T")
Rows = Sequence[Row]
_LOOKED_AT = 500
"""Number of rows that are read to classify a column."""
_MOST_LABELS = 20
_MOST_WORDS = 3
"""Most words in the name of a label."""
_ID = re.compile(r"[-_.:/#\w]*\d[-_.:/#\w]*", re.ASCII)
"""A number, or a code with a digit in it; a single word is no id."""
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")
_FILE = re.compile(r"(?P<path>.*?\.ya?ml)(?:/(?P<ways>.*))?", re.IGNORECASE)


def load_task(name: str) -> Task:
    """Return a task about texts; raise ConfigError as `named_task` does, or if it is about another subject."""
    found = named_task(name)
    if not isinstance(found, Task):
        about = SUBJECTS[found.subject]
        raise ConfigError(f"the task '{name}' is about {about}, and a task about texts is needed here.")
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
    factory = tasks.get(known, given=name)
    found = replace(factory(), name=known, description=(factory.__doc__ or "").strip().partition("\n")[0])
    if isinstance(found, Task):
        return found.asked(*ways)
    if ways:
        raise ConfigError(f"the task '{known}' has a single prompt, and '{name}' names another; give '{known}'.")
    return found


def as_functions_read(task: Task) -> Task:
    """Return a task whose prompt a function reads, as with `--prompt`; a known task gives it the bare fields."""
    if task.classifier_prompt is not None:
        return task
    known = named_task(task.name) if task.name.partition("/")[0] in tasks else None
    if isinstance(known, Task) and known.prompt == task.prompt:
        return task
    return replace(task, classifier_prompt=task.prompt)


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
        if content.get(key) is None and not (key == "labels" and content.get("target_text") is not None):
            raise ConfigError(f"'{key}' is missing; a task needs a prompt and its labels, or a `target_text`.")
    given = {key: _READERS[key](value, key) for key, value in content.items() if value is not None}
    data, columns = given.pop("data", None), given.pop("columns", {})
    if data is None and columns:
        raise ConfigError("'columns' renames the columns of 'data', which is missing.")
    prompt, labels = given.pop("prompt"), given.pop("labels", lambda prompt: {})
    task = Task(
        data=NoData() if data is None else FileData(path.parent / home_expanded(data), columns),
        prompt=prompt,
        label_words=labels(prompt),
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


def _of_type(value: object, kind: type[T], where: str, expected: str, advice: str = "") -> T:
    if not isinstance(value, kind):
        raise ConfigError(f"{where}: {expected}, not {_shown(value)}{advice}.")
    return value


def _text(value: object, where: str) -> str:
    return _of_type(value, str, where, "text is expected", "; put it in quotes")


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(_text(each, where) for each in _of_type(value, list, where, "a list is expected, as [one, two]"))


def _labels(value: object, where: str) -> Callable[[str], dict[str, str]]:
    """Read label names with their label words, or names alone; the words of these depend on the prompt."""
    names = _texts(value, where) if isinstance(value, list) else _named_texts(value, where)
    return lambda prompt: names if isinstance(names, dict) else label_words_of(prompt, names)


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
    return Wording(prompt, _labels(given["labels"], f"{where}, labels")(prompt) if "labels" in given else None)


def _shots(value: object, where: str) -> tuple[Shot, ...]:
    shots = []
    for each in _of_type(value, list, where, "a list of examples is expected"):
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
    "labels": _labels,
    "target_text": _text,
    "explain": _texts,
    "group": _text,
    "language": _text,
    "description": _text,
    "lexicon": lambda value, where: frozenset(_texts(value, where)),
    "shots": _shots,
    "worked": _shots,
    "variants": lambda value, where: {
        name: _wording(each, f"{where}, {name}") for name, each in _mapping(value, where).items()
    },
    "classifier_prompt": _text,
    "chat": lambda value, where: _of_type(value, bool, where, "true or false is expected"),
    "system": _text,
}
"""Keys of a file, and the readers of their values."""


# Drafts: which columns are texts, a label or an id


class Columns(NamedTuple):
    """Columns by their apparent content."""

    texts: tuple[str, ...]
    label: str | None
    id: str | None

    @property
    def renamed(self) -> dict[str, str]:
        """Return `label` and `id` -> column of the data, where the names differ."""
        pairs = {"id": self.id, "label": self.label}
        return {ours: theirs for ours, theirs in pairs.items() if theirs is not None and theirs != ours}


def columns_of(rows: Rows) -> Columns:
    """Classify the columns of some rows by their names and values."""
    # A label has few values, each of them short and repeated; an id is short and different in every row. A column
    # called `label` or `id` is that.
    names = [
        name
        for name in (rows[0] if rows else ())
        if all(isinstance(row.get(name), str | int) and not isinstance(row[name], bool) for row in rows)
    ]
    values = {name: [str(row[name]).strip() for row in rows] for name in names}
    others = [name for name in names if name not in OPTIONAL]
    named = [name for name in ("id", "label") if any(row.get(name) is not None for row in rows)]
    distinct = [name for name in others if len(rows) > 1 and len(set(values[name])) == len(rows)]
    ids = ["id"] if "id" in named else [name for name in distinct if all(map(_ID.fullmatch, values[name]))]
    words = [name for name in others if name not in ids and not all(map(_NUMBER.fullmatch, values[name]))]
    few = [name for name in others if _are_labels(values[name])]
    if words and set(words) <= set(few):  # a few short texts, given several times
        few.remove(max(words, key=lambda name: sum(map(len, values[name]))))
    labels = ["label"] if "label" in named else [name for name in few if name in words] or few
    texts = [name for name in words if name not in labels and name.isidentifier()]
    label, identity = (found[0] if len(found) == 1 else None for found in (labels, ids))
    return Columns(tuple(texts), label, identity)


def _are_labels(values: Sequence[str]) -> bool:
    distinct = set(values)
    few = 2 <= len(distinct) <= min(_MOST_LABELS, len(values) // 2)
    return few and all(0 < len(value.split()) <= _MOST_WORDS for value in distinct)


def data_notes(task: Task, examples: Sequence[Example]) -> list[str]:
    """Return notes for the user on shared texts, and on columns that hold names of labels: in the prompt, or unread."""
    in_prompt = _label_columns([example.fields for example in examples], task.labels)
    notes = [
        f"the field '{name}' of the prompt holds the name of a label in every example: the model reads an answer "
        "there. If it is the gold label, take it out of the prompt."
        for name in in_prompt
    ]
    if isinstance(task.data, FileData) and all(example.gold is None for example in examples):
        rows = list(itertools.islice(task.data.rows(), _LOOKED_AT))
        notes += [
            f"the data have no column 'label', but '{name}' holds names of labels: --columns label={name} makes it the "
            "gold label."
            for name in _label_columns(rows, task.labels)
            if name not in in_prompt
        ]
    return notes + _group_notes(examples)


def _group_notes(examples: Sequence[Example]) -> list[str]:
    """Return a note on groups that were found in the texts."""
    counts = Counter(each.group for each in examples if each.group is not None and each.group.startswith(SAME_TEXT))
    sizes = [count for count in counts.values() if count > 1]
    if not sizes:
        return []
    occur = "1 text occurs" if len(sizes) == 1 else f"{len(sizes)} texts occur"
    return [
        f"{occur} in several examples ({sum(sizes)} of {len(examples)}); intervals and tests treat the examples that "
        "share one as a group. A column 'group' of the data takes precedence: --columns group=id, where ids are given, "
        "counts every example as independent."
    ]


def _label_columns(rows: Rows, labels: Sequence[str]) -> list[str]:
    """Return the columns that hold only names of labels, two or more."""
    known = {label.casefold() for label in labels}
    values = {name: {str(row.get(name)).strip().casefold() for row in rows} for name in (rows[0] if rows else ())}
    return [name for name, found in values.items() if len(found) > 1 and found <= known]


_DRAFT = """\
# A task: which texts, what the model is asked, and the words that it answers with.
#   ice task check {file} --model MODEL     shows what the model reads, and how well it answers
#   ice run --task {file} --model MODEL
data: {data}  # .jsonl or .csv, seen from this file: the fields of the prompt, and perhaps `label` and `id`
{columns}prompt: |-  # fields are in braces; the model answers where it ends (a classifier reads the fields alone)
{prompt}
labels:  # name in the data: what the model writes after the prompt, its space included
{labels}

# All that follows is optional.
# language: en  # of the texts
# explain: [{field}]  # fields whose words are kept or removed; by default all of the prompt
# lexicon: [good, bad]  # words that give the label away, which infill must not write
# shots:  # worked examples before every question
#   - {{{shot}, label: {label}}}
# variants:  # other prompts, by name
#   short: "{{{field}}}\\nAnswer:"  # or, with other label words, {{prompt: …, labels: {{…}}}}
"""


def draft(path: Path, data: Path | None = None) -> str:
    """Return the text of a task file at `path`; with data, its fields and labels are those of the data.

    Raises:
        ConfigError: The data have no column that could be a field.
        DataError: The data cannot be read.
    """
    fields, labels, renamed = ["text"], ["negative", "positive"], dict[str, str]()
    if data is not None:
        rows = list(itertools.islice(FileData(data).rows(), _LOOKED_AT))
        columns = columns_of(rows)
        if not columns.texts:
            found = ", ".join(rows[0]) if rows else "nothing"
            raise ConfigError(f"{data} has no column of texts whose name a prompt can use; it has {found}.")
        fields, renamed = list(columns.texts), columns.renamed
        given = {str(row[columns.label]) for row in rows if columns.label and row.get(columns.label) is not None}
        labels = sorted(given) if 2 <= len(given) <= _MOST_LABELS else labels
    shown = "reviews.jsonl" if data is None else os.path.relpath(data, path.parent)
    names = ", ".join(f"{ours}: {_quoted(theirs)}" for ours, theirs in renamed.items())
    return _DRAFT.format(
        file=path.name,
        data=_quoted(Path(shown).as_posix()),
        columns=f"columns: {{{names}}}  # names in the data, which a prompt cannot use\n" if names else "",
        prompt="\n".join([*(f"  {name.capitalize().replace('_', ' ')}: {{{name}}}" for name in fields), "  Label:"]),
        labels="\n".join(f"  {_quoted(label)}: {_quoted(f' {label}')}" for label in labels),
        field=fields[0],
        shot=", ".join(f"{name}: …" for name in fields),
        label=_quoted(labels[0]),
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
