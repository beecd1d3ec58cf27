"""Tables of text: the one way to declare a column, how values are written in cells, and how lines become a table.

The same cells are printed in the terminal, in Markdown, CSV, LaTeX and HTML.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from ice_eval._controls import without_controls
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share

EMPTY = "–"
"""The cell of a value that is missing or undefined."""
CellKind = Literal[
    "text", "operators", "yes/no", "count", "share", "percent", "points", "width", "effect", "decimal", "fraction",
    "number", "shortest", "rounded", "signed", "p-value",
    "percent interval", "points interval", "fraction interval", "interval", "signed interval",
]  # fmt: skip
"""The ways to write a value. `share` is a share of units as `0.2`, `percent` a rate, `points` a difference of rates in
percentage points, `width` the same without a sign; `decimal`, `fraction` and `number` have one, two and three decimals;
`shortest` has as many as it needs, `rounded` none; `effect` has two and a sign, `signed` three. Intervals hold two such
numbers. None is a dash, but `own` for a share."""


@dataclass(frozen=True)
class Column:
    """One value of every line of a table."""

    field: str
    """Name of the value in a line, which is a mapping or a record; a record's may be dotted. It is also its name in
    JSON, where lines are written there."""
    header: str
    kind: CellKind = "number"
    get: Callable[[Any], Any] | None = None
    """Computes the value from the whole line, where it is not a field of it."""
    word: Callable[[Any], str | None] | None = None
    """Returns the word of the taxonomy whose colour the cell of a line has, if any."""

    def cell(self, line: Any) -> str:
        """The text in the cell of a line."""
        if self.get is not None:
            value = self.get(line)
        else:
            value = line[self.field] if isinstance(line, Mapping) else attrgetter(self.field)(line)
        return written(value, self.kind)


def naming(*fields: str) -> tuple[Column, ...]:
    """Columns that say what a line is about, headed by the names of their fields."""
    kinds: dict[str, CellKind] = {"k": "share", "operators": "operators"}
    return tuple(Column(field, field, kinds.get(field, "text")) for field in fields)


@dataclass(frozen=True)
class Table:
    """A title, a header, and rows of text, without the control characters that names may hold."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of the cells that are printed bold."""
    words: tuple[tuple[str | None, ...], ...] = ()
    """For every cell the word of the taxonomy that colours it, if any; empty where no cell has one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", without_controls(self.title))
        object.__setattr__(self, "header", tuple(map(without_controls, self.header)))
        object.__setattr__(self, "rows", tuple(tuple(map(without_controls, row)) for row in self.rows))

    @property
    def are_numbers(self) -> list[bool]:
        """Which columns hold numbers, where there are any: they are aligned on the right."""
        columns = zip(*self.rows, strict=True) if self.rows else [() for _ in self.header]
        return [any(cell != EMPTY for cell in cells) and all(map(is_number, cells)) for cells in columns]


_OPTIONAL = {"run", "model", "task", "prompt", "language", "null", "direction", "k"}
_USUAL = {"null": SIZE, "direction": "sufficiency", "k": "0.2"}
"""Values that a reader assumes of a table that does not name them."""


def table_of(
    title: str,
    lines: Sequence[Any],
    columns: Sequence[Column],
    *,
    runs: Sequence[str] = (),
    best: tuple[str, set[int]] | None = None,
) -> Table:
    """Lines as a table, without the columns that name a run, model, … and say the same in every row.

    A null, direction or k that is not the usual one is shown though it is the same in every row.

    Args:
        title: Of the table.
        lines: One for each row.
        columns: Those of the table, from left to right.
        runs: For every line the name of its run, which is the first column.
        best: The header of a column, and the lines that stand out in it.
    """
    found = [(column, [column.cell(line) for line in lines]) for column in columns]
    if runs:
        found.insert(0, (Column("run", "run", "text"), list(runs)))
    shown = [each for each in found if each[0].header not in _OPTIONAL or _is_informative(each[0].header, each[1])]
    header = tuple(column.header for column, _ in shown)
    bold = frozenset((line, header.index(best[0])) for line in best[1]) if best else frozenset()
    words: tuple[tuple[str | None, ...], ...] = ()
    if any(column.word for column in columns):
        words = tuple(tuple(column.word and column.word(line) for column, _ in shown) for line in lines)
    return Table(title, header, tuple(zip(*(cells for _, cells in shown), strict=True)), bold, words)


def _is_informative(header: str, cells: Sequence[str]) -> bool:
    values = set(cells)
    return len(values) > 1 or (header in _USUAL and not values <= {_USUAL[header]})


_NUMBER = re.compile(rf"[<\[]?[+−-]?\d[\d.,]*( %| pp|, [+−-]?[\d.]+\])?|{EMPTY}")


def is_number(cell: str) -> bool:
    """True for a cell with a number, a rate, an interval, or a dash where there is none."""
    return _NUMBER.fullmatch(cell) is not None


def written(value: Any, kind: CellKind) -> str:
    """The text of a value in a cell."""
    if value is None:
        return "own" if kind == "share" else EMPTY
    if kind.endswith("interval"):
        write = _LIMITS[kind]
        return "[" + ", ".join(write(limit) for limit in value) + "]"
    return _CELLS[kind](value)


def percent(rate: float | None) -> str:
    """`48.1 %`."""
    return written(rate, "percent")


def interval(limits: Sequence[float] | None) -> str:
    """`[48.1, 55.0]`, in percent."""
    return written(limits, "percent interval")


def share(k: Share | None) -> str:
    """A share of units in a rationale; `own` where rationales have sizes of their own."""
    return written(k, "share")


def _p_value(value: float) -> str:
    if value < 0.00005:
        return "<0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _signed(value: float) -> str:
    """A number with its sign, which is plus for numbers that round to 0."""
    return f"{round(value, 3) + 0.0:+.3f}"


_CELLS: Mapping[CellKind, Callable[[Any], str]] = {
    "text": str,
    "operators": lambda value: value if isinstance(value, str) else " − ".join(value),
    "yes/no": lambda value: "yes" if value else "no",
    "count": "{:,}".format,
    "share": lambda value: value if isinstance(value, str) else f"{value:g}",
    "percent": lambda value: f"{100 * value:.1f} %",
    "points": lambda value: f"{100 * value:+.1f} pp",
    "width": lambda value: f"{100 * value:.1f} pp",
    "effect": "{:+.2f}".format,
    "decimal": "{:.1f}".format,
    "fraction": "{:.2f}".format,
    "number": "{:.3f}".format,
    "shortest": "{:g}".format,
    "rounded": "{:.0f}".format,
    "signed": _signed,
    "p-value": _p_value,
}
_LIMITS: Mapping[CellKind, Callable[[float], str]] = {
    "percent interval": lambda limit: f"{100 * limit:.1f}",
    "points interval": lambda limit: f"{100 * limit:+.1f}",
    "fraction interval": "{:.2f}".format,
    "interval": "{:.3f}".format,
    "signed interval": _signed,
}
