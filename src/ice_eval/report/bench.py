"""A grid as tables: what is to be run, and how far it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ice_eval.report.tables import EMPTY, Column, Line, Table, count, naming, percent, table_of, text, word_of_rate
from ice_eval.results.outcomes import ALL


def grid_plan_table(lines: Sequence[Mapping[str, Any]]) -> Table:
    """Rows and minutes of every run."""
    columns: list[Column] = [
        *naming("model", "task", "prompt", "language"),
        ("examples", lambda line: count(line["n"])),
        ("rows", lambda line: count(line["rows"])),
        ("minutes", lambda line: EMPTY if line["minutes"] is None else f"{line['minutes']:.1f}"),
        *naming("status"),
    ]
    return table_of("Plan", lines, columns)


def grid_plan_notes(lines: Sequence[Mapping[str, Any]]) -> list[str]:
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


def grid_table(lines: Sequence[Line]) -> Table:
    """The win rates of a grid, attributions and operators side by side; a star where p, adjusted over all, is small."""
    across = dict.fromkeys((line["attribution"], line["operator"]) for line in lines if line["operator"] != ALL)
    places: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        place = tuple(line[name] for name in _PLACE)
        found = places.setdefault(place, dict(zip(_PLACE, place, strict=True)))
        found[" ".join((line["attribution"], line["operator"]))] = line
    names = [" ".join(each) for each in across]
    columns: list[Column] = [*naming(*_PLACE), *((name, _rate(name)) for name in names)]
    return table_of("Win rates", list(places.values()), columns, coloured={name: _word(name) for name in names})


def grid_table_note(lines: Sequence[Line]) -> str:
    """What the stars mean."""
    n = sum(line["p_value"] is not None for line in lines)
    return (
        f"Win rates: * marks p ≤ {STAR}, adjusted over all {n} configurations of the grid (Benjamini-Yekutieli); "
        "intervals, verdicts and the average over operators are in bench.json."
    )


_PLACE = ("model", "task", "language", "prompt", "direction", "null", "k")
STAR = 0.05


def _rate(name: str) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        if name not in line:
            return EMPTY
        star = " *" if line[name].get("p_adjusted") is not None and line[name]["p_adjusted"] <= STAR else ""
        return percent(line[name]["win_rate"]) + star

    return cell


def _word(name: str) -> Callable[[Line], str | None]:
    return lambda line: word_of_rate(line[name]["win_rate"], line[name]["verdict"]) if name in line else None


def grid_runs_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """How far every run of a grid is."""
    columns: list[Column] = [
        ("run", text("name")),
        *naming("status"),
        ("confidence", lambda line: percent(line.get("confidence"))),
        ("median tokens", lambda line: EMPTY if line.get("tokens_median") is None else f"{line['tokens_median']:g}"),
        ("error", lambda line: str(line.get("error") or EMPTY)),
    ]
    if not any(line.get("error") for line in runs):
        columns.pop()
    return table_of("Runs", runs, columns)
