"""Tables in the paper's layout: values arranged in blocks, rows and columns, as LaTeX, CSV and SVG."""

import csv
import io
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from ice_eval.report.tables import latex_text
from ice_eval.stats import Interval, difference_limits
from ice_eval.table import EMPTY, Table

Quantity = Literal[
    "percent", "small-percent", "fraction", "signed", "decimal", "times", "points", "p-value", "count", "text"
]
"""Format of a number in the paper's tables, which print win rates in percent without a sign for it."""
_WRITE: Mapping[Quantity, Callable[[float], str]] = {
    "percent": lambda value: f"{100 * value:.1f}",
    "small-percent": lambda value: f"{100 * value:.2f}",
    "fraction": "{:.3f}".format,
    "signed": lambda value: f"{value + 0.0:+.2f}",
    "decimal": "{:.2f}".format,
    "times": "{:.1f}×".format,
    "points": lambda value: f"{100 * value:+.1f}",
    "p-value": "{:.2f}".format,
    "count": "{:.0f}".format,
}


@dataclass(frozen=True, kw_only=True)
class Value:
    """One number or word of a table: where it belongs, our result, and the published one."""

    place: Mapping[str, str]
    """Names of its block, row and column, by field."""
    quantity: str
    ours: float | str | None = None
    interval: Interval | None = None
    """95 % interval of our result, where it has one."""
    published: float | str | None = None
    """On the same scale: rates are fractions."""
    published_interval: Interval | None = None
    """95 % interval of the published one, where the paper prints it."""
    run: str = ""
    """Name of the run that it comes from."""
    reason: str = ""
    """Why our result is missing."""

    @property
    def difference(self) -> float | None:
        """Our result less the published one; None where one is missing or a word."""
        if isinstance(self.ours, int | float) and isinstance(self.published, int | float):
            return self.ours - self.published
        return None

    def row(self) -> dict[str, object]:
        """Return the value as a row of data; in a difference, a published number without an interval is exact."""
        gap, limits = self.difference, self.interval or (None, None)
        shifts = None
        if self.interval is not None and isinstance(self.published, int | float) and gap is not None:
            theirs = self.published_interval or Interval(self.published, self.published)
            shifts = difference_limits(self.published + gap, self.interval, self.published, theirs)
        return {
            **self.place,
            "quantity": self.quantity,
            "ours": self.ours,
            "ours_low": limits[0],
            "ours_high": limits[1],
            "published": self.published,
            "published_low": None if self.published_interval is None else self.published_interval.low,
            "published_high": None if self.published_interval is None else self.published_interval.high,
            "difference": gap,
            "difference_low": None if shifts is None else shifts.low,
            "difference_high": None if shifts is None else shifts.high,
            "covered": None if shifts is None else shifts.low <= 0 <= shifts.high,
            "run": self.run,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How one quantity is printed."""

    header: str
    kind: Quantity = "percent"
    marked: str = ""
    """Mark behind win rates below 50 %."""
    bold: Literal["column", "row"] | None = None
    """Where the highest number is printed in bold: within a column of a block, or within a row."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The fields whose values are the blocks, rows and columns of a table."""

    rows: Mapping[str, str]
    """Field -> header."""
    quantities: Mapping[str, Shown]
    columns: Sequence[str] = ()
    blocks: Sequence[str] = ()
    block_title: str = "{}"
    """Title of a block, with the names of its fields in the braces."""


@dataclass(frozen=True)
class Printed:
    """A table of texts: header lines with the number of columns that each text covers, and blocks of rows."""

    header: tuple[tuple[tuple[str, int], ...], ...]
    blocks: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    bold: frozenset[tuple[int, int, int]] = frozenset()
    """Block, row and column of cells in bold."""
    n_names: int = 1
    """Number of columns that name a row."""

    @property
    def width(self) -> int:
        return sum(covered for _, covered in self.header[-1])

    @property
    def lines(self) -> tuple[list[list[str]], list[list[str]]]:
        """Header lines and rows with a text for every column; the first one holds the titles of blocks, if any."""
        titled = any(title for title, _ in self.blocks)
        heads = [[*[""] * titled, *(text for text, covered in head for _ in range(covered))] for head in self.header]
        return heads, [[*[title] * titled, *row] for title, rows in self.blocks for row in rows]

    def flat(self, title: str) -> Table:
        """Return the table for a terminal, with one header line."""
        heads, rows = self.lines
        joined = (" ".join(filter(None, column)) for column in zip(*heads, strict=True))
        return Table(title, tuple(joined), tuple(map(tuple, rows)))


_SHOWN = {
    "sst2": "SST-2", "imdb": "IMDB", "esnli": "e-SNLI", "ag_news": "AG News", "boolq": "BoolQ", "multirc": "MultiRC",
    "french": "FR", "german": "DE", "hindi": "HI", "chinese": "ZH", "turkish": "TR", "arabic": "AR",
    "delete": "Deletion", "infill": "Retrieval", "mask-unk": "Mask-UNK", "mask-pad": "Mask-PAD",
    "attention": "Attention", "gradient": "Gradient", "integrated-gradients": "Integrated Gradients", "lime": "LIME",
    "gsm8k": "GSM8K", "commonsense_qa": "CSQA", "arc": "ARC", "medqa": "MedQA", "token": "Token-level",
    "step": "Step-level", "comprehensiveness": "C", "sufficiency": "S",
}  # fmt: skip


def shown(name: str) -> str:
    """Return a name as the paper prints it; other names stay."""
    base, slash, rest = name.partition("/")
    return _SHOWN.get(name, _SHOWN.get(base, base) + slash + rest)


def printed(values: Sequence[Value], layout: Layout) -> Printed:
    """Arrange values; blocks, rows and columns are in the order in which they first occur."""

    def key(value: Value, fields: Sequence[str]) -> tuple[str, ...]:
        return tuple(value.place.get(name, "") for name in fields)

    across = list(dict.fromkeys(key(value, layout.columns) for value in values))
    cells = {
        (key(v, layout.blocks), key(v, tuple(layout.rows)), key(v, layout.columns), v.quantity): v.ours for v in values
    }
    columns = [(names, quantity) for names in across for quantity in layout.quantities]
    columns = [each for each in columns if any(where[2:] == each for where in cells)]
    blocks, bold = list[tuple[str, tuple[tuple[str, ...], ...]]](), set[tuple[int, int, int]]()
    for b, names in enumerate(dict.fromkeys(key(value, layout.blocks) for value in values)):
        own = list(dict.fromkeys(key(v, tuple(layout.rows)) for v in values if key(v, layout.blocks) == names))
        numbers = [[cells.get((names, row, *column)) for column in columns] for row in own]
        how = [layout.quantities[quantity] for _, quantity in columns]
        rows = [(*map(shown, row), *map(written, found, how)) for row, found in zip(own, numbers, strict=True)]
        title = layout.block_title.format(*map(shown, names)) if layout.blocks else ""
        blocks.append((title, tuple(rows)))
        best = _best(numbers, [each.bold for each in how])
        bold |= {(b, row, column + len(layout.rows)) for row, column in best}
    return Printed(_header(layout, columns), tuple(blocks), frozenset(bold), len(layout.rows))


def written(value: float | str | None, how: Shown) -> str:
    """Return the text of a value."""
    if value is None:
        return EMPTY
    if isinstance(value, str) or how.kind == "text":
        return " ".join(str(value).split())
    return _WRITE[how.kind](value) + (how.marked if value < 0.5 else "")


def _best(
    numbers: Sequence[Sequence[float | str | None]], where: Sequence[Literal["column", "row"] | None]
) -> Iterator[tuple[int, int]]:
    """Yield the places of the highest numbers; among equal numbers none is best."""
    places = {
        (r, c): float(n) for r, row in enumerate(numbers) for c, n in enumerate(row) if isinstance(n, int | float)
    }
    for (r, c), number in places.items():
        by_column = where[c] == "column"
        among = [n for (i, j), n in places.items() if (j == c if by_column else i == r and where[j] == where[c])]
        if where[c] is not None and min(among) < max(among) == number:
            yield r, c


def _header(layout: Layout, columns: Sequence[tuple[tuple[str, ...], str]]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Return a line for every field of the columns, and one for the quantities where there are several of them."""
    names = tuple((header, 1) for header in layout.rows.values())
    if not layout.columns:
        return ((*names, *((layout.quantities[quantity].header, 1) for _, quantity in columns)),)
    levels: list[list[str]] = [[shown(own[i]) for own, _ in columns] for i in range(len(layout.columns))]
    if len({quantity for _, quantity in columns}) > 1:
        levels.append([layout.quantities[quantity].header for _, quantity in columns])
    lines = []
    for depth, level in enumerate(levels):
        is_last = depth == len(levels) - 1
        runs = [[text] for text in level] if is_last else [list(same) for _, same in itertools.groupby(level)]
        lines.append(((*names,) if is_last else (("", len(names)),)) + tuple((run[0], len(run)) for run in runs))
    return tuple(lines)


# --- files --------------------------------------------------------------------------------------------------------


def as_latex(table: Printed, *, caption: str, label: str) -> str:
    """Return a table environment that needs the package booktabs alone."""
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{_alignment(table)}}}"]
    lines.append(r"\toprule")
    for head in table.header:
        cells = [
            latex_text(text) if covered == 1 else rf"\multicolumn{{{covered}}}{{c}}{{{latex_text(text)}}}"
            for text, covered in head
        ]
        lines.append(" & ".join(cells) + r" \\")
    for b, (title, rows) in enumerate(table.blocks):
        lines.append(r"\midrule")
        if title:
            lines += [rf"\multicolumn{{{table.width}}}{{c}}{{\textit{{{latex_text(title)}}}}} \\", r"\midrule"]
        for r, row in enumerate(rows):
            cells = [latex_text(cell) for cell in row]
            cells = [rf"\textbf{{{cell}}}" if (b, r, c) in table.bold else cell for c, cell in enumerate(cells)]
            # A bracket or a star would be an argument of the \\ before it.
            lines.append(("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{latex_text(caption)}}}", rf"\label{{{label}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def figure_latex(file: str, *, caption: str, label: str) -> str:
    """Return a figure environment that includes the figure's PDF; it needs the package graphicx."""
    lines = [r"\begin{figure}", r"\centering", rf"\includegraphics[width=\linewidth]{{{file}}}"]
    lines += [rf"\caption{{{latex_text(caption)}}}", rf"\label{{{label}}}", r"\end{figure}", ""]
    return "\n".join(lines)


def _alignment(table: Printed) -> str:
    """Return the alignment of the columns; texts too long for a line of the page are broken."""
    columns = zip(*(row for _, rows in table.blocks for row in rows), strict=True)
    kinds = ["l" if place < table.n_names else "c" for place in range(table.width)]
    longest = [max(map(len, cells)) for cells in columns] or [0] * table.width
    broken = sum(length > _LONGEST for length in longest)
    width = rf"p{{{_TEXT_SHARE / max(1, broken):.2f}\linewidth}}"
    return "".join(width if length > _LONGEST else kind for kind, length in zip(kinds, longest, strict=True))


def as_csv(table: Printed) -> str:
    """Return the same cells as CSV; the title of a block is the first cell of its rows."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(itertools.chain(*table.lines))
    return stream.getvalue()


_SIZE, _LINE, _MARGIN, _LETTER = 12.0, 18.0, 12.0, 6.6
_LONGEST = 48
"""Characters of a line of a cell."""
_TEXT_SHARE = 0.6
"""Share of the width of a page for columns of broken texts."""


def as_svg(table: Printed, *, caption: str) -> str:
    """Draw the table with rules above, below and between blocks, and its caption beneath."""
    texts = [list(row) for _, rows in table.blocks for row in rows]
    single = [[cell if covered == 1 else "" for cell, covered in head for _ in range(covered)] for head in table.header]
    widths = [
        _LETTER * max([3, *(min(len(cell), _LONGEST) for cell in column)]) + 14
        for column in zip(*texts, *single, strict=True)
    ]
    title_width = _LETTER * max((len(title) for title, _ in table.blocks), default=0)
    if sum(widths) < title_width:
        widths = [width * title_width / sum(widths) for width in widths]
    starts = [_MARGIN + sum(widths[:place]) for place in range(len(widths) + 1)]
    right, y, drawn = starts[-1], _MARGIN, list[str]()

    def rule(weight: float) -> None:
        drawn.append(
            f'<line stroke="#000" x1="{_MARGIN}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke-width="{weight}"/>'
        )

    def row(*cells: tuple[Sequence[str], int, int, bool, str]) -> None:
        """Draw cells: lines of text, first column, number of columns, whether it is a name, and style."""
        nonlocal y
        for line in range(max(len(texts) for texts, *_ in cells)):
            for texts, place, covered, is_name, style in cells:
                if line < len(texts):
                    x = starts[place] if is_name else (starts[place] + starts[place + covered]) / 2
                    where = f'x="{x:.1f}" y="{y + 13:.1f}" text-anchor="{"start" if is_name else "middle"}"'
                    drawn.append(f"<text {where}{style}>{escape(texts[line])}</text>")
            y += _LINE

    bold, italic = ' font-weight="bold"', ' font-style="italic"'
    rule(1.4)
    for head in table.header:
        places = itertools.accumulate((covered for _, covered in head), initial=0)
        names = table.n_names if head is table.header[-1] else 0
        row(*(([text], place, n, place < names, bold) for (text, n), place in zip(head, places, strict=False)))
    for b, (title, rows) in enumerate(table.blocks):
        rule(0.7)
        if title:
            row(([title], 0, table.width, False, italic))
            rule(0.7)
        for r, cells in enumerate(rows):
            styles = [bold if (b, r, c) in table.bold else "" for c in range(len(cells))]
            wrapped = [textwrap.wrap(cell, _LONGEST) or [""] for cell in cells]
            row(*((texts, c, 1, c < table.n_names, styles[c]) for c, texts in enumerate(wrapped)))
    rule(1.4)
    row((textwrap.wrap(caption, max(40, int((right - _MARGIN) / _LETTER))), 0, 1, True, ' fill="#444"'))
    size = f'width="{right + _MARGIN:.0f}" height="{y + _MARGIN:.0f}"'
    style = f'font-family="Helvetica, Arial, \'Liberation Sans\', sans-serif" font-size="{_SIZE:g}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} stroke="none" fill="#000">'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([start, paper, *drawn, "</svg>", ""])
