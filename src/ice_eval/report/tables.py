"""What a table is, how its cells are written, and how lines of numbers become one.

The same cells stand in the terminal, in Markdown, CSV, LaTeX and HTML.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from types import MappingProxyType
from typing import Any, TypeVar

from ice_eval import stats
from ice_eval._controls import without_controls
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share

L = TypeVar("L")
Column = tuple[str, Callable[[L], str]]
"""A header, and the function that writes the cell of a line."""
EMPTY = "–"
"""The cell of what is not there, or not defined."""
_NUMBER = re.compile(rf"[<\[]?[+−-]?\d[\d.,]*( %| pp|, [+−-]?[\d.]+\])?|{EMPTY}")


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


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, a rate, an interval, or a dash where there is none."""
    return _NUMBER.fullmatch(cell) is not None


def word_of_verdict(verdict: stats.Verdict | None) -> stats.Taxonomy | None:
    """The word that colours a verdict: the lowest of a range, since the data exclude all below it."""
    if verdict is None:
        return None
    return "near-random" if verdict.reason == stats.NOT_DISTINGUISHABLE else verdict.lowest


def word_of_rate(win_rate: float | None, verdict: stats.Verdict | None) -> stats.Taxonomy | None:
    """The word that colours a win rate; without words in the verdict it is that of the verdict."""
    if win_rate is None or (verdict is not None and verdict.reason is not None):
        return word_of_verdict(verdict)
    return stats.taxonomy(win_rate)


def percent(value: float | None) -> str:
    return EMPTY if value is None else f"{100 * value:.1f} %"


def interval(value: Sequence[float] | None, *, signed: bool = False) -> str:
    """`[48.1, 55.0]`, in percent."""
    if value is None:
        return EMPTY
    return "[" + ", ".join(f"{100 * limit:+.1f}" if signed else f"{100 * limit:.1f}" for limit in value) + "]"


def number(value: float | None) -> str:
    return EMPTY if value is None else f"{value:+.2f}"


def points(value: float | None) -> str:
    """A difference of rates, in percentage points."""
    return EMPTY if value is None else f"{100 * value:+.1f} pp"


def count(value: int | None) -> str:
    return EMPTY if value is None else f"{value:,}"


def p_value(value: float | None) -> str:
    if value is None:
        return EMPTY
    if value < 0.00005:
        return "<0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def share(k: Share | None) -> str:
    """Of units in a rationale; those of some attributions have a size of their own."""
    return "own" if k is None else k if isinstance(k, str) else f"{k:g}"


def naming(*fields: str, get: Callable[[Any, str], Any] = getitem) -> list[Column[Any]]:
    """Columns that name what a row is about, headed by the names of their fields.

    Args:
        fields: Names of the fields.
        get: Returns a field of a line; lines are mappings by default, `getattr` reads records.
    """
    return [(field, _writer(field, get)) for field in fields]


def _writer(field: str, get: Callable[[Any, str], Any]) -> Callable[[Any], str]:
    write = _WRITTEN.get(field, _text)
    return lambda line: write(get(line, field))


def _text(value: object) -> str:
    return EMPTY if value is None else str(value)


_WRITTEN: Mapping[str, Callable[[Any], str]] = {"k": share, "operators": " − ".join}

_OPTIONAL = {"run", "model", "task", "prompt", "language", "null", "direction", "k"}
_USUAL = {"null": SIZE, "direction": "sufficiency", "k": "0.2"}
"""What a reader assumes of a table that does not say it."""


def table_of(
    title: str,
    lines: Sequence[L],
    columns: Sequence[Column[L]],
    *,
    best: tuple[str, set[int]] | None = None,
    coloured: Mapping[str, Callable[[L], str | None]] = MappingProxyType({}),
) -> Table:
    """Lines as a table, without the columns that name a run, model, … and say the same in every row.

    A null, direction or k that is not the usual one is shown though it is the same in every row.

    Args:
        title: Of the table.
        lines: One for each row.
        columns: Names, and what makes a cell of a line.
        best: A column, and the lines that stand out in it.
        coloured: Columns whose cells have the colour of a word, and what finds it in a line.
    """
    cells = {name: [cell(line) for line in lines] for name, cell in columns}
    shown = [name for name, values in cells.items() if name not in _OPTIONAL or _says_something(name, values)]
    bold = frozenset((line, shown.index(best[0])) for line in best[1]) if best else frozenset()
    words = (tuple(coloured[name](line) if name in coloured else None for name in shown) for line in lines)
    rows = tuple(zip(*(cells[name] for name in shown), strict=True))
    return Table(title, tuple(shown), rows, bold, tuple(words) if coloured else ())


def _says_something(name: str, values: Sequence[str]) -> bool:
    found = set(values)
    return len(found) > 1 or (name in _USUAL and not found <= {_USUAL[name]})
