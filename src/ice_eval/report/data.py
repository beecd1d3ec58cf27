"""Results as data: tables with one plain value per column, unrounded, as CSV, parquet or JSON.

Columns follow from the types of the records. An interval has two columns, `_low` and `_high`; a verdict has its word
and its `_text`; a share of units has a number, `k`, and its `size`: `share`, `dynamic`, or `own`, which the attribution
sets.
"""

import csv
import dataclasses
import functools
import io
import json
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from ice_eval.errors import ConfigError, DataError, without_controls
from ice_eval.files import as_text, write_atomically
from ice_eval.rationales import Share
from ice_eval.results import RunDifference, RunFolder, Summary
from ice_eval.results.summary import adjusted_jointly
from ice_eval.stats import Interval, ReasoningVerdict, Verdict

Row = dict[str, Any]
DATA_FORMATS = ("csv", "parquet", "json")
_FORMULA = ("=", "+", "-", "@", "\t")
"""Characters that a spreadsheet reads as the beginning of a formula."""
_NAMES = {"rankings_pairs": "differences", "citations_claims": "claims"}
"""Names of tables inside others, where they are not `table_field`."""
_VERDICTS = ("chains_capacity", "configurations", "claims")
"""Tables with verdicts; the first of them that has rows leads. What chains show comes before choices of steps."""
_HEADS = {"rankings": ("model", "task", "operator", "direction", "k", "size", "null")}
"""Columns of a table that those inside it repeat."""


@dataclass(frozen=True)
class DataTable:
    """Rows of plain values: numbers, texts, truth values, None, and lists or objects of these."""

    name: str
    """Name of its file."""
    rows: list[Row] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))


def data_of(folders: Sequence[RunFolder], summaries: Sequence[Summary]) -> list[DataTable]:
    """Return all tables of some runs, that of the verdicts first; p-values are adjusted over all configurations."""
    tables: dict[str, list[Row]] = {name: [] for name in _VERDICTS}
    for folder, summary in zip(folders, adjusted_jointly(summaries), strict=True):
        config = folder.manifest().config
        head = {"folder": as_text(folder.path), "model": config.model, "task": config.task}
        for name, records in _children(summary):
            _gather(tables, name, records, head)
        for row in (row for row in tables["chains_capacity"] if row["folder"] == head["folder"]):
            assert summary.chains is not None, "the run is about chains"
            row["accuracy"] = summary.chains.problems.accuracy
        _gather(tables, "examples", folder.examples(), head)
    return [DataTable(name, rows) for name, rows in tables.items() if rows]


def data_table(name: str, lines: Iterable[Any], **head: Any) -> DataTable:
    """Return records or mappings as a table; each row begins with the same `head`."""
    return DataTable(name, [{**head, **flat(line)} for line in lines])


def difference_data(found: Sequence[RunDifference]) -> list[DataTable]:
    """Return the win rates and the settings of some comparisons; each row names its two runs."""
    tables: dict[str, list[Row]] = {"configurations": [], "settings": []}
    for each in found:
        head = {"first": as_text(each.first.path), "second": as_text(each.second.path)}
        settings = ({"field": of, "value_first": one, "value_second": other} for of, one, other in each.settings)
        tables["configurations"] += data_table("", each.configurations, **head).rows
        tables["settings"] += data_table("", settings, **head).rows
    return [DataTable(name, rows) for name, rows in tables.items()]


def _gather(tables: dict[str, list[Row]], name: str, records: Iterable[Any], head: Row) -> None:
    """Add a row for each record, and for each record inside it to a table of its own."""
    for record in records:
        row = {**head, **flat(record)}
        if set(row) > set(head):
            tables.setdefault(name, []).append(row)
        repeated = {**head, **{each: row[each] for each in _HEADS.get(name, ())}}
        for inner, inside in _children(record):
            own = f"{name}_{inner}"
            _gather(tables, _NAMES.get(own, own), inside, repeated)


def _children(record: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the names and records of fields that hold several records; those of inner records with their prefix."""
    for name, hint in _hints(type(record)).items():
        value, (kind, *_) = getattr(record, name), _kinds(hint)
        if _holds_records(kind):
            yield name, value or ()
        elif value is not None and _is_record(kind):
            if isinstance(record, Summary):  # its parts are tables, and lead no others
                yield name, (value,)
            else:
                yield from ((f"{name}_{inner}", inside) for inner, inside in _children(value))


def flat(line: Any) -> Row:
    """Return a record or a mapping as one row; records inside it have tables of their own."""
    if isinstance(line, Mapping):
        pairs = ((name, value, _type_of(name, value)) for name, value in line.items())
    elif dataclasses.is_dataclass(line):
        pairs = ((name, getattr(line, name), hint) for name, hint in _hints(type(line)).items())
    else:
        raise DataError(f"a record or a mapping is expected, got {line!r}")
    return {column: value for name, value, hint in pairs for column, value in _cells(name, value, hint)}


def _type_of(name: str, value: object) -> Any:
    """Return the type of a value in a mapping, by its name where it is None."""
    if name.endswith("_ci"):
        return Interval
    return Share if name == "k" else type(value)


def _cells(name: str, value: Any, hint: Any) -> Iterator[tuple[str, Any]]:
    kind = _kinds(hint)[0]
    if hint in (Share, Share | None):
        size = "own" if value is None else value if isinstance(value, str) else "share"
        yield from ((name, value if isinstance(value, int | float) else None), ("size", size))
    elif kind is Interval or get_args(kind) == (float, float):
        low, high = value if value is not None else (None, None)
        start, _, rest = name.partition("_ci")
        yield from ((f"{start}{rest}_low", low), (f"{start}{rest}_high", high))
    elif kind in (Verdict, ReasoningVerdict):
        word = "word" if kind is Verdict else "pattern"
        yield name, getattr(value, word, None)
        for each in (each for each in _hints(kind) if each != word):
            yield f"{name}_{each}", _plain(getattr(value, each, None))
        yield f"{name}_text", None if value is None else str(value)
    elif get_args(kind) == (str, str) and get_origin(kind) is tuple:
        for place, each in zip(("first", "second"), value or (None, None), strict=True):
            yield f"{name.removesuffix('s')}_{place}", each
    elif _is_record(kind):
        for inner, own in _hints(kind).items():
            if not _holds_records(_kinds(own)[0]):
                yield from _cells(f"{name}_{inner}", getattr(value, inner, None), own)
    elif not _holds_records(kind):
        yield name, _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Verdict | ReasoningVerdict):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types of a hint, without None."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(each for each in get_args(hint) if each is not type(None))
    return (hint,)


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) and kind not in (Verdict, ReasoningVerdict)


def _holds_records(kind: Any) -> bool:
    """Return True for a tuple of records."""
    return get_origin(kind) is tuple and get_args(kind)[1:] == (...,) and _is_record(get_args(kind)[0])


def _fields_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


_hints: Callable[[Any], dict[str, Any]] = functools.cache(_fields_of)


# --- files ----------------------------------------------------------------------------------------------------------


def data_text(table: DataTable, style: str) -> str:
    """Return a table as CSV or JSON."""
    if style == "json":
        return json.dumps(table.rows, indent=1, ensure_ascii=False, allow_nan=False)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_csv_cell, table.columns))
    writer.writerows([_csv_cell(row.get(name)) for name in table.columns] for row in table.rows)
    return stream.getvalue().rstrip("\n")


def _csv_cell(value: Any) -> Any:
    """Return a value for CSV; a text that a spreadsheet would evaluate is marked as text by an apostrophe."""
    if isinstance(value, str):
        text = without_controls(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    if isinstance(value, list | dict | bool):
        return without_controls(json.dumps(value, ensure_ascii=False))
    return value


def write_data(tables: Sequence[DataTable], style: str, folder: Path) -> list[Path]:
    """Write each table with a row into a file of its name, and return the paths; raise `ConfigError` if that fails."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in (table for table in tables if table.rows):
            paths.append(folder / f"{table.name}.{style}")
            text = None if style == "parquet" else f"{data_text(table, style)}\n"
            with write_atomically(paths[-1]) as stream:
                stream.write(_parquet(table) if text is None else text.encode(errors="backslashreplace"))
    except OSError as exc:
        raise ConfigError(f"tables cannot be written to {folder}: {exc.strerror}.") from exc
    return paths


def _parquet(table: DataTable) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(name: str) -> Any:
        values = [row.get(name) for row in table.rows]
        kinds = {type(value) for value in values if value is not None}
        if dict in kinds or len(kinds - {int, float}) > 1 or (kinds & {int, float} and kinds - {int, float}):
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        found = pa.array(values, pa.float64() if kinds == {int, float} else None)
        return found.cast(pa.float64()) if pa.types.is_null(found.type) else found

    stream = io.BytesIO()
    pq.write_table(pa.table({name: column(name) for name in table.columns}), stream)
    return stream.getvalue()
