"""What a table is, how its cells are written, and how lines of numbers become one.

The same cells stand in the terminal, in Markdown, CSV, LaTeX and HTML.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ice_eval import stats
from ice_eval._controls import without_controls
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.stats.verdict import ALL_EQUAL, GROUPS_EQUAL, NOT_DISTINGUISHABLE, UNDETERMINED

Line = Mapping[str, Any]
Column = tuple[str, Callable[[Line], str]]
"""A header, and what makes a cell of a line."""
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


def word_of_verdict(verdict: str | None) -> str | None:
    """The word that colours a verdict: of a range the lower one, as that is what is sure."""
    if verdict == NOT_DISTINGUISHABLE:
        return "near-random"
    return next((word for word in stats.TAXONOMY if (verdict or "").startswith(word)), None)


def word_of_rate(win_rate: float | None, verdict: str | None) -> str | None:
    """The word that colours a win rate; none is alarming that cannot be told from chance, or without an interval."""
    if win_rate is None or verdict in (NOT_DISTINGUISHABLE, UNDETERMINED, ALL_EQUAL, GROUPS_EQUAL):
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


def naming(*fields: str) -> list[Column]:
    """Columns that say what a row is about, headed by the names of their fields."""
    return [(field, _NAMES.get(field) or text(field)) for field in fields]


def text(field: str) -> Callable[[Line], str]:
    """Cells that hold a field as it is."""
    return lambda line: EMPTY if line[field] is None else str(line[field])


_NAMES: Mapping[str, Callable[[Line], str]] = {
    "null": lambda line: str(line.get("null", SIZE)),  # earlier runs do not name it
    "k": lambda line: share(line["k"]),
    "operators": lambda line: " − ".join(line["operators"]),
}

_OPTIONAL = {"run", "model", "task", "prompt", "language", "null", "direction", "k"}
_USUAL = {"null": SIZE, "direction": "sufficiency", "k": "0.2"}
"""What a reader assumes of a table that does not say it."""


def table_of(
    title: str,
    lines: Sequence[Line],
    columns: Sequence[Column],
    *,
    best: tuple[str, set[int]] | None = None,
    coloured: Mapping[str, Callable[[Line], str | None]] = MappingProxyType({}),
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
