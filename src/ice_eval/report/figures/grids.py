"""Figures of several runs: their win rates, and their prompts and languages where there are several."""

from collections.abc import Iterator
from dataclasses import replace

from ice_eval.analysis import GridLine, GridResults
from ice_eval.report.colours import word_of_line
from ice_eval.report.figures import figure as parts
from ice_eval.report.figures.figure import Figure
from ice_eval.report.figures.runs import overview
from ice_eval.report.figures.tables import LanguageWinRate, PromptWinRate, language_heatmap, prompt_sensitivity
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL


def grid_figures(grid: GridResults, *, simultaneous: bool = False) -> list[Figure]:
    """Return the figures of a grid; prompts and languages are drawn where there are several."""
    own = overview([run.folder for run in grid.runs], simultaneous=simultaneous)
    return [*own, *_prompts(grid), *_languages(grid)]


def _prompts(grid: GridResults) -> Iterator[Figure]:
    rows: dict[str, list[PromptWinRate]] = {}
    for each in _drawn_lines(grid) if grid.several("prompt") else ():
        line = each.line
        row = PromptWinRate(
            **{name: getattr(line, name) for name in ("model", "task", "attribution", "win_rate")},
            prompt=each.run.prompt,
            **parts.ends(line.win_rate_ci),
        )
        rows.setdefault(line.operator, []).append(row)
    return (_about(prompt_sensitivity(own), operator) for operator, own in rows.items())


def _languages(grid: GridResults) -> Iterator[Figure]:
    """Return one figure for every attribution, with the first of a task's prompts."""
    lines = _drawn_lines(grid) if grid.several("language") else []
    first = {(each.run.model, each.run.task): each.run.prompt for each in reversed(lines)}
    rows: dict[str, list[LanguageWinRate]] = {}
    for run, line in ((each.run, each.line) for each in lines):
        if first[run.model, run.task] == run.prompt:
            row = LanguageWinRate(
                model=run.model,
                language=f"{run.task} ({run.language})",
                operator=line.operator,
                win_rate=line.win_rate,
                word=word_of_line(line) or parts.grey_name(line.attribution),
            )
            rows.setdefault(line.attribution, []).append(row)
    return (_about(language_heatmap(own), attribution) for attribution, own in rows.items())


def _drawn_lines(grid: GridResults) -> list[GridLine[SummaryLine]]:
    """Return the lines under single operators, and of the first k, direction and null, where there are several."""
    found = [each for each in grid.configurations if each.line.win_rate is not None and each.line.operator != ALL]
    for name in ("direction", "null", "k"):
        values = [getattr(each.line, name) for each in found]
        chosen = next((value for value in values if value is not None), None)
        found = [each for each, value in zip(found, values, strict=True) if value in (chosen, None)]
    return found


def _about(figure: Figure, subject: str) -> Figure:
    return replace(figure, name=f"{figure.name}-{subject}", title=f"{figure.title}: {subject}")
