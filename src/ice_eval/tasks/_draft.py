"""The beginning of a task file: ten lines to fill in, and comments that say what else there is."""

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ice_eval.errors import ConfigError
from ice_eval.tasks._data import FileData

_LOOKED_AT, _MOST_LABELS = 500, 20
_NOT_TEXT = ("id", "label", "group", "rationale")

_DRAFT = """\
# A task: which texts, what the model is asked, and the words that it answers with.
#   ice task check {file} --model MODEL     shows what the model reads, and how well it answers
#   ice run --task {file} --model MODEL
data: {data}  # .jsonl or .csv, seen from this file: the fields of the prompt, and perhaps `label` and `id`
prompt: |-  # fields stand in braces; the model answers where it ends
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
    fields, labels = (["text"], ["negative", "positive"]) if data is None else _found(data)
    shown = "reviews.jsonl" if data is None else os.path.relpath(data, path.parent)
    title = {name: name.capitalize().replace("_", " ") for name in fields}
    return _DRAFT.format(
        file=path.name,
        data=_quoted(Path(shown).as_posix()),
        prompt="\n".join([*(f"  {title[name]}: {{{name}}}" for name in fields), "  Label:"]),
        labels="\n".join(f"  {_quoted(label)}: {_quoted(f' {label}')}" for label in labels),
        field=fields[0],
        shot=", ".join(f"{name}: …" for name in fields),
        label=_quoted(labels[0]),
    )


def _found(data: Path) -> tuple[list[str], list[str]]:
    """Columns that hold text, and labels, in the order of their names; two to be filled in where there are none."""
    rows = list(itertools.islice(FileData(data).rows(), _LOOKED_AT))
    fields = [name for name in (rows[0] if rows else ()) if all(_is_text(name, row) for row in rows)]
    if not fields:
        columns = ", ".join(rows[0]) if rows else "nothing"
        raise ConfigError(f"{data} has no column of texts whose name could stand in a prompt; it has {columns}.")
    labels = sorted({str(row["label"]) for row in rows if row.get("label") is not None})
    return fields, labels if 2 <= len(labels) <= _MOST_LABELS else ["negative", "positive"]


def _is_text(name: str, row: Mapping[str, Any]) -> bool:
    return isinstance(row.get(name), str) and name.isidentifier() and name not in _NOT_TEXT


def _quoted(text: str) -> str:
    """As YAML reads it back, whatever it holds."""
    return json.dumps(text, ensure_ascii=False)
