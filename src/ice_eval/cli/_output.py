"""Printing: tables for people, JSON for programs, progress that fits where it goes."""

import json
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.text import Text

from ice_eval._controls import without_controls

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ice_eval.report import Table
    from ice_eval.results import Plan, RunFolder


_WIDE = 10_000
_UNSAFE = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""Control characters that JSON need not escape, and halves of characters."""
_TELLING_ROWS, _TELLING_SHARE = 100, 0.05
"""Rows, or the share of all, after whose scoring progress says how long the rest takes."""


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
    if as_json:
        print_json({"folder": str(folder.path), **folder.summary()})
        return
    from ice_eval.report import cost_table

    print_summaries([folder.summary()])
    cost = cost_table(folder.manifest())
    if cost.rows:
        print_tables([cost])
    print_text(f"\nRun folder: {folder.path}\nReport:     {folder.path / 'report.html'}")


def print_summaries(summaries: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> None:
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


_NONE_LEFT = {
    "rows": "nothing left to score: all rows are in the folder.",
    "requests": "nothing left to ask: all replies are in the folder.",
}


class Bar:
    """Progress on standard error: a bar in a terminal, a line every ten seconds elsewhere.

    The first Ctrl-C lets the part in hand be finished where someone asks, part by part, whether to stop; the second one
    stops at once, as does the first where nobody asks.
    """

    def __init__(self, counted: Literal["rows", "requests"] = "rows") -> None:
        self._counted = counted
        self._plain = not sys.stderr.isatty()
        self._console = Console(stderr=True, highlight=False)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._done = self._scored = 0
        self._started = self._told = 0.0
        self._asked_to_stop = False
        self._handler: Any = None

    def say(self, message: str) -> None:
        self._console.print(Text(without_controls(message)))

    def start(self, total: int) -> None:
        self._total, self._done, self._scored, self._started = total, 0, 0, time.monotonic()
        self._told = self._started
        if not self._plain:
            self._progress = _progress(self._console)
            self._task = self._progress.add_task(self._counted, total=total, rate="")
            self._progress.start()

    def advance(self, rows: int, *, scored: bool = True) -> None:
        self._done += rows
        self._scored += rows if scored else 0
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, rate=self._pace())
        elif self._plain and time.monotonic() - self._told > 10:
            self._told = time.monotonic()
            self.say(f"{self._done}/{self._total} {self._counted}{self._outlook()}")

    def correct(self, total: int) -> None:
        self._total = total
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total)

    def asked_to_stop(self) -> bool:
        hears = self._handler is not None or threading.current_thread() is not threading.main_thread()
        if not hears and not self._asked_to_stop:
            self._handler = signal.signal(signal.SIGINT, self._interrupted)
        return self._asked_to_stop

    def _interrupted(self, number: int, frame: object) -> None:
        self._asked_to_stop = True
        self._hear_as_before()
        self.say("interrupted: the part in hand is finished (Ctrl-C again: at once); the same command again continues.")

    def _hear_as_before(self) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None

    def stop(self) -> None:
        self._hear_as_before()
        if self._progress is not None:
            self._progress.stop()
        if self._scored:
            self.say(f"{self._scored} {self._counted} in {time.monotonic() - self._started:.0f} s ({self._pace()})")
        elif self._done:
            self.say(_NONE_LEFT[self._counted])

    def _outlook(self) -> str:
        """Rate and time left; nothing before enough rows are scored, for attributions come before the first ones."""
        if not self._scored or self._scored < min(_TELLING_ROWS, _TELLING_SHARE * self._total):
            return ""
        left = (self._total - self._done) / self._rate()
        return f", {self._pace()}, about {left:.0f} s left"

    def _pace(self) -> str:
        return f"{self._rate():.0f} {self._counted}/s"

    def _rate(self) -> float:
        return self._scored / max(time.monotonic() - self._started, 1e-6)


def _progress(out: Console) -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=out, transient=True)
