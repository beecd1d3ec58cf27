"""The same examples in another language: a file with their ids and labels, and where each text comes from.

Lines are kept in `OUT.partial` as they are translated, a batch at a time, and the file gets its name when all are
there. Batches are cut by place, so a translation that was interrupted and continued is the one that was not.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ice_eval.errors import ConfigError, DataError
from ice_eval.tasks import DataSource

_KEPT = ("id", "label", "group")
"""Fields that mean the same in any language."""
PARTIAL = ".partial"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where translated texts come from; it stands in every line, under `translation`."""

    model: str
    to: str
    source: str | None
    """Language of the original texts, where the model had to be told."""
    beams: int
    batch: int
    fields: tuple[str, ...]
    load_in: str | None = None
    """How the model's weights were quantised, if they were; lines of others do not name it."""

    def as_dict(self) -> dict[str, Any]:
        """As lines hold it."""
        content = json.loads(json.dumps(asdict(self)))
        return {name: value for name, value in content.items() if name != "load_in" or value is not None}


@dataclass(frozen=True)
class Translated:
    """What a translation came to."""

    path: Path
    n: int
    n_before: int
    """Of these, the lines that were there from an interrupted run."""
    dropped: tuple[str, ...]
    """Fields that the new file does not have: they may point into the old texts."""


def translated_fields(data: DataSource, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The fields to translate: those asked for, or every field of the first row that holds text.

    Raises:
        DataError: There are none.
    """
    first = next(iter(data.rows()), None)
    if first is None:
        raise DataError(f"{data.origin} holds no examples; at least one is needed.")
    found = tuple(asked or (name for name, value in first.items() if isinstance(value, str) and name not in _KEPT))
    missing = [name for name in found if not isinstance(first.get(name), str)]
    if missing or not found:
        raise DataError(f"{data.origin}: no text in '{(missing or ['text'])[0]}'; its fields are {', '.join(first)}.")
    return found


def translate_file(
    data: DataSource,
    out: Path,
    provenance: Provenance,
    load: Callable[[], Callable[[Sequence[str]], list[str]]],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Translated:
    """Translate the rows of some data into a file, or go on where an earlier call was interrupted.

    Args:
        data: The original rows.
        out: A `.jsonl` file that is not there yet.
        provenance: How they are translated.
        load: Gives what translates a batch of texts; called when there is something to translate.
        progress: Told how many lines are there, and how many there will be.

    Raises:
        ConfigError: `out` is there already, or an interrupted translation of something else is.
        DataError: A row lacks a field.
    """
    _check_out(out)
    rows = list(data.rows())
    sources = [_source(row, place, provenance.fields, data.origin) for place, row in enumerate(rows)]
    partial = out.with_name(out.name + PARTIAL)
    before = _lines_before(partial, sources, rows, provenance)
    translate = load() if before < len(rows) else None
    with partial.open("ab") as stream:
        for start in range(before, len(rows), provenance.batch):
            assert translate is not None, "it is loaded where something is missing"
            part = slice(start, start + provenance.batch)
            texts = iter(translate([text for source in sources[part] for text in source.values()]))
            for place, source in enumerate(sources[part], start=start):
                stream.write(_line(rows[place], place, source, {name: next(texts) for name in source}, provenance))
            stream.flush()
            os.fsync(stream.fileno())
            progress(min(part.stop, len(rows)), len(rows))
    partial.replace(out)
    used = {*_KEPT, *provenance.fields}
    return Translated(out, len(rows), before, tuple(dict.fromkeys(n for row in rows for n in row if n not in used)))


def _check_out(out: Path) -> None:
    if out.suffix.lower() != ".jsonl":
        raise ConfigError(f"--out {out}: a name that ends in .jsonl is expected.")
    if out.exists():
        raise ConfigError(f"{out} is there already; choose another --out, or remove it.")
    if not out.parent.is_dir():
        raise ConfigError(f"the folder of --out {out} is not there; make it first.")


def _source(row: Mapping[str, Any], place: int, fields: Sequence[str], origin: str) -> dict[str, str]:
    """The texts of a row."""
    missing = [name for name in fields if not isinstance(row.get(name), str)]
    if missing:
        raise DataError(f"{origin}, example {place}: the field '{missing[0]}' holds no text.")
    return {name: row[name] for name in fields}


def _line(
    row: Mapping[str, Any], place: int, source: Mapping[str, str], texts: Mapping[str, str], provenance: Provenance
) -> bytes:
    kept = {"id": _id(row, place)} | {name: row[name] for name in _KEPT[1:] if row.get(name) is not None}
    content = {**kept, **texts, "source": dict(source), "translation": provenance.as_dict()}
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def _id(row: Mapping[str, Any], place: int) -> str:
    """As a run names the example: its own id, else its row."""
    return str(place if row.get("id") is None else row["id"])


def _lines_before(
    partial: Path, sources: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]], provenance: Provenance
) -> int:
    """How many whole batches an interrupted translation left; what follows them is cut off.

    Raises:
        ConfigError: They are lines of another translation.
    """
    if not partial.is_file():
        return 0
    lines = partial.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n")]
    count = len(whole) if len(whole) == len(rows) else len(whole) // provenance.batch * provenance.batch
    expected = provenance.as_dict()
    for place, line in enumerate(whole[:count]):
        if not _is_line_of(line, place, sources, rows, expected):
            raise ConfigError(f"{partial} holds another translation; choose another --out, or remove it.")
    with partial.open("r+b") as stream:
        stream.truncate(sum(map(len, whole[:count])))
    return count


def _is_line_of(
    line: bytes, place: int, sources: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]], provenance: Any
) -> bool:
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return (
        place < len(rows)
        and isinstance(found, dict)
        and found.get("translation") == provenance
        and found.get("source") == sources[place]
        and found.get("id") == _id(rows[place], place)
    )
