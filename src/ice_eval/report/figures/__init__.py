"""Figures of runs and of tables, each one Vega-Lite specification for the page and for paper.

Importing this package needs altair; writing files needs vl-convert too.
"""

from ice_eval.errors import require

require("altair", install="altair", purpose="to draw figures")

from ice_eval.report.figures.figure import Figure, FigureFiles, Theme, theme, write_figures  # noqa: E402
from ice_eval.report.figures.runs import figures, overview  # noqa: E402
from ice_eval.report.figures.tables import (  # noqa: E402
    ChainOfThought,
    LanguageWinRate,
    Plausibility,
    PromptWinRate,
    WinRate,
    chain_of_thought_scatter,
    language_heatmap,
    plausibility_scatter,
    prompt_sensitivity,
    win_rate_panels,
)

__all__ = [
    "ChainOfThought",
    "Figure",
    "FigureFiles",
    "LanguageWinRate",
    "Plausibility",
    "PromptWinRate",
    "Theme",
    "WinRate",
    "chain_of_thought_scatter",
    "figures",
    "language_heatmap",
    "overview",
    "plausibility_scatter",
    "prompt_sensitivity",
    "theme",
    "win_rate_panels",
    "write_figures",
]
