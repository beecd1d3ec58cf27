"""The page of several runs: a sentence that answers, guidelines, problems, and one matrix of all win rates."""

import os
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ice_eval import stats
from ice_eval.analysis import GridLine, GridResults, GridRun, grid_results
from ice_eval.analysis.across import NOT_SETTLED, answers
from ice_eval.analysis.measures import Found, Missing
from ice_eval.files import as_text
from ice_eval.report.analyses import answer_notes, answer_tables, grid_places
from ice_eval.report.colours import word_of_line
from ice_eval.report.conclusion import control_fails, listed, lost
from ice_eval.report.tables import run_names
from ice_eval.results import Configuration, RunFolder, Summary, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import CONTROL, adjusted_jointly, dropped
from ice_eval.results.view import is_open
from ice_eval.table import Column, Table, beside, counted, naming, percent, share, table_of, whole

_NAMED = 4
"""Configurations of a failing control that are named."""
_MOST = 12
"""Runs that a guideline names."""
_FIGURES = {
    "operator_dependence": "operator-agreement",
    "prompt_sensitivity": "prompt-sensitivity",
    "k_sensitivity": "k-sweep",
    "languages": "language-heatmap",
}
"""Beginning of the names of the figures that belong to the answer of a question."""


class Matrix(NamedTuple):
    """All win rates: a row for each model, task, prompt and size, a column for each attribution and operator."""

    heads: Table
    """Names of the rows."""
    columns: tuple[tuple[str, str], ...]
    """Attribution and operator."""
    rows: tuple[tuple[str, tuple[SummaryLine | None, ...]], ...]
    """The run and the lines of each row."""
    words: Sequence[str]
    """The words of its cells, the strongest first."""


class Guideline(NamedTuple):
    use: str
    """An attribution; empty if nothing is settled."""
    where: str
    reason: str = ""


class GridPage(NamedTuple):
    """The first part of the page of several runs."""

    subject: str
    """Number of runs and configurations."""
    links: Mapping[str, str]
    """Run -> address of its own report."""
    sentences: tuple[str, ...]
    problems: tuple[str, ...]
    guidelines: tuple[Guideline, ...]
    matrix: Matrix
    answers: tuple[dict[str, Any], ...]
    """Title, notes, tables and figures of each answered question."""
    missing: tuple[str, ...]
    """Questions without an answer, and why."""


@dataclass(frozen=True)
class GridContent:
    """The runs of a page, and what they have in common."""

    results: GridResults
    found: Mapping[str, Found | Missing]
    name: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Run -> error."""


def together(folders: Sequence[RunFolder], summaries: Sequence[Summary]) -> GridContent:
    """Return several runs as a grid; questions are asked if all explain labels of texts, or all are about chains."""
    named = zip(folders, run_names(folders), adjusted_jointly(summaries), strict=True)
    unique = {folder.path.resolve(): (folder, name, summary) for folder, name, summary in named}
    manifests = [folder.manifest() for folder, _, _ in unique.values()]
    runs = [
        GridRun(name=as_text(path), folder=folder, model=model, task=task, language=manifest.language)
        for manifest, (path, (folder, (model, task), _)) in zip(manifests, unique.items(), strict=True)
    ]
    results = grid_results(runs, [summary for _, _, summary in unique.values()])
    of_texts = all(each.config.subject == "text" and not is_open(each.labels) for each in manifests)
    is_asked = of_texts or len(results.chains) == len(runs)
    return GridContent(results, answers(results) if is_asked else {})


def grid_page(content: GridContent, figures: Sequence[dict[str, Any]], home: Path) -> GridPage:
    """Return the content of a page in the folder `home`; `figures` have a name, a title and a caption each."""
    single = [each for each in content.results.configurations if each.line.operator != ALL]
    matrix, found = matrix_of(single), content.found
    asked = {name: each for name, each in found.items() if isinstance(each, Found)}
    runs = content.results.runs
    models, tasks = (len({getattr(run, name) for run in runs}) for name in ("model", "task"))
    return GridPage(
        f"{counted(len(runs), 'run')} ({counted(models, 'model')}, {counted(tasks, 'task')}), "
        f"{counted(len(single), 'configuration')}",
        {run.name: link_to(run.folder.path / "report.html", home) for run in runs},
        tuple(_sentences(single, found.get("guidelines"))),
        tuple(_problems(content, single)),
        tuple(_guidelines(found.get("guidelines"))),
        matrix,
        tuple(_answer(name, each, figures) for name, each in asked.items() if each.parts or each.notes),
        tuple(f"{_title(name)}: {each.reason}." for name, each in found.items() if isinstance(each, Missing)),
    )


def matrix_of(lines: Sequence[GridLine[SummaryLine]]) -> Matrix:
    """Return the win rates of a grid side by side; model and task are always named, the rest where it differs."""
    columns = tuple(dict.fromkeys((each.line.attribution, each.line.operator) for each in lines))
    places = grid_places(lines)
    named = Table("", ("model", "task"), tuple((place["model"], place["task"]) for place in places))
    also = table_of("", places, naming("language", "prompt", "direction", "null", "k"))
    rows = tuple((place["run"], tuple(place.get(" ".join(column)) for column in columns)) for place in places)
    found = {word_of_line(each.line) for each in lines if each.line.win_rate is not None}
    words = [word for word in reversed(stats.WORDS) if word in found]
    return Matrix(beside(named, also), columns, rows, words)


def range_table(lines: Sequence[GridLine[SummaryLine]]) -> Table:
    """Return the lowest and the highest win rate of each method under each operator, the best method first."""
    rates: dict[str, dict[str, list[float]]] = {}
    for line in (each.line for each in lines if each.line.win_rate is not None):
        rates.setdefault(line.attribution, {}).setdefault(line.operator, []).append(line.win_rate or 0.0)

    def ends(name: str, operator: str) -> str | None:
        if (found := rates[name].get(operator)) is None:
            return None
        low, high = percent(min(found)), percent(max(found))
        return high if low == high else f"{low.removesuffix(' %')} to {high}"

    operators = dict.fromkeys(each.line.operator for each in lines)
    columns = [Column(operator, operator, "text", get=partial(ends, operator=operator)) for operator in operators]
    names = sorted(rates, key=lambda name: (name == CONTROL, -min(map(min, rates[name].values()))))
    named = Column("attribution", "attribution", "text", get=str)
    return table_of("Lowest and highest win rates of the grid", names, [named, *columns])


def _sentences(lines: Sequence[GridLine[SummaryLine]], guidelines: Found | Missing | None) -> Iterator[str]:
    """Yield how often each method beats random sets, whether one is the best, and the control."""
    yield _counts(lines)
    if isinstance(guidelines, Found):
        advice = [line["advice"] for line in guidelines.parts[0].lines]
        settled = [name for name in advice if name != NOT_SETTLED]
        by_name = listed([f"{name} ({settled.count(name)})" for name in dict.fromkeys(settled)])
        yield (f"A method can be recommended in {len(settled)} of {len(advice)} cases{by_name and f': {by_name}'}.")
    controls = [each.line for each in lines if each.line.attribution == CONTROL]
    rates = [line.win_rate for line in controls if line.win_rate is not None]
    if rates:
        failing = any(map(control_fails, controls))
        comment = "where chance is expected" if failing else "no further from chance than luck allows"
        ends = dict.fromkeys((whole(min(rates)), whole(max(rates))))
        yield f"The random control is at {' to '.join(ends)}, {comment}."


def _counts(lines: Sequence[GridLine[SummaryLine]]) -> str:
    """Return in how many cases each method beats random sets under every operator, the best first."""
    cases: dict[tuple[str, Configuration], list[SummaryLine]] = {}
    for each in lines:
        if each.line.n and each.line.attribution != CONTROL:
            cases.setdefault((each.run.name, each.line.configuration._replace(operator="")), []).append(each.line)
    won, rates = defaultdict[str, list[bool]](list), defaultdict[str, list[float]](list)
    for (_, place), own in cases.items():
        won[place.attribution].append(all(word_of_line(line) in stats.POSITIVE for line in own))
        rates[place.attribution] += (line.win_rate or 0.0 for line in own)
    if not won:
        return "No explanation was evaluated." if lines else "No explanation could be evaluated."
    most, beat = max(map(len, won.values())), "random sets of the same size under every operator"
    if not any(map(any, won.values())):
        return f"No method is shown to beat {beat} in any of {counted(most, 'case')}."
    # Methods with equal counts are named together, those with the higher win rates first.
    groups = defaultdict[tuple[int, int], list[str]](list)
    for name in sorted(won, key=lambda name: (-sum(won[name]) / len(won[name]), -sum(rates[name]) / len(rates[name]))):
        groups[sum(won[name]), len(won[name])].append(name)
    (((n, total), best), *rest) = groups.items()
    others = "".join(f", {listed(names)} in {n} of {of}" for (n, of), names in rest)
    named, verb = listed(best), "beats" if len(best) == 1 else "beat"
    return f"{named[:1].upper()}{named[1:]} {verb} {beat} in {n} of {counted(total, 'case')}{others}."


def _problems(content: GridContent, lines: Sequence[GridLine[SummaryLine]]) -> Iterator[str]:
    for name, error in content.failed.items():
        yield f"The run {name} failed: {error}"
    for run in content.results.runs:
        if (found := dropped(run.folder.summary())).n:
            reasons = "; ".join(f"{why} ({n})" for why, n in found.reasons.items())
            yield f"{_run(run)}: {lost(found)} ({percent(found.share)}): {reasons}."
    controls = [each for each in lines if each.line.attribution == CONTROL and each.line.win_rate is not None]
    failing = [each for each in controls if control_fails(each.line)]
    if failing:
        named = "; ".join(
            f"{_run(each.run)}, {each.line.operator}, k = {share(each.line.k)}: {percent(each.line.win_rate)}"
            for each in failing[:_NAMED]
        )
        yield (
            f"The random control fails in {len(failing)} of {len(controls)} configurations: win rates of these runs "
            f"may be wrong ({named}{'; …' if len(failing) > _NAMED else ''})."
        )


def _run(run: GridRun) -> str:
    return " ".join(filter(None, (f"{run.model} on {run.task}", run.prompt and f"({run.prompt})")))


def _guidelines(found: Found | Missing | None) -> Iterator[Guideline]:
    """Yield a line for each recommended attribution, and one for each reason why nothing is settled."""
    if not isinstance(found, Found):
        return
    table = table_of("", found.parts[0].lines, found.parts[0].columns)
    kept = [place for place, name in enumerate(table.header) if name not in ("use", "because")]
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for line, row in zip(found.parts[0].lines, table.rows, strict=True):
        is_settled = line["advice"] != NOT_SETTLED
        group = groups.setdefault((line["advice"] if is_settled else "", "" if is_settled else line["reason"]), {})
        details = ", ".join(row[place] if len(kept) == 1 else f"{table.header[place]} {row[place]}" for place in kept)
        group.setdefault(f"{line['model']} on {line['task']}", []).append(details)
    for (use, reason), runs in sorted(groups.items(), key=lambda each: not each[0][0]):
        head = f"{table.header[kept[0]]} " if len(kept) == 1 else ""
        where = [f"{run} ({head}{' / '.join(own)})" if kept else run for run, own in runs.items()]
        more = f"; {len(where) - _MOST} more are in the table" if len(where) > _MOST else ""
        yield Guideline(use, "; ".join(where[:_MOST]) + more, reason)


def _answer(name: str, found: Found, figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    start, prefix = _FIGURES.get(name), f"{name.replace('_', '-')}: "
    drawn = [figure for figure in figures if start and figure["name"].startswith(start)]
    notes = [note.removeprefix(prefix) for note in answer_notes({name: found})]
    return {"title": _title(name), "notes": notes, "tables": answer_tables({name: found}), "figures": drawn}


def _title(name: str) -> str:
    return name.replace("_", " ").replace("anti faithful", "anti-faithful").capitalize()


def link_to(target: Path, home: Path) -> str:
    """Return the address of a file relative to the folder of a page; empty if there is no such file."""
    if not target.is_file():
        return ""
    try:
        return urllib.parse.quote(Path(os.path.relpath(target.resolve(), home.resolve())).as_posix())
    except ValueError:  # on another drive
        return ""
