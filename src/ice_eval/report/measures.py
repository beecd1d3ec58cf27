"""What measures say of runs, as tables and lines."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ice_eval.analysis.measures import Column, Found, Measure, Missing, Part
from ice_eval.report.tables import EMPTY, Table, count, p_value, percent, points, share, table_of
from ice_eval.results import RunFolder

Line = Mapping[str, Any]
"""Plain values of a measure, by field."""


@dataclass(frozen=True)
class Measured:
    """What one measure says of some runs."""

    name: str
    of_runs: tuple[Found | Missing, ...]
    """In the order of the runs."""
    across: Found | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it; parts by their titles."""
        return {
            "measure": self.name,
            "runs": [found_as_dict(found) for found in self.of_runs],
            "across": None if self.across is None else found_as_dict(self.across),
        }


def measured(measures: Mapping[str, Measure], folders: Sequence[RunFolder]) -> list[Measured]:
    """Ask every measure about every run, and about all of them together where there are several."""
    found = []
    for name, measure in measures.items():
        of_runs = tuple(measure.of(folder) for folder in folders)
        there = [each for each in of_runs if isinstance(each, Found)]
        found.append(Measured(name, of_runs, measure.across(there) if len(there) > 1 else None))
    return found


def measure_tables(results: Sequence[Measured], folders: Sequence[RunFolder]) -> list[Table]:
    """A table for every part of every measure; runs stand in one table, told apart as in all tables."""
    names = _names(folders)
    return [table for result in results for table in _tables(result, names)]


def measure_notes(results: Sequence[Measured], folders: Sequence[RunFolder]) -> list[str]:
    """What must be known beside the tables, and a line for every measure that says nothing of a run."""
    found = []
    for result in results:
        parts = [*result.of_runs, *([] if result.across is None else [result.across])]
        found += [f"{result.name}: {note}" for part in parts if isinstance(part, Found) for note in part.notes]
        for folder, of_run in zip(folders, result.of_runs, strict=True):
            if isinstance(of_run, Missing):
                where = "" if len(folders) == 1 else f" of {folder.path}"
                found.append(f"{result.name}: nothing to say{where}: {of_run.reason}.")
    return list(dict.fromkeys(found))


def found_as_dict(found: Found | Missing) -> dict[str, Any]:
    """As JSON has it; parts by their titles."""
    if isinstance(found, Missing):
        return {"missing": found.reason}
    return {"parts": {part.title: [dict(line) for line in part.lines] for part in found.parts}, "notes": [*found.notes]}


def answer_tables(answers: Mapping[str, Found | Missing]) -> list[Table]:
    """A table for every part of what a grid says to some questions; of very long ones the beginning."""
    return [_table(part, part.lines[:MOST_LINES]) for part in _parts(answers)]


def answer_notes(answers: Mapping[str, Found | Missing]) -> list[str]:
    """What must be known beside these tables, and why some questions have no answer."""
    found = []
    for name, answer in answers.items():
        title = name.replace("_", "-")
        if isinstance(answer, Missing):
            found.append(f"{title}: nothing to say: {answer.reason}.")
        else:
            found += [f"{title}: {note}" for note in answer.notes]
    found += [
        f"{part.title}: {len(part.lines) - MOST_LINES} further lines are in bench.json."
        for part in _parts(answers)
        if len(part.lines) > MOST_LINES
    ]
    return found


def _parts(answers: Mapping[str, Found | Missing]) -> list[Part]:
    return [part for each in answers.values() if isinstance(each, Found) for part in each.parts]


MOST_LINES = 50
"""Of one table about a grid."""


def _names(folders: Sequence[RunFolder]) -> list[dict[str, str]]:
    """Model and task of every run, with its number where these do not tell runs apart."""
    configs = [folder.manifest().config for folder in folders]
    named = [(config.model, config.task) for config in configs]
    alike = len(set(named)) < len(named)
    return [
        {"run": str(number) if alike else "", "model": model, "task": task}
        for number, (model, task) in enumerate(named, start=1)
    ]


def _tables(result: Measured, names: Sequence[Mapping[str, str]]) -> list[Table]:
    gathered: dict[str, tuple[Part, list[Line]]] = {}
    for name, found in zip(names, result.of_runs, strict=True):
        for part in found.parts if isinstance(found, Found) else ():
            _, lines = gathered.setdefault(part.title, (part, []))
            lines += [{**name, **line} for line in part.lines]
    tables = [_table(part, lines) for part, lines in gathered.values()]
    return tables + [_table(part, part.lines) for part in (result.across.parts if result.across is not None else ())]


def _table(part: Part, lines: Sequence[Line]) -> Table:
    naming = [Column(name, name, "text") for name in ("run", "model", "task") if all(name in line for line in lines)]
    columns = [(column.header, _cell(column)) for column in itertools.chain(naming, part.columns)]
    return table_of(part.title, lines, columns)


def _cell(column: Column) -> Callable[[Line], str]:
    write = _WRITTEN[column.kind]
    return lambda line: write(line[column.field])


def _signed(value: float) -> str:
    """With its sign, which is plus for what rounds to 0."""
    return f"{round(value, 3) + 0.0:+.3f}"


def _interval(value: Sequence[float] | None, write: Callable[[float], str]) -> str:
    return EMPTY if value is None else "[" + ", ".join(map(write, value)) + "]"


_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "text": lambda value: EMPTY if value is None else str(value),
    "count": count,
    "share": share,
    "percent": percent,
    "number": lambda value: EMPTY if value is None else f"{value:.3f}",
    "signed": lambda value: EMPTY if value is None else _signed(value),
    "interval": lambda value: _interval(value, "{:.3f}".format),
    "percent interval": lambda value: _interval(value, lambda limit: f"{100 * limit:.1f}"),
    "signed interval": lambda value: _interval(value, _signed),
    "points": points,
    "points interval": lambda value: _interval(value, lambda limit: f"{100 * limit:+.1f}"),
    "p-value": p_value,
}
