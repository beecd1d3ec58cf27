"""The figures of a grid."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ice_eval.analysis.across import GridResults, Line
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
from ice_eval.results.outcomes import ALL


def write_grid_figures(grid: GridResults, folder: Path) -> list[FigureFiles]:
    """The win-rate heatmap and what else is drawn from summaries; prompts and languages where there are several."""
    drawn = [*overview([run.folder for run in grid.runs]), *_prompts(grid), *_languages(grid)]
    return write_figures(drawn, folder)


def _prompts(grid: GridResults) -> Iterator[Figure]:
    """One figure for every operator, as there is no place for a second one."""
    lines = _lines(grid) if grid.several("prompt") else []
    for operator in dict.fromkeys(line["operator"] for line in lines):
        rows = [
            PromptWinRate(
                model=line["model"],
                task=line["task"],
                attribution=line["attribution"],
                prompt=line["prompt"],
                win_rate=line["win_rate"],
                low=None if line["win_rate_ci"] is None else line["win_rate_ci"][0],
                high=None if line["win_rate_ci"] is None else line["win_rate_ci"][1],
            )
            for line in lines
            if line["operator"] == operator
        ]
        yield _about(prompt_sensitivity(rows), operator)


def _languages(grid: GridResults) -> Iterator[Figure]:
    """One figure for every attribution; of a task with several prompts the first."""
    lines = _lines(grid) if grid.several("language") else []
    first = {(line["model"], line["task"]): line["prompt"] for line in reversed(lines)}
    for attribution in dict.fromkeys(line["attribution"] for line in lines):
        rows = [
            LanguageWinRate(
                model=line["model"],
                language=f"{line['task']} ({line['language']})",
                operator=line["operator"],
                win_rate=line["win_rate"],
            )
            for line in lines
            if line["attribution"] == attribution and first[line["model"], line["task"]] == line["prompt"]
        ]
        yield _about(language_heatmap(rows), attribution)


def _lines(grid: GridResults) -> list[Line]:
    """Under single operators, and of the first k, direction and null, where there are several."""
    found = [line for line in grid.configurations if line["win_rate"] is not None and line["operator"] != ALL]
    for name in ("direction", "null", "k"):
        chosen = next((line[name] for line in found if line[name] is not None), None)
        found = [line for line in found if line[name] in (chosen, None)]
    return found


def _about(figure: Figure, what: str) -> Figure:
    return replace(figure, name=f"{figure.name}-{what}", title=f"{figure.title}: {what}")
