"""Figures of runs and of tables, each one Vega-Lite specification for the page and for paper.

Importing this package needs altair, and says how to get it; writing files needs vl-convert too.
"""

from ice_eval._extras import require

require("altair", install="ice-eval[figures]", purpose="to draw figures")

from ice_eval.report.figures._base import Figure, Theme, theme  # noqa: E402
from ice_eval.report.figures._figures import figures  # noqa: E402

__all__ = ["Figure", "Theme", "figures", "theme"]
