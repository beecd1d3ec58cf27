"""Translation of examples into a file with their ids and labels, and the source of each text.

Lines are written to `OUT.partial`, a batch at a time, and the file is renamed when complete. Batches depend on
position alone, so a translation that was interrupted and continued equals one that was not.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ice_eval.errors import ConfigError, DataError
from ice_eval.tasks import DataSource

_KEPT = ("id", "label", "group")
"""Fields that mean the same in any language."""
PARTIAL = ".partial"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The source of translated texts; stored in every line under `translation`."""

    model: str
    to: str
    source: str | None
    """Language of the original texts, if the model needs it."""
    beams: int
    batch: int
    fields: tuple[str, ...]
    load_in: str | None = None
    """Quantisation of the model's weights; omitted from lines if None."""

    def as_dict(self) -> dict[str, Any]:
        given = {**vars(self), "fields": list(self.fields)}
        return {name: value for name, value in given.items() if name != "load_in" or value is not None}


class Translated(NamedTuple):
    """A finished translation."""

    path: Path
    n: int
    n_before: int
    """Number of lines from an interrupted run."""
    dropped: tuple[str, ...]
    """Fields that the new file lacks, since they may point into the old texts."""


def translated_fields(data: DataSource, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the fields to translate: the requested ones, or every field of the first row that holds text."""
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
    """Translate the rows of some data into a `.jsonl` file, or continue an interrupted translation.

    `load` returns the function that translates a batch of texts; it is called only if texts are left to translate.
    `progress` is called with the number of written lines and of all lines.

    Raises:
        ConfigError: `out` exists, or an interrupted translation of something else does.
        DataError: A row lacks a field.
    """
    if out.suffix.lower() != ".jsonl":
        raise ConfigError(f"--out {out}: a name that ends in .jsonl is expected.")
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out, or remove it.")
    if not out.parent.is_dir():
        raise ConfigError(f"the folder of --out {out} does not exist; create it first.")
    rows, heads, sources = list(data.rows()), list[dict[str, Any]](), list[dict[str, str]]()
    for place, row in enumerate(rows):
        # The id is the one that a run assigns: the example's own, else its row.
        kept = {name: row[name] for name in _KEPT[1:] if row.get(name) is not None}
        heads.append({"id": str(place if row.get("id") is None else row["id"]), **kept})
        missing = [name for name in provenance.fields if not isinstance(row.get(name), str)]
        if missing:
            raise DataError(f"{data.origin}, example {place}: the field '{missing[0]}' holds no text.")
        sources.append({name: row[name] for name in provenance.fields})
    partial = out.with_name(out.name + PARTIAL)
    before = _lines_before(partial, sources, heads, provenance)
    translate = load() if before < len(rows) else list
    with partial.open("ab") as stream:
        for start in range(before, len(rows), provenance.batch):
            part = slice(start, start + provenance.batch)
            texts = iter(translate([text for source in sources[part] for text in source.values()]))
            for head, source in zip(heads[part], sources[part], strict=True):
                line = {**head, **{name: next(texts) for name in source}}
                line |= {"source": source, "translation": provenance.as_dict()}
                stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
            progress(min(part.stop, len(rows)), len(rows))
    partial.replace(out)
    dropped = dict.fromkeys(name for row in rows for name in row if name not in {*_KEPT, *provenance.fields})
    return Translated(out, len(rows), before, tuple(dropped))


def _lines_before(
    partial: Path, sources: Sequence[Mapping[str, str]], heads: Sequence[Mapping[str, Any]], provenance: Provenance
) -> int:
    """Count the lines of whole batches from an interrupted run and cut off the rest; raise ConfigError for others."""
    if not partial.is_file():
        return 0
    whole = [line for line in partial.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    count = len(whole) if len(whole) == len(heads) else len(whole) // provenance.batch * provenance.batch
    expected = [
        {"id": head["id"], "source": source, "translation": provenance.as_dict()}
        for head, source in zip(heads, sources, strict=True)
    ]
    if count > len(heads) or any(map(_differs, whole[:count], expected)):
        raise ConfigError(f"{partial} holds another translation; choose another --out, or remove it.")
    with partial.open("r+b") as stream:
        stream.truncate(sum(map(len, whole[:count])))
    return count


def _differs(line: bytes, expected: Mapping[str, Any]) -> bool:
    try:
        found = json.loads(line)
    except ValueError:
        return True
    return not isinstance(found, dict) or any(found.get(name) != value for name, value in expected.items())
