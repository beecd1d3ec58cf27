"""Printing: tables that fit the terminal for people, JSON for programs.

All output goes through this module: names, ids and paths may hold terminal control characters.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from ice_eval.errors import without_controls

if TYPE_CHECKING:
    from ice_eval.choices import TableColumns
    from ice_eval.report import DataTable, Table
    from ice_eval.results import Plan, RunFolder, Summary
    from ice_eval.subjects.chain.subject import ChainPlan

MINOR = (
    "tokens of probes", "disk", "disagree", "rank corr. (ceiling)", "same word", "checks", "of untied (at most)",
    "effect", "tokens", "steps taken", "SRC 95 % CI", "noise floor", "word (estimate)", "n", "p", "spread", "where",
)  # fmt: skip
"""Columns that a narrow terminal omits, least important first."""
NAMING = ("run", "model", "task", "direction", "k", "null")
"""Columns that become headings above the rows if these still do not fit."""
_LONG = 20
"""Cells up to this width are not broken; longer ones may be, between words, into lines no narrower."""
_GAP = 2
_RUNS, ROWS = 5, 16
"""Sentences or problems, and rows of a table, that fit on one screen together."""
_WIDE = 10_000
_UNSAFE = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""Control characters that JSON need not escape, and lone surrogates."""


def console() -> Console:
    """Return standard output; as wide as any table if it is not a terminal."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_WIDE)


def print_text(text: str, *, error: bool = False) -> None:
    print(without_controls(text), file=sys.stderr if error else sys.stdout, flush=error)


def print_line(line: Text | str, *, indent: int = 0, out: Console | None = None) -> None:
    """Print one line; if the terminal is narrower, wrap it between words and indent the rest."""
    from ice_eval.report.example import harmless

    out = out or console()
    line = harmless(Text(line) if isinstance(line, str) else line)
    if out.is_terminal:
        line = Text("\n").join(_broken(part, out, indent) for part in line.split("\n", allow_blank=True))
    out.print(line, soft_wrap=True)


def _broken(line: Text, out: Console, indent: int) -> Text:
    first = line.wrap(out, out.width)[0]
    rest = line[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    further = list(rest.wrap(out, max(out.width - indent, 1))) if rest.plain else list[Text]()
    return Text("\n" + " " * indent).join([first, *further])


def print_json(content: Any) -> None:
    """Print JSON with control characters escaped; parsed content is the same."""
    any_character = sys.stdout.encoding.lower().startswith("utf")
    text = json.dumps(content, indent=2, ensure_ascii=not any_character, allow_nan=False)
    print(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def capped(lines: Sequence[str], counted: str, most: int = _RUNS) -> list[str]:
    """Return lines that fit on a screen, and how many more there are."""
    more = [f"{len(lines) - most} more {counted} are in the report, or printed with --full."]
    return list(lines) if len(lines) <= most else [*lines[:most], *more]


def exit_if(failed: Sequence[str]) -> None:
    """Print what fails a gate and exit with 1, if anything does."""
    for line in failed:
        print_text(f"ice: {line}", error=True)
    if failed:
        raise typer.Exit(1)


def print_run(folder: "RunFolder", *, as_json: bool, full: bool = False, columns: "TableColumns | None" = None) -> None:
    """Print a run as JSON, or its conclusion, with `full` below all tables and notes."""
    from ice_eval.results.json_files import as_json as json_of

    if as_json:
        print_json({"folder": str(folder.path), **json_of(folder.summary())})
        return
    from ice_eval.report import cost_table

    if full:
        print_summaries([folder.summary()], columns=columns)
        cost = cost_table(folder.manifest())
        if cost.rows:
            print_tables([cost])
        print_text("")
    print_conclusions([folder], [folder.summary()], full=full, columns=columns)
    print_text(f"\nRun folder: {folder.path}\nReport:     {folder.path / 'report.html'}")


def print_conclusions(
    folders: "Sequence[RunFolder]",
    summaries: "Sequence[Summary]",
    *,
    simultaneous: bool = False,
    full: bool = False,
    columns: "TableColumns | None" = None,
) -> None:
    """Print on one screen what runs show: a sentence, problems, a short table, and where the rest is."""
    from ice_eval.report import conclude, conclusion_table, in_paper_columns, notes, summary_table
    from ice_eval.report.chains import capacity_table
    from ice_eval.report.citations import words_table
    from ice_eval.report.tables import run_names
    from ice_eval.results.summary import adjusted_jointly

    names = [" on ".join(pair) for pair in run_names(folders)]
    summaries = adjusted_jointly(summaries)  # as in the tables of several runs
    found = {
        name: conclude(summary, folder.manifest())
        for name, summary, folder in zip(names, summaries, folders, strict=True)
    }
    several, out = len(found) > 1, console()
    said = [f"{name}: {each.sentences[0]}" if several else each.sentence for name, each in found.items()]
    for line in capped(said, "runs"):
        print_line(line, out=out)
    problems = [
        f"{name}: {problem}" if several else problem for name, each in found.items() for problem in each.problems
    ]
    for problem in capped(problems, "problems"):
        print_line(f"! {problem}", indent=2, out=out)
    kind = "simultaneous 95 %" if simultaneous else "95 %"
    shown = conclusion_table(found, most=ROWS, kind=kind)
    if in_paper_columns(summaries, columns):
        shown = _first_rows(summary_table(summaries, simultaneous=simultaneous, columns="paper"), ROWS)
    tables = [capacity_table(*summaries), words_table(*summaries), shown]
    for table in (each for each in tables if each.rows):
        out.print()
        out.print(fitted(table, out))
    if not several:
        [only] = found.values()
        facts = [f"{name}: {value}" + (f" ({note})" if note else "") for name, value, note in only.tiles]
        out.print()
        print_line(" · ".join(facts), out=out)
    n_notes = len(notes(*summaries, columns=columns))
    if not full:
        paths = " ".join(str(folder.path) for folder in folders)
        where = f"ice report {paths} --full" if len(folders) <= 2 else "the same command with --full"
        print_line(f"{f'{n_notes} notes and all' if n_notes > 1 else 'All'} tables: {where}", out=out)


def _first_rows(table: "Table", most: int) -> "Table":
    """Return a table with its first rows; the title says how many there are if these are not all."""
    n = len(table.rows)
    cut = _part(table, range(min(n, most)), range(len(table.header)))
    return cut if n <= most else replace(cut, title=f"{table.title} ({most} of {n} rows)")


def print_summaries(
    summaries: "Sequence[Summary]",
    names: Sequence[str] = (),
    *,
    simultaneous: bool = False,
    columns: "TableColumns | None" = None,
) -> None:
    """Print headlines, tables and notes of some runs; `names` are the names of runs that the tables number."""
    from ice_eval.report import notes, tables
    from ice_eval.report.citations import headlines
    from ice_eval.report.sentences import SIMULTANEOUS

    found = tables(summaries, simultaneous=simultaneous, columns=columns)
    numbered = any("run" in table.header for table in found)
    runs = [f"run {number} is {name}" for number, name in enumerate(names, start=1)] if numbered else []
    for line in headlines(summaries):
        print_line(f"{line}\n")
    print_tables(found, [*runs, *([SIMULTANEOUS] if simultaneous else []), *notes(*summaries, columns=columns)])


def print_plan(plan: "Plan | ChainPlan", *, as_json: bool, hourly_price: float | None = None) -> None:
    """Print the estimated cost of a run as JSON, or as a table with notes."""
    from ice_eval.report import plan_notes, plan_table
    from ice_eval.report.analyses import variance_table
    from ice_eval.results import Plan

    if not isinstance(plan, Plan):
        if as_json:
            print_json({**asdict(plan), "tokens": plan.tokens._asdict()})
        else:
            print_text(str(plan))
        return

    if as_json:
        price = None if hourly_price is None else [c.minutes / 60 * hourly_price for c in plan.choices]
        print_json({**plan.as_dict(), **({} if price is None else {"dollars": price})})
        return
    print_tables([plan_table(plan, hourly_price=hourly_price), variance_table(plan)], plan_notes(plan))


def print_tables(tables: "Sequence[Table]", notes: Sequence[str] = (), *, style: str | None = None) -> None:
    """Print tables that fit the terminal, and their notes; with a style of `--format`, the tables alone."""
    if style is not None:
        from ice_eval.report import FORMATS

        print_text("\n\n".join(FORMATS[style](table) for table in tables))
        return
    out = console()
    for table in tables:
        out.print(fitted(table, out))
        out.print()
    for note in notes:
        print_line(f"• {note}", indent=2, out=out)


def print_data(tables: "Sequence[DataTable]", style: str, out: Path | None) -> None:
    """Write a file for each table into a folder and print their paths; without a folder, print the first table."""
    from ice_eval.report import DataTable, data_text, write_data

    if out is None:
        print_text(data_text(next((table for table in tables if table.rows), DataTable("")), style))
        return
    for path in write_data(tables, style, out):
        print_text(str(path))


def is_data(style: str | None) -> TypeGuard[str]:
    """Return True for a format whose tables are data."""
    from ice_eval.report import DATA_FORMATS

    return style in DATA_FORMATS


def fitted(table: "Table", out: Console) -> RenderableType:
    """Return the table in the form that fits: whole, without minor columns, in sections, or a line per cell."""
    if not out.is_terminal:
        return _drawn(table, _natural(table))  # readers of a pipe or a file want all of it
    found = table
    for name in (name for name in MINOR if name in table.header):
        if _widths(found, out.width) is not None:
            break
        others = [place for place, each in enumerate(found.header) if each != name]
        found = _part(found, range(len(found.rows)), others)
    left_out = [name for name in table.header if name not in found.header]
    note = [Text(f"not shown at this width: {', '.join(left_out)}", style="dim italic")] if left_out else []
    for naming in ((), NAMING, (*NAMING, "attribution")):
        sections = list(_sections(found, naming))
        widths = [_widths(section, out.width) for section in sections]
        parts = [_drawn(section, width) for section, width in zip(sections, widths, strict=True) if width is not None]
        if len(parts) == len(sections):
            spaced = [each for part in parts for each in (Text(), part)][1:]
            return Group(*spaced, *note)
    return _stacked(table)


def _drawn(table: "Table", widths: Sequence[int]) -> RenderableType:
    """Return the titled table with columns of these widths."""
    found = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name, width in zip(table.header, widths, strict=True):
        found.add_column(Text(name, style="bold"), width=width, overflow="fold")
    for line, row in enumerate(table.rows):
        found.add_row(*(Text(cell, style=_style(table, line, place)) for place, cell in enumerate(row)))
    return Group(Text(table.title, style="bold"), found)  # a title of the table's own would be broken at its width


def _natural(table: "Table") -> list[int]:
    """Return widths at which no cell is broken."""
    return [max(map(cell_len, column)) for column in zip(table.header, *table.rows, strict=True)]


def _widths(table: "Table", room: int) -> list[int] | None:
    """Return widths that fit into the room, with long cells broken between words; None if there are none."""
    natural = _natural(table)
    widths = [_least(column) for column in zip(table.header, *table.rows, strict=True)]
    spare = room - sum(widths) - _GAP * (len(widths) - 1)
    if spare < 0:
        return None
    for place in sorted(range(len(widths)), key=lambda place: widths[place] - natural[place]):
        missing = natural[place] - widths[place]
        # Half of what a header lacks would break it in an odd place; lines of long cells are better a little longer.
        more = min(spare, missing) if missing <= spare or widths[place] >= _LONG else 0
        widths[place], spare = widths[place] + more, spare - more
    return widths


def _least(column: Sequence[str]) -> int:
    """Return the smallest width of a column if headers and long cells are broken between words."""
    words = max(cell_len(word) for cell in column for word in (cell.split() or [""]))
    cells = max((min(cell_len(cell), _LONG) for cell in column[1:]), default=0)
    return max(words, cells)


def _style(table: "Table", line: int, place: int) -> Style:
    """Return the style of a cell: the colour of its word, bold for the best."""
    from ice_eval.report.colours import FILLS, INKS

    word = table.words[line][place] if table.words else None
    colours = Style() if word not in FILLS else Style(color=INKS[word], bgcolor=FILLS[word])
    return colours + Style(bold=(line, place) in table.best)


def _part(table: "Table", lines: Sequence[int], places: Sequence[int]) -> "Table":
    return replace(
        table,
        header=tuple(table.header[place] for place in places),
        rows=tuple(tuple(table.rows[line][place] for place in places) for line in lines),
        best=frozenset(
            (i, j) for i, line in enumerate(lines) for j, place in enumerate(places) if (line, place) in table.best
        ),
        words=tuple(tuple(table.words[line][place] for place in places) for line in lines) if table.words else (),
    )


def _sections(table: "Table", names: Sequence[str]) -> "Iterator[Table]":
    """Yield one table per run, model, … in place of columns that name them."""
    naming = [place for place, name in enumerate(table.header) if name in names]
    others = [place for place in range(len(table.header)) if place not in naming]
    heads = [tuple(f"{table.header[place]} {row[place]}" for place in naming) for row in table.rows]
    for head in dict.fromkeys(heads):
        part = _part(table, [line for line, each in enumerate(heads) if each == head], others)
        yield replace(part, title=", ".join([table.title, *head]))


def _stacked(table: "Table") -> RenderableType:
    """Return a block for every row, with one line per cell."""
    blocks: list[RenderableType] = [Text(table.title, style="bold")]
    for line, row in enumerate(table.rows):
        block = RichTable.grid(Column(), Column(overflow="fold"), padding=(0, 2))
        for place, cell in enumerate(row):
            block.add_row(Text(table.header[place], style="bold"), Text(cell, style=_style(table, line, place)))
        blocks += [block, Text()]
    return Group(*blocks)
