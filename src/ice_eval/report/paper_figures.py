"""The paper's heatmaps and its prompts, drawn from the published tables as any grid is drawn."""

from collections.abc import Iterator
from dataclasses import replace

from ice_eval.analysis.paper import english_cells, paper_table, prompt_cells
from ice_eval.report.figures import (
    Figure,
    LanguageWinRate,
    PromptWinRate,
    WinRate,
    language_heatmap,
    prompt_sensitivity,
    win_rate_panels,
)


def paper_figures() -> list[Figure]:
    """The English heatmap in four panels (the paper's figure 2), the languages (figure 3), and the prompts."""
    drawn = {
        "paper-english": win_rate_panels(_english()),
        "paper-languages": language_heatmap(_languages()),
        "paper-prompts": prompt_sensitivity(_prompts()),
    }
    return [replace(figure, name=name, title=f"{figure.title}, as published") for name, figure in drawn.items()]


def _english() -> Iterator[WinRate]:
    for cell in english_cells():
        yield WinRate(
            model=cell.model,
            dataset=cell.task,
            attribution=cell.attribution,
            operator=cell.operator,
            win_rate=cell.win_rate,
        )


def _languages() -> Iterator[LanguageWinRate]:
    for row in paper_table("multilingual").rows:
        win_rate = float(row["win_rate"]) / 100 if row["win_rate"] else None
        yield LanguageWinRate(model=row["model"], language=row["task"], operator=row["operator"], win_rate=win_rate)


def _prompts() -> Iterator[PromptWinRate]:
    for cell in prompt_cells():
        yield PromptWinRate(
            model=cell.model,
            task=cell.task,
            attribution=cell.attribution,
            prompt=cell.prompt,
            win_rate=cell.win_rate,
        )
