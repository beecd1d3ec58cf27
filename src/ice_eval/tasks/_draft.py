"""A draft of a task file for a user's data: it guesses which columns are texts, a label or an id."""

import itertools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ice_eval.errors import ConfigError
from ice_eval.records import Example
from ice_eval.tasks._base import Task
from ice_eval.tasks._data import OPTIONAL, FileData, Row

Rows = Sequence[Row]

_LOOKED_AT = 500
"""Number of rows that are read to classify a column."""

_MOST_LABELS = 20
_MOST_WORDS = 3
"""Most words in the name of a label."""

_ID = re.compile(r"[-_.:/#\w]*\d[-_.:/#\w]*", re.ASCII)
"""A number, or a code with a digit in it; a single word is no id."""
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")


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
    ids = ["id"] if "id" in named else [name for name in others if _are_ids(values[name])]
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


def _are_ids(values: Sequence[str]) -> bool:
    return len(values) > 1 and len(set(values)) == len(values) and all(map(_ID.fullmatch, values))


def data_notes(task: Task, examples: Sequence[Example]) -> list[str]:
    """Return notes for the user on columns that hold names of labels: in the prompt, or unread."""
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
    return notes


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
{columns}prompt: |-  # fields stand in braces; the model answers where it ends (a classifier reads the fields alone)
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
            raise ConfigError(f"{data} has no column of texts whose name could stand in a prompt; it has {found}.")
        fields, renamed = list(columns.texts), columns.renamed
        given = {str(row[columns.label]) for row in rows if columns.label and row.get(columns.label) is not None}
        labels = sorted(given) if 2 <= len(given) <= _MOST_LABELS else labels
    shown = "reviews.jsonl" if data is None else os.path.relpath(data, path.parent)
    names = ", ".join(f"{ours}: {_quoted(theirs)}" for ours, theirs in renamed.items())
    return _DRAFT.format(
        file=path.name,
        data=_quoted(Path(shown).as_posix()),
        columns=f"columns: {{{names}}}  # what the data call them: these do not stand in the prompt\n" if names else "",
        prompt="\n".join([*(f"  {name.capitalize().replace('_', ' ')}: {{{name}}}" for name in fields), "  Label:"]),
        labels="\n".join(f"  {_quoted(label)}: {_quoted(f' {label}')}" for label in labels),
        field=fields[0],
        shot=", ".join(f"{name}: …" for name in fields),
        label=_quoted(labels[0]),
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
