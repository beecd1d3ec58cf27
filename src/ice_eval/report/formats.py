"""Tables as text: Markdown, CSV, and LaTeX that a paper can take in."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from ice_eval.table import Table, is_number


def _on_one_line(cell: str) -> str:
    return " ".join(cell.split())


_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Beginning of an HTML tag, which Markdown would pass through; `<0.0001` is none."""


def _markdown(table: Table) -> str:
    def written(cell: str) -> str:
        return _TAG.sub(r"\<", _on_one_line(cell).replace("\\", "\\\\").replace("|", "\\|"))

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join(" ---: " if number else " --- " for number in table.are_numbers) + "|"
    body = [
        row([f"**{written(c)}**" if (i, j) in table.best else written(c) for j, c in enumerate(cells)])
        for i, cells in enumerate(table.rows)
    ]
    return "\n".join([f"**{written(table.title)}**", "", row([written(name) for name in table.header]), rule, *body])


_FORMULA = ("=", "+", "-", "@", "\t")
"""Characters that a spreadsheet reads as the beginning of a formula."""


def _csv(table: Table) -> str:
    """Return CSV; cells that a spreadsheet would evaluate are marked as text by an apostrophe, numbers are not."""

    def written(cell: str) -> str:
        return f"'{cell}" if cell.startswith(_FORMULA) and not is_number(cell) else cell

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([written(cell) for cell in row] for row in (table.header, *table.rows))
    return stream.getvalue().rstrip("\n")


_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
     "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "−": "$-$", "–": "--", "<": "$<$", ">": "$>$",
     "|": r"\textbar{}"}
)  # fmt: skip
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def _latex(table: Table) -> str:
    """Return a booktabs table, with its caption as a comment above it."""

    def written(cell: str) -> str:
        return _MINUS.sub("−", _on_one_line(cell)).translate(_LATEX)

    def row(cells: Sequence[str]) -> str:
        text = " & ".join(cells) + r" \\"
        return "{}" + text if text.startswith(("[", "*")) else text  # else an argument of the \\ before it

    body: list[str] = []
    for i, cells in enumerate(table.rows):
        if i and _run(table, i) != _run(table, i - 1):
            body.append(r"\addlinespace")
        body.append(
            row([rf"\textbf{{{written(c)}}}" if (i, j) in table.best else written(c) for j, c in enumerate(cells)])
        )
    alignment = "".join("r" if number else "l" for number in table.are_numbers)
    head = [
        rf"% {_on_one_line(table.title)}; needs \usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        row([written(name) for name in table.header]),
        r"\midrule",
    ]
    return "\n".join([*head, *body, r"\bottomrule", r"\end{tabular}"])


def _run(table: Table, row: int) -> list[str]:
    """Return the run, the model and the task of a row, where the table names them."""
    return [cell for name, cell in zip(table.header, table.rows[row], strict=True) if name in {"run", "model", "task"}]


FORMATS: Mapping[str, Callable[[Table], str]] = {"md": _markdown, "csv": _csv, "latex": _latex}


def formatted(table: Table, style: str) -> str:
    """Return the table as text in one of `FORMATS`."""
    return FORMATS[style](table)
