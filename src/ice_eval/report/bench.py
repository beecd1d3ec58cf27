"""A grid as tables: what is to be run, and how far it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ice_eval.analysis import GridLine
from ice_eval.report.tables import EMPTY, Column, Table, count, naming, percent, table_of, word_of_rate
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL

_Line = GridLine[SummaryLine]
_Row = Mapping[str, Any]
"""Plain values: a run that is planned, or how far one is."""


def grid_plan_table(lines: Sequence[_Row]) -> Table:
    """Rows and minutes of every run."""
    columns: list[Column[_Row]] = [
        *naming("model", "task", "prompt", "language"),
        ("examples", lambda line: count(line["n"])),
        ("rows", lambda line: count(line["rows"])),
        ("minutes", lambda line: EMPTY if line["minutes"] is None else f"{line['minutes']:.1f}"),
        *naming("status"),
    ]
    return table_of("Plan", lines, columns)


def grid_plan_notes(lines: Sequence[_Row]) -> list[str]:
    """What all runs together take."""
    rows = [line["rows"] for line in lines if line["rows"]]
    found = list(dict.fromkeys(f"{line['task']} cannot start: {line['problem']}" for line in lines if line["problem"]))
    if found:
        found.append("Data that the hub does not give may come from a folder: --data-dir DIR takes DIR/TASK.jsonl.")
    found += [f"{len(lines)} runs, about {sum(rows):,} rows to score in {len(rows)} of them (words taken for units)."]
    known = [line["minutes"] for line in lines if line["minutes"] is not None and line["rows"]]
    if known and len(known) == len(rows):
        found.append(f"About {sum(known):.0f} minutes, at the pace of the runs that are finished.")
    elif rows:
        found.append("Minutes are known once a run of the model is finished; `ice plan` measures one run beforehand.")
    return found


def grid_table(lines: Sequence[_Line]) -> Table:
    """The win rates of a grid, attributions and operators side by side; a star where p, adjusted over all, is small."""
    across = dict.fromkeys(_column(each.line) for each in lines if each.line.operator != ALL)
    places: dict[tuple[object, ...], _Cells] = {}
    for each in lines:
        run, line = each.run, each.line
        place = (run.model, run.task, run.language, run.prompt, line.direction, line.null, line.k)
        found = places.setdefault(place, _Cells(dict(zip(_PLACE, place, strict=True)), {}))
        found.lines[_column(line)] = line
    columns: list[Column[_Cells]] = [
        *naming(*_PLACE, get=lambda cells, name: cells.place[name]),
        *((name, _rate(name)) for name in across),
    ]
    return table_of("Win rates", list(places.values()), columns, coloured={name: _word(name) for name in across})


class _Cells(NamedTuple):
    """A row of the table."""

    place: Mapping[str, object]
    lines: dict[str, SummaryLine]
    """By attribution and operator."""


def _column(line: SummaryLine) -> str:
    return f"{line.attribution} {line.operator}"


def grid_table_note(lines: Sequence[_Line]) -> str:
    """What the stars mean."""
    n = sum(each.line.p_value is not None for each in lines)
    return (
        f"Win rates: * marks p ≤ {STAR}, adjusted over all {n} configurations of the grid (Benjamini-Yekutieli); "
        "intervals, verdicts and the average over operators are in bench.json."
    )


_PLACE = ("model", "task", "language", "prompt", "direction", "null", "k")
STAR = 0.05


def _rate(name: str) -> Callable[[_Cells], str]:
    def cell(cells: _Cells) -> str:
        line = cells.lines.get(name)
        if line is None:
            return EMPTY
        return percent(line.win_rate) + (" *" if line.p_adjusted is not None and line.p_adjusted <= STAR else "")

    return cell


def _word(name: str) -> Callable[[_Cells], str | None]:
    def word(cells: _Cells) -> str | None:
        line = cells.lines.get(name)
        return None if line is None else word_of_rate(line.win_rate, line.verdict)

    return word


def grid_runs_table(runs: Sequence[_Row]) -> Table:
    """How far every run of a grid is."""
    columns: list[Column[_Row]] = [
        ("run", lambda line: str(line["name"])),
        *naming("status"),
        ("confidence", lambda line: percent(line.get("confidence"))),
        ("median tokens", lambda line: EMPTY if line.get("tokens_median") is None else f"{line['tokens_median']:g}"),
        ("error", lambda line: str(line.get("error") or EMPTY)),
    ]
    if not any(line.get("error") for line in runs):
        columns.pop()
    return table_of("Runs", runs, columns)
