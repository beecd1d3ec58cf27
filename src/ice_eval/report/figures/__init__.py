"""Figures of runs and tables as Vega-Lite specifications; needs altair, and vl-convert to write files."""

from ice_eval.errors import require

require("altair", install="altair", purpose="to draw figures")

from ice_eval.report.figures.chains import chain_figures  # noqa: E402
from ice_eval.report.figures.examples import example_nulls  # noqa: E402
from ice_eval.report.figures.figure import Figure, FigureFiles, Theme, theme, write_figures  # noqa: E402
from ice_eval.report.figures.runs import figures, grid_figures, ranked  # noqa: E402
from ice_eval.report.figures.tables import (  # noqa: E402
    ChainOfThought,
    LanguageWinRate,
    Plausibility,
    PromptWinRate,
    WinRate,
    chain_of_thought_scatter,
    language_heatmap,
    paper_figures,
    plausibility_scatter,
    prompt_sensitivity,
    win_rate_panels,
)

__all__ = [
    "ChainOfThought", "Figure", "FigureFiles", "LanguageWinRate", "Plausibility", "PromptWinRate", "Theme", "WinRate",
    "chain_figures", "chain_of_thought_scatter", "example_nulls", "figures", "grid_figures", "language_heatmap",
    "paper_figures", "plausibility_scatter", "prompt_sensitivity", "ranked", "theme", "win_rate_panels",
    "write_figures",
]  # fmt: skip
