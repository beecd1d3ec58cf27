"""The published tables as they are in the package: one CSV file each, and an index."""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError, DataError

Row = Mapping[str, str]

_NUMBER = re.compile(r"[+-]?\d*\.?\d+")


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """One table of the paper, with every cell as it is printed there."""

    name: str
    labels: tuple[str, ...]
    """Of the tables and figures of the paper that show these numbers."""
    title: str
    unit: str
    n: int | None
    """Examples, M and k of the protocol; None where the paper does not say, or where it has no meaning."""
    m: int | None
    k: float | None
    note: str
    rows: tuple[Row, ...]
    """One per line of the file; every row has the same columns. An empty cell has no value in the paper."""
    columns: str | None
    """Field whose values are the columns of the printed table; None where the file already looks like it."""
    values: tuple[str, ...]
    """What stands in those columns."""

    def where(self, **known: str) -> list[Row]:
        """The rows with these values."""
        return [row for row in self.rows if all(row[name] == value for name, value in known.items())]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: numbers as numbers, empty cells as null."""
        return {
            "name": self.name,
            "labels": list(self.labels),
            "title": self.title,
            "unit": self.unit,
            "n": self.n,
            "m": self.m,
            "k": self.k,
            "note": self.note,
            "rows": [{name: _plain(cell) for name, cell in row.items()} for row in self.rows],
        }


def _plain(cell: str) -> str | float | None:
    if not cell:
        return None
    return number(cell) if _NUMBER.fullmatch(cell) else cell


def number(cell: str) -> float:
    """The value of a printed cell."""
    return float(cell)


def percent(cell: str) -> float:
    """The fraction that a printed percentage stands for."""
    return float(cell) / 100


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """All tables by name, in the order of the index."""
    return {entry["name"]: _table(entry) for entry in read_json("tables.json")}


def paper_table(name: str) -> PaperTable:
    """One table.

    Raises:
        ConfigError: There is none of this name.
    """
    known = paper_tables()
    if name not in known:
        raise ConfigError(
            f"the paper has no table '{name}'{did_you_mean(name, list(known))} Known: {', '.join(known)}."
        )
    return known[name]


def referred(reference: str, row: Row) -> str:
    """The cell that a reference points to: `english.win_rate`, or `english.win_rate:operator=delete`.

    It is in the row of that table which has the same values in all columns that both tables have, but for the one asked
    for, and the values that the reference gives.

    Raises:
        DataError: No row fits, or several do.
    """
    place, _, given = reference.partition(":")
    table, _, column = place.partition(".")
    rows = _read_csv(table)
    fixed = dict(part.split("=") for part in given.split(",") if part)
    shared = {name: value for name, value in row.items() if name in rows[0] and not value.startswith("=")}
    wanted = {**shared, **fixed}
    wanted.pop(column, None)
    found = [other for other in rows if all(other[name] == value for name, value in wanted.items())]
    if len(found) != 1:
        raise DataError(f"the reference '{reference}' fits {len(found)} rows; exactly one is expected")
    return _resolved(found[0], column)


def _resolved(row: Row, column: str) -> str:
    cell = row[column]
    return referred(cell[1:], row) if cell.startswith("=") else cell


def _table(entry: Mapping[str, Any]) -> PaperTable:
    rows = [_with_references(row) for row in _read_csv(entry.get("of", entry["name"]))]
    chosen = [row for row in rows if all(row[name] == value for name, value in entry.get("where", {}).items())]
    return PaperTable(
        name=entry["name"],
        labels=tuple(entry["labels"]),
        title=entry["title"],
        unit=entry["unit"],
        n=entry["n"],
        m=entry["m"],
        k=entry["k"],
        note=entry.get("note", ""),
        rows=tuple(_with_difference(row, entry.get("difference")) for row in chosen),
        columns=entry.get("columns"),
        values=tuple(entry.get("values", ())),
    )


def _with_references(row: Row) -> Row:
    return {name: _resolved(row, name) for name in row}


def _with_difference(row: Row, columns: list[str] | None) -> Row:
    """A row and, where the index names two of its columns, the first less the second."""
    if columns is None:
        return row
    first, second = columns
    return {**row, "difference": f"{number(row[first]) - number(row[second]):+.1f}"}


@cache
def _read_csv(name: str) -> tuple[Row, ...]:
    text = _folder().joinpath("tables", f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def read_json(name: str) -> Any:
    """One of the package's own JSON files about the paper."""
    return json.loads(_folder().joinpath(name).read_text(encoding="utf-8"))


def _folder() -> Any:
    return files("ice_eval.analysis.paper")
