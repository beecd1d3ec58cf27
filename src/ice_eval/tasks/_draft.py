"""The beginning of a task file: ten lines to fill in, and comments that say what else there is."""

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ice_eval.errors import ConfigError
from ice_eval.tasks._columns import LOOKED_AT, columns_of
from ice_eval.tasks._data import FileData

_MOST_LABELS = 20

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
    """The text of a task file at `path`; with data, its fields and labels are those of the data.

    Raises:
        ConfigError: The data have no column that could be a field.
        DataError: The data cannot be read.
    """
    found = _Found(["text"], ["negative", "positive"], {}) if data is None else _found(data)
    shown = "reviews.jsonl" if data is None else os.path.relpath(data, path.parent)
    title = {name: name.capitalize().replace("_", " ") for name in found.fields}
    return _DRAFT.format(
        file=path.name,
        data=_quoted(Path(shown).as_posix()),
        columns=_columns(found.columns),
        prompt="\n".join([*(f"  {title[name]}: {{{name}}}" for name in found.fields), "  Label:"]),
        labels="\n".join(f"  {_quoted(label)}: {_quoted(f' {label}')}" for label in found.labels),
        field=found.fields[0],
        shot=", ".join(f"{name}: …" for name in found.fields),
        label=_quoted(found.labels[0]),
    )


class _Found(NamedTuple):
    fields: list[str]
    labels: list[str]
    columns: Mapping[str, str]


def _found(data: Path) -> _Found:
    """Columns that hold text, labels in the order of their names, and what `label` and `id` are called.

    Labels are two to be filled in where there are none.
    """
    rows = list(itertools.islice(FileData(data).rows(), LOOKED_AT))
    columns = columns_of(rows)
    if not columns.texts:
        told = ", ".join(rows[0]) if rows else "nothing"
        raise ConfigError(f"{data} has no column of texts whose name could stand in a prompt; it has {told}.")
    named = [row.get(columns.label) for row in rows] if columns.label is not None else []
    labels = sorted({str(label) for label in named if label is not None})
    known = labels if 2 <= len(labels) <= _MOST_LABELS else ["negative", "positive"]
    return _Found(list(columns.texts), known, columns.renamed)


def _columns(columns: Mapping[str, str]) -> str:
    """The line that says what the data call a label and an id, where that is something else."""
    pairs = ", ".join(f"{ours}: {_quoted(theirs)}" for ours, theirs in columns.items())
    return f"columns: {{{pairs}}}  # what the data call them: these do not stand in the prompt\n" if columns else ""


def _quoted(text: str) -> str:
    """As YAML reads it back, whatever it holds."""
    return json.dumps(text, ensure_ascii=False)
