"""What the columns of a user's data look like: texts, a label, an id."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ice_eval.records import Example
from ice_eval.tasks._base import Task
from ice_eval.tasks._data import FileData

Rows = Sequence[Mapping[str, Any]]

LOOKED_AT = 500
"""Rows that show what a column holds."""

_OURS = ("id", "label", "group", "rationale")
_MOST_LABELS = 20
_MOST_WORDS = 3
"""A longer value is no name of a label."""


_ID = re.compile(r"[-_.:/#\w]*\d[-_.:/#\w]*", re.ASCII)
"""A number, or a code with a digit in it; a single word is no id."""


_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")


class Columns(NamedTuple):
    """Columns by what they seem to hold."""

    texts: tuple[str, ...]
    label: str | None
    id: str | None

    @property
    def renamed(self) -> dict[str, str]:
        """`label` and `id` -> what the data call them, where that is something else."""
        pairs = {"id": self.id, "label": self.label}
        return {ours: theirs for ours, theirs in pairs.items() if theirs is not None and theirs != ours}


def columns_of(rows: Rows) -> Columns:
    """What is in the columns of some rows, by their names and values.

    A label has few values, each of them short and given several times; an id is short and different in every row.
    What is called `label` or `id` is that.
    """
    names = [name for name in (rows[0] if rows else ()) if all(_is_cell(row.get(name)) for row in rows)]
    values = {name: [str(row[name]).strip() for row in rows] for name in names}
    others = [name for name in names if name not in _OURS]
    ids = _called(rows, "id") or [name for name in others if _are_ids(values[name])]
    words = [name for name in others if name not in ids and not _are_numbers(values[name])]
    few = [name for name in others if _are_labels(values[name])]
    if words and set(words) <= set(few):  # a few short texts, given several times
        few.remove(max(words, key=lambda name: sum(map(len, values[name]))))
    labels = _called(rows, "label") or [name for name in few if name in words] or few
    texts = [name for name in words if name not in labels and name.isidentifier()]
    label, identity = (found[0] if len(found) == 1 else None for found in (labels, ids))
    return Columns(tuple(texts), label, identity)


def _called(rows: Rows, name: str) -> list[str]:
    """The name, if some row has something of that name."""
    return [name] if any(row.get(name) is not None for row in rows) else []


def data_notes(task: Task, examples: Sequence[Example]) -> list[str]:
    """What a user should know of columns that hold names of labels: in the prompt, or unread."""
    told = _label_columns([example.fields for example in examples], task.labels)
    notes = [
        f"the field '{name}' of the prompt holds the name of a label in every example: the model reads an answer "
        "there. If it is the gold label, take it out of the prompt."
        for name in told
    ]
    if isinstance(task.data, FileData) and all(example.gold is None for example in examples):
        rows = list(itertools.islice(task.data.rows(), LOOKED_AT))
        notes += [
            f"the data have no column 'label', but '{name}' holds names of labels: --columns label={name} makes it the "
            "gold label."
            for name in _label_columns(rows, task.labels)
            if name not in told
        ]
    return notes


def _label_columns(rows: Rows, labels: Sequence[str]) -> list[str]:
    """Columns that hold names of labels, two or more, and nothing else."""
    known = {label.casefold() for label in labels}
    said = {name: _said(row.get(name) for row in rows) for name in (rows[0] if rows else ())}
    return [name for name, found in said.items() if len(found) > 1 and found <= known]


def _said(values: Iterable[object]) -> set[str]:
    return {str(value).strip().casefold() for value in values}


def _is_cell(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _are_labels(values: Sequence[str]) -> bool:
    distinct = set(values)
    return 2 <= len(distinct) <= min(_MOST_LABELS, len(values) // 2) and all(map(_is_short, distinct))


def _are_ids(values: Sequence[str]) -> bool:
    return len(values) > 1 and len(set(values)) == len(values) and all(map(_ID.fullmatch, values))


def _are_numbers(values: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(value) for value in values)


def _is_short(value: str) -> bool:
    return 0 < len(value.split()) <= _MOST_WORDS
