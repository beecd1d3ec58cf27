"""Tables of text: declaration of columns, formatting of cells, and conversion of lines to tables.

The same cells are printed in the terminal, in Markdown, LaTeX and HTML.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Literal, cast

from ice_eval.errors import without_controls
from ice_eval.nulls import SIZE

EMPTY = "–"
CellKind = Literal[
    "text", "operators", "yes/no", "count", "share", "percent", "points", "width", "effect", "decimal", "fraction",
    "number", "shortest", "rounded", "signed", "p-value",
    "percent interval", "points interval", "fraction interval", "interval", "signed interval",
]  # fmt: skip
"""Formats of a value. `share` is a share of units as `0.2`, `percent` a rate, `points` a difference of rates in
percentage points, and `width` the same without a sign. `decimal`, `fraction` and `number` have one, two and three
decimals, `shortest` as many as needed, `rounded` none. `effect` has two and a sign, `signed` three. Intervals hold two
such numbers. None is a dash, but `own` for a share.
"""


@dataclass(frozen=True)
class Column:
    field: str
    """Name of the value in a line (a mapping or a record, where it may be dotted), and in JSON."""
    header: str
    kind: CellKind = "number"
    get: Callable[[Any], Any] | None = None
    """Computes the value from the whole line, if it is not a field."""
    word: Callable[[Any], str | None] | None = None
    """Returns the word of the taxonomy that colours the cell of a line, if any."""

    def cell(self, line: Any) -> str:
        if self.get is not None:
            value = self.get(line)
        else:
            value = line[self.field] if isinstance(line, Mapping) else attrgetter(self.field)(line)
        return written(value, self.kind)


def naming(*fields: str) -> tuple[Column, ...]:
    """Return columns that identify a line, headed by the names of their fields."""
    kinds: dict[str, CellKind] = {"k": "share", "operators": "operators"}
    return tuple(Column(field, field, kinds.get(field, "text")) for field in fields)


def columns(kind: CellKind, **headers: str) -> tuple[Column, ...]:
    """Return columns of one kind, given as `field="header"`."""
    return tuple(Column(field, header, kind) for field, header in headers.items())


N = columns("count", n="n")


def estimate(field: str, header: str, kind: CellKind = "number", interval: str = "95 % CI") -> tuple[Column, Column]:
    """Return columns of a number and of its interval, which is the field `…_ci` and headed `interval`."""
    limits = "interval" if kind == "number" else f"{kind} interval"
    return Column(field, header, kind), Column(f"{field}_ci", interval, cast(CellKind, limits))


_NUMBER = re.compile(rf"[<\[]?[+−-]?\d[\d.,]*( %| pp|, [+−-]?[\d.]+\]| \[[+−-][\d.]+, [+−-][\d.]+\])?|{EMPTY}")
"""A cell with a number, a rate, an interval, or both, or a dash for a missing one."""


@dataclass(frozen=True)
class Table:
    """A title, a header, and rows of text without control characters."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of cells printed in bold."""
    words: tuple[tuple[str | None, ...], ...] = ()
    """Word of the taxonomy that colours each cell, if any; empty if no cell has one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", without_controls(self.title))
        object.__setattr__(self, "header", tuple(map(without_controls, self.header)))
        object.__setattr__(self, "rows", tuple(tuple(map(without_controls, row)) for row in self.rows))

    @property
    def are_numbers(self) -> list[bool]:
        """For each column, True if it holds numbers; these are right-aligned."""
        columns = zip(*self.rows, strict=True) if self.rows else [() for _ in self.header]
        return [any(cell != EMPTY for cell in cells) and all(map(_NUMBER.fullmatch, cells)) for cells in columns]


def beside(*tables: Table) -> Table:
    """Return the columns of tables with as many rows and no best cells, under the title of the last."""
    shown = [each for each in tables if each.header]
    rows = [sum(cells, ()) for cells in zip(*(each.rows for each in shown), strict=True)]
    words = [each.words or [(None,) * len(each.header)] * len(each.rows) for each in shown]
    merged = [sum(found, ()) for found in zip(*words, strict=True)] if any(each.words for each in shown) else []
    return Table(tables[-1].title, sum((each.header for each in shown), ()), tuple(rows), words=tuple(merged))


_USUAL = {"null": SIZE, "direction": "sufficiency", "k": "0.2"}
"""Values that readers assume if a table does not name them."""
_OPTIONAL = {"run", "model", "task", "prompt", "language", *_USUAL}


def table_of(
    title: str,
    lines: Sequence[Any],
    columns: Sequence[Column],
    *,
    runs: Sequence[str] = (),
    best: tuple[str, set[int]] | None = None,
    whole: bool = False,
) -> Table:
    """Return lines as a table, without identifying columns that have the same value in every row, unless it is `whole`.

    A null, direction or k that is not the usual one is always shown. `runs` are the names of the lines' runs, shown as
    the first column; `best` is the header of a column and the lines printed in bold there.
    """
    found = [(column, [column.cell(line) for line in lines]) for column in columns]
    if runs:
        found.insert(0, (Column("run", "run", "text"), list(runs)))

    def is_shown(header: str, values: set[str]) -> bool:
        is_unusual = header in _USUAL and not values <= {_USUAL[header]}
        return whole or header not in _OPTIONAL or len(values) > 1 or is_unusual

    shown = [(column, cells) for column, cells in found if is_shown(column.header, set(cells))]
    header = tuple(column.header for column, _ in shown)
    bold = frozenset((line, header.index(best[0])) for line in best[1]) if best else frozenset()
    words: tuple[tuple[str | None, ...], ...] = ()
    if any(column.word for column in columns):
        words = tuple(tuple(column.word and column.word(line) for column, _ in shown) for line in lines)
    return Table(title, header, tuple(zip(*(cells for _, cells in shown), strict=True)), bold, words)


def written(value: Any, kind: CellKind) -> str:
    """Return the text of a value in a cell."""
    if value is None:
        return "own" if kind == "share" else EMPTY
    if kind.endswith("interval"):
        of = cast(CellKind, kind.removesuffix("interval").strip() or "number")
        return "[" + ", ".join(written(limit, of).partition(" ")[0] for limit in value) + "]"
    return _CELLS[kind](value)


def whole(rate: float | None) -> str:
    return EMPTY if rate is None else f"{100 * rate:.0f} %"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, as `1 run` or `2 runs`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


_APART = re.compile(r"(?<=\d) (?=%)|(?<=\b[a-zκ]) (?== [\d+−-])|(?<=\b[a-zκ] =) (?=[\d+−-])")
"""Spaces in `95 %` and `n = 20`."""


def unbroken(text: str) -> str:
    """Return a text whose numbers stay on one line with their percent sign and their name."""
    return _APART.sub("\u00a0", text)


percent = partial(written, kind="percent")
"""A rate as `48.1 %`."""
interval = partial(written, kind="percent interval")
"""Limits as `[48.1, 55.0]`, in percent."""
share = partial(written, kind="share")
"""A share of units in a rationale; `own` if the attribution sets the size."""


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
    "signed": lambda value: f"{round(value, 3) + 0.0:+.3f}",  # plus for numbers that round to 0
    "p-value": lambda value: "<0.0001" if value < 0.00005 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}",
}
