"""The comparison of a first run with others as a page: sentences that answer, differences as intervals, and tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ice_eval.files import as_text
from ice_eval.report.chains import chain_verdict
from ice_eval.report.citations import headline
from ice_eval.report.conclusion import listed
from ice_eval.report.page import Drawings, html_page, write_page
from ice_eval.report.sentences import difference_notes, setting_of
from ice_eval.report.tables import difference_tables, rate_columns, run_letters, run_names, setting
from ice_eval.results import Configuration, RunDifference, Summary, WinRateDifference
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import CONTROL
from ice_eval.table import Table, table_of, written

SETTLED = 0.05
"""Largest adjusted p-value of a difference that names the better run."""
_NAMED = 3
"""Differences that a sentence names."""
_MOST = 8
"""Settings that a sentence names."""
_LONGEST = 24
"""Characters of a setting in a sentence."""
_HASH = re.compile(r"[0-9a-f]{8,}")
_SCALES = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Largest difference on the axis of the plot."""


class PlottedDifference(NamedTuple):
    """One row of the plot; positions are percent of its width."""

    run: str
    """Letter of the other run."""
    line: WinRateDifference
    setting: str
    """Size, direction and null; empty if all rows have the same."""
    low: float
    high: float
    at: float


class DifferencePlot(NamedTuple):
    """Differences of all runs from the first, the largest first."""

    rows: tuple[PlottedDifference, ...]
    limit: float
    """Difference at the right end of the axis."""


def write_comparison(found: Sequence[RunDifference], path: Path) -> Path:
    """Write the page of some comparisons with the same first run; raise `ConfigError` if that fails."""
    return write_page(comparison_page(found), path)


def comparison_page(found: Sequence[RunDifference], **content: Any) -> str:
    """Return the page of some comparisons with the same first run; `content` is added to what its template gets."""
    folders = [found[0].first, *(each.second for each in found)]
    letters, names = run_letters(len(folders)), run_names(folders)
    runs = [
        (letter, f"{model} on {task}", as_text(Path(folder.path.name)))
        for letter, (model, task), folder in zip(letters, names, folders, strict=True)
    ]
    page = {
        "title": f"ICE comparison: {', '.join(name for _, name, _ in runs)}",
        "runs": runs,
        "answers": [answer(each, letter) for letter, each in zip(letters[1:], found, strict=True)],
        "subjects": list(_of_subjects(letters, [folder.summary() for folder in folders])),
        "plot": _plot(found, letters),
        "tables": difference_tables(found),
        "notes": difference_notes(found),
        "drawn": Drawings(),
        **content,
    }
    return html_page("comparison.html", page)


def comparison_lines(found: Sequence[RunDifference]) -> list[str]:
    """Return the answer about each run, which runs these are, and the settings that differ."""
    letters, first = run_letters(len(found) + 1)[1:], found[0].first.path
    lines = [answer(each, letter) for letter, each in zip(letters, found, strict=True)]
    for letter, each in zip(letters, found, strict=True):
        changes = [_change(one.field, one.first, one.second) for one in each.settings[:_MOST]]
        changes += [f"{len(each.settings) - _MOST} more settings"] * (len(each.settings) > _MOST)
        lines.append(f"A is {first}, {letter} is {each.second.path}: {', '.join(changes) or 'the same settings'}.")
    return [
        *lines,
        *_of_subjects(["A", *letters], [found[0].first.summary(), *(each.second.summary() for each in found)]),
    ]


def _change(field: str, first: object, second: object) -> str:
    if all(isinstance(value, str) and _HASH.fullmatch(value) for value in (first, second)):
        return f"other {field}"
    return f"{field} {setting(first, _LONGEST)} → {setting(second, _LONGEST)}"


def comparison_table(found: Sequence[RunDifference], *, most: int) -> Table:
    """Return the clearest differences, at most `most`."""
    letters = run_letters(len(found) + 1)[1:]
    pairs = [(letter, line) for letter, each in zip(letters, found, strict=True) for line in leading(each)]
    shown = sorted(pairs, key=lambda pair: pair[1].p_adjusted or 0.0)[:most]
    left_out = ("n", "p_value", "verdict_second")
    columns = [each for each in rate_columns(found) if each.field not in left_out]
    columns = [replace(each, header="difference") if each.field == "difference" else each for each in columns]
    title = "Differences" if len(shown) == len(pairs) else f"Differences, the clearest {len(shown)} of {len(pairs)}"
    return table_of(
        title, [line for _, line in shown], columns, runs=[name for name, _ in shown] if len(found) > 1 else ()
    )


def answer(found: RunDifference, letter: str) -> str:
    """Return which run's explanations win more, under which operators and how surely."""
    lines = sorted(leading(found), key=lambda line: (line.p_adjusted, -abs(line.difference or 0.0)))
    if not lines:
        return f"A and {letter} share no explanation whose difference can be tested."
    several = len({_place(line) for line in lines}) > 1
    settled = [line for line in lines if line.p_adjusted is not None and line.p_adjusted <= SETTLED]
    if not settled:
        closest = f"the clearest difference is that of {_named(lines[0], letter, several)}"
        return f"Whether A or {letter} is better, the examples do not settle: {closest}."
    better = {name: [line for line in settled if _better(line, letter) == name] for name in (letter, "A")}
    sides = [f"{name} is better for {_listed(side, letter, several)}" for name, side in better.items() if side]
    said = "; ".join(sides) + "."
    if len(sides) > 1:
        said = f"Neither run is better throughout: {said}"
    left = len(lines) - len(settled)
    return (
        said
        if not left
        else f"{said} The other {_count(left)} of {len(lines)} {'is' if left == 1 else 'are'} not settled."
    )


def leading(found: RunDifference) -> list[WinRateDifference]:
    """Return the tested differences without those of the control, and under single operators if there are any."""
    tested = [line for line in found.configurations if line.p_adjusted is not None and line.difference is not None]
    lines = [line for line in tested if line.attribution != CONTROL]
    return [line for line in lines if line.operator != ALL] or lines


def _better(line: WinRateDifference, letter: str) -> str:
    return letter if (line.difference or 0.0) > 0 else "A"


def _count(n: int) -> str:
    return "difference" if n == 1 else f"{n} differences"


def _place(line: WinRateDifference) -> str:
    return setting_of(Configuration("", "", line.direction, line.k, line.null))  # type: ignore[arg-type]


def _named(line: WinRateDifference, letter: str, several: bool) -> str:
    where = f", {_place(line)}" if several else ""
    return f"{line.attribution} under {line.operator}{where} ({letter} − A = {numbers(line)})"


def numbers(line: WinRateDifference) -> str:
    """Return a difference with its interval and its adjusted p-value."""
    p = written(line.p_adjusted, "p-value")
    named = f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"
    limits = "" if line.difference_ci is None else f" {written(line.difference_ci, 'points interval')}"
    return f"{written(line.difference, 'points')}{limits}, adjusted {named}"


def _listed(lines: Sequence[WinRateDifference], letter: str, several: bool) -> str:
    more = [] if len(lines) <= _NAMED else [f"{len(lines) - _NAMED} more"]
    parts = [*(_named(line, letter, several) for line in lines[:_NAMED]), *more]
    return listed(parts)


def _of_subjects(letters: Sequence[str], summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield what chains or cited answers show in each run, which is not tested against the others."""
    said = [
        chain_verdict(each).title if each.chains is not None else headline(each.citations) if each.citations else ""
        for each in summaries
    ]
    if any(said):
        yield from (
            f"{letter}: {text or 'no chains and no cited answers.'}" for letter, text in zip(letters, said, strict=True)
        )
        yield "These are statements on each run by itself; their differences are not tested."


def _plot(found: Sequence[RunDifference], letters: Sequence[str]) -> DifferencePlot:
    pairs = [
        (letter, line)
        for letter, each in zip(letters[1:], found, strict=True)
        for line in each.configurations
        if line.difference is not None and (line.operator != ALL or not leading(each))
    ]
    several = len({_place(line) for _, line in pairs}) > 1
    ends = [abs(end) for _, line in pairs for end in (line.difference_ci or (line.difference or 0.0,))]
    limit = next(each for each in _SCALES if each >= min(max(ends, default=0.0), 1.0))

    def at(value: float) -> float:
        return 50 + 50 * value / limit

    rows = []
    for letter, line in sorted(pairs, key=lambda pair: (pair[0], pair[1].attribution == CONTROL)):
        own = line.difference or 0.0
        low, high = line.difference_ci or (own, own)
        rows.append(PlottedDifference(letter, line, _place(line) if several else "", at(low), at(high), at(own)))
    return DifferencePlot(tuple(rows), limit)
