"""Printing: tables for people, JSON for programs."""

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ice_eval._controls import without_controls

if TYPE_CHECKING:
    from ice_eval.report import Table
    from ice_eval.results import Plan, RunFolder, Summary


_WIDE = 10_000
_UNSAFE = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""Control characters that JSON need not escape, and halves of characters."""


def console() -> Console:
    """Standard output; as wide as any table when it is not a terminal."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_WIDE)


def print_text(text: str, *, error: bool = False) -> None:
    """Lines on standard output or error, without what a terminal would obey.

    All that commands print goes through this module: names, ids and paths may hold anything.
    """
    print(without_controls(text), file=sys.stderr if error else sys.stdout, flush=error)


def print_json(content: Any) -> None:
    """JSON, with escapes in place of what a terminal would obey; what is read from it is the same."""
    any_character = sys.stdout.encoding.lower().startswith("utf")
    text = json.dumps(content, indent=2, ensure_ascii=not any_character, allow_nan=False)
    print(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_run(folder: "RunFolder", *, as_json: bool) -> None:
    """The result of a run: the summary as it is in the file, or its tables."""
    from ice_eval.results.json_files import as_json as json_of

    if as_json:
        print_json({"folder": str(folder.path), **json_of(folder.summary())})
        return
    from ice_eval.report import cost_table

    print_summaries([folder.summary()])
    cost = cost_table(folder.manifest())
    if cost.rows:
        print_tables([cost])
    print_text(f"\nRun folder: {folder.path}\nReport:     {folder.path / 'report.html'}")


def print_summaries(summaries: "Sequence[Summary]", names: Sequence[str] = ()) -> None:
    """Tables and notes of some runs; `names` says which they are, where the tables number them."""
    from ice_eval.report import notes, tables

    found = tables(summaries)
    numbered = any("run" in table.header for table in found)
    runs = [f"run {number} is {name}" for number, name in enumerate(names, start=1)] if numbered else []
    print_tables(found, [*runs, *notes(*summaries)])


def print_plan(plan: "Plan", *, as_json: bool, hourly_price: float | None = None) -> None:
    """What a run would take: as JSON, or as a table and a few lines."""
    from ice_eval.report import plan_notes, plan_table

    if as_json:
        price = None if hourly_price is None else [c.minutes / 60 * hourly_price for c in plan.choices]
        print_json({**plan.as_dict(), **({} if price is None else {"dollars": price})})
        return
    print_tables([plan_table(plan, hourly_price=hourly_price)], plan_notes(plan))


def print_tables(tables: "Sequence[Table]", notes: Sequence[str] = ()) -> None:
    """Tables as they fit the terminal, and a line or more for every note."""
    from ice_eval.cli._tables import fitted

    out = console()
    for table in tables:
        out.print(fitted(table, out))
        out.print()
    for note in notes:
        print_line(out, Text(f"• {note}"), indent=2)


def print_formatted(tables: "Sequence[Table]", style: str) -> None:
    """Tables as md, csv or latex, as `--format` asks for, with an empty line between each two."""
    from ice_eval.report import formatted

    print_text("\n\n".join(formatted(table, style) for table in tables))


def print_line(out: Console, line: Text, *, indent: int = 0) -> None:
    """One line, without what a terminal would obey; broken between words where it is wider, the rest indented."""
    from ice_eval.report.example import harmless

    line = harmless(line)
    if out.is_terminal:
        line = Text("\n").join(_broken(part, out, indent) for part in line.split("\n", allow_blank=True))
    out.print(line, soft_wrap=True)


def _broken(line: Text, out: Console, indent: int) -> Text:
    first = line.wrap(out, out.width)[0]
    rest = line[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    further = list(rest.wrap(out, max(out.width - indent, 1))) if rest.plain else list[Text]()
    return Text("\n" + " " * indent).join([first, *further])
