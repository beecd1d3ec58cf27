"""Tables as text: Markdown, CSV, and LaTeX that a paper can take in."""

import csv
import io
import re
from collections.abc import Callable, Mapping

from ice_eval.table import Table, is_number

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Beginning of an HTML tag, which Markdown would pass through; `<0.0001` is none."""
_FORMULA = ("=", "+", "-", "@", "\t")
"""Characters that a spreadsheet reads as the beginning of a formula."""
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")
_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
     "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "−": "$-$", "–": "--", "<": "$<$", ">": "$>$",
     "|": r"\textbar{}"}
)  # fmt: skip


def _on_one_line(cell: str) -> str:
    return " ".join(cell.split())


def _rows(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    """Return the cells of the header and of each row as markup, the best ones in bold."""
    rows = [
        [bold.replace("CELL", escape(c)) if (i, j) in table.best else escape(c) for j, c in enumerate(cells)]
        for i, cells in enumerate(table.rows)
    ]
    return [[escape(name) for name in table.header], *rows]


def _markdown(table: Table) -> str:
    def escape(cell: str) -> str:
        return _TAG.sub(r"\<", _on_one_line(cell).replace("\\", "\\\\").replace("|", "\\|"))

    head, *body = ["| " + " | ".join(cells) + " |" for cells in _rows(table, escape, "**CELL**")]
    rule = "|" + "|".join(" ---: " if number else " --- " for number in table.are_numbers) + "|"
    return "\n".join([f"**{escape(table.title)}**", "", head, rule, *body])


def _csv(table: Table) -> str:
    """Return CSV; cells that a spreadsheet would evaluate are marked as text by an apostrophe, numbers are not."""

    def escape(cell: str) -> str:
        return f"'{cell}" if cell.startswith(_FORMULA) and not is_number(cell) else cell

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(map(escape, row) for row in (table.header, *table.rows))
    return stream.getvalue().rstrip("\n")


def _latex(table: Table) -> str:
    """Return a booktabs table, with its caption as a comment above it; runs, models and tasks are set apart."""

    def escape(cell: str) -> str:
        return _MINUS.sub("−", _on_one_line(cell)).translate(_LATEX)

    rows = [" & ".join(cells) + r" \\" for cells in _rows(table, escape, r"\textbf{CELL}")]
    # A bracket or a star would be an argument of the \\ before it.
    head, *rows = ["{}" + row if row.startswith(("[", "*")) else row for row in rows]
    naming = [place for place, name in enumerate(table.header) if name in {"run", "model", "task"}]
    runs = [[cells[place] for place in naming] for cells in table.rows]
    body = list[str]()
    for i, row in enumerate(rows):
        body += [r"\addlinespace", row] if i and runs[i] != runs[i - 1] else [row]
    alignment = "".join("r" if number else "l" for number in table.are_numbers)
    caption = rf"% {_on_one_line(table.title)}; needs \usepackage{{booktabs}}"
    start = [caption, rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*start, *body, r"\bottomrule", r"\end{tabular}"])


FORMATS: Mapping[str, Callable[[Table], str]] = {"md": _markdown, "csv": _csv, "latex": _latex}


def formatted(table: Table, style: str) -> str:
    """Return the table as text in one of `FORMATS`."""
    return FORMATS[style](table)
