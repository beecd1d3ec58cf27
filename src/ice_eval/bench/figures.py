"""The figures of a grid."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ice_eval.analysis import GridLine, GridResults
from ice_eval.report.figures import (
    Figure,
    FigureFiles,
    LanguageWinRate,
    PromptWinRate,
    language_heatmap,
    overview,
    prompt_sensitivity,
    write_figures,
)
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL


def write_grid_figures(grid: GridResults, folder: Path) -> list[FigureFiles]:
    """The win-rate heatmap and what else is drawn from summaries; prompts and languages where there are several."""
    drawn = [*overview([run.folder for run in grid.runs]), *_prompts(grid), *_languages(grid)]
    return write_figures(drawn, folder)


def _prompts(grid: GridResults) -> Iterator[Figure]:
    """One figure for every operator, as there is no place for a second one."""
    lines = _lines(grid) if grid.several("prompt") else []
    for operator in dict.fromkeys(each.line.operator for each in lines):
        rows = [
            PromptWinRate(
                model=each.line.model,
                task=each.line.task,
                attribution=each.line.attribution,
                prompt=each.run.prompt,
                win_rate=each.line.win_rate,
                low=None if each.line.win_rate_ci is None else each.line.win_rate_ci.low,
                high=None if each.line.win_rate_ci is None else each.line.win_rate_ci.high,
            )
            for each in lines
            if each.line.operator == operator and each.line.win_rate is not None
        ]
        yield _about(prompt_sensitivity(rows), operator)


def _languages(grid: GridResults) -> Iterator[Figure]:
    """One figure for every attribution; of a task with several prompts the first."""
    lines = _lines(grid) if grid.several("language") else []
    first = {(each.run.model, each.run.task): each.run.prompt for each in reversed(lines)}
    for attribution in dict.fromkeys(each.line.attribution for each in lines):
        rows = [
            LanguageWinRate(
                model=each.run.model,
                language=f"{each.run.task} ({each.run.language})",
                operator=each.line.operator,
                win_rate=each.line.win_rate,
            )
            for each in lines
            if each.line.attribution == attribution
            and first[each.run.model, each.run.task] == each.run.prompt
            and each.line.win_rate is not None
        ]
        yield _about(language_heatmap(rows), attribution)


def _lines(grid: GridResults) -> list[GridLine[SummaryLine]]:
    """Under single operators, and of the first k, direction and null, where there are several."""
    found = [each for each in grid.configurations if each.line.win_rate is not None and each.line.operator != ALL]
    for name in ("direction", "null", "k"):
        values = [getattr(each.line, name) for each in found]
        chosen = next((value for value in values if value is not None), None)
        found = [each for each, value in zip(found, values, strict=True) if value in (chosen, None)]
    return found


def _about(figure: Figure, what: str) -> Figure:
    return replace(figure, name=f"{figure.name}-{what}", title=f"{figure.title}: {what}")
