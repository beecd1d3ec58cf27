"""Tables in a terminal: coloured by the words they hold, and never wider than it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from ice_eval.report import Table
from ice_eval.report.colours import WORD_COLOURS, WORD_TEXT_COLOURS

MINOR = (
    "tokens of probes", "disk", "disagree", "rank corr. (ceiling)", "same word", "checks", "median effect", "tokens",
    "steps taken", "SRC 95 % CI", "noise floor", "word (estimate)", "n", "p", "spread", "where",
)  # fmt: skip
"""Columns that a narrow terminal is spared, the least important first."""
NAMING = ("run", "model", "task", "direction", "k", "null")
"""Columns that may stand above the rows instead, where these still do not fit."""
_LONG = 18
"""Cells up to this width stay on one line; longer ones may be broken between words, into lines no narrower."""
_GAP = 2


def fitted(table: Table, out: Console) -> RenderableType:
    """The table as it fits: whole, without minor columns, in sections, or a line per cell."""
    if not out.is_terminal:
        return drawn(table, _natural(table))  # whoever reads a pipe or a file wants all of it
    found = table
    for name in (name for name in MINOR if name in table.header):
        if _widths(found, out.width) is not None:
            break
        found = _without(found, name)
    left_out = [name for name in table.header if name not in found.header]
    note = [Text(f"not shown at this width: {', '.join(left_out)}", style="dim italic")] if left_out else []
    for naming in ((), NAMING, (*NAMING, "attribution")):
        sections = list(_sections(found, naming))
        widths = [_widths(section, out.width) for section in sections]
        parts = [drawn(section, width) for section, width in zip(sections, widths, strict=True) if width is not None]
        if len(parts) == len(sections):
            return Group(*_spaced(parts), *note)
    return _stacked(table)


def _spaced(parts: Sequence[RenderableType]) -> list[RenderableType]:
    """With an empty line between each two."""
    return [each for part in parts for each in (Text(), part)][1:]


def drawn(table: Table, widths: Sequence[int]) -> RenderableType:
    """The table under its title, with columns of these widths."""
    found = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name, width in zip(table.header, widths, strict=True):
        found.add_column(Text(name, style="bold"), width=width, overflow="fold")
    for line, row in enumerate(table.rows):
        found.add_row(*(Text(cell, style=_style(table, line, place)) for place, cell in enumerate(row)))
    return Group(Text(table.title, style="bold"), found)  # a title of the table's own would be broken at its width


def _natural(table: Table) -> list[int]:
    """Widths at which nothing is broken."""
    return [max(map(cell_len, column)) for column in zip(table.header, *table.rows, strict=True)]


def _widths(table: Table, room: int) -> list[int] | None:
    """Widths that fit into the room, long cells broken between words; None where there are none."""
    natural = _natural(table)
    least = [_least(column) for column in zip(table.header, *table.rows, strict=True)]
    spare = room - sum(least) - _GAP * (len(least) - 1)
    if spare < 0:
        return None
    widths = list(least)
    for place in sorted(range(len(widths)), key=lambda place: least[place] - natural[place]):
        missing = natural[place] - least[place]
        # Half of what a header lacks would break it in an odd place; lines of long cells are better a little longer.
        more = min(spare, missing) if missing <= spare or least[place] >= _LONG else 0
        widths[place], spare = widths[place] + more, spare - more
    return widths


def _least(column: Sequence[str]) -> int:
    """Smallest width of a column: headers and long cells may be broken between words."""
    words = max(cell_len(word) for cell in column for word in (cell.split() or [""]))
    cells = max((min(cell_len(cell), _LONG) for cell in column[1:]), default=0)
    return max(words, cells)


def _style(table: Table, line: int, place: int) -> Style:
    """The colours of a cell's word; the best cells are bold."""
    word = table.words[line][place] if table.words else None
    colours = Style() if word not in WORD_COLOURS else Style(color=WORD_TEXT_COLOURS[word], bgcolor=WORD_COLOURS[word])
    return colours + Style(bold=(line, place) in table.best)


def _without(table: Table, *names: str) -> Table:
    return _part(table, range(len(table.rows)), [p for p, name in enumerate(table.header) if name not in names])


def _part(table: Table, lines: Sequence[int], places: Sequence[int]) -> Table:
    """Some rows and columns of a table."""
    return Table(
        table.title,
        tuple(table.header[place] for place in places),
        tuple(tuple(table.rows[line][place] for place in places) for line in lines),
        frozenset(
            (i, j) for i, line in enumerate(lines) for j, place in enumerate(places) if (line, place) in table.best
        ),
        tuple(tuple(table.words[line][place] for place in places) for line in lines) if table.words else (),
    )


def _sections(table: Table, names: Sequence[str]) -> Iterator[Table]:
    """A table for every run, model, … instead of columns that name them."""
    naming = [place for place, name in enumerate(table.header) if name in names]
    others = [place for place in range(len(table.header)) if place not in naming]
    heads = [tuple(f"{table.header[place]} {row[place]}" for place in naming) for row in table.rows]
    for head in dict.fromkeys(heads):
        part = _part(table, [line for line, each in enumerate(heads) if each == head], others)
        yield replace(part, title=", ".join([table.title, *head]))


def _stacked(table: Table) -> RenderableType:
    """A block for every row, a line for every cell."""
    blocks: list[RenderableType] = [Text(table.title, style="bold")]
    for line, row in enumerate(table.rows):
        block = RichTable.grid(Column(), Column(overflow="fold"), padding=(0, 2))
        for place, cell in enumerate(row):
            block.add_row(Text(table.header[place], style="bold"), Text(cell, style=_style(table, line, place)))
        blocks += [block, Text()]
    return Group(*blocks)
