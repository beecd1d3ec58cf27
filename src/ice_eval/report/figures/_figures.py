"""All figures that apply to some runs."""

from collections.abc import Sequence

from ice_eval.report.figures._base import Figure
from ice_eval.report.figures._runs import runs_of
from ice_eval.report.figures.heatmap import heatmap
from ice_eval.results import RunFolder

_OF_SUMMARIES = (heatmap,)


def figures(folders: Sequence[RunFolder]) -> list[Figure]:
    """The figures of some runs; those that their data do not allow are left out.

    Raises:
        ConfigError: A run is not finished.
    """
    runs = runs_of(folders)
    return [figure for draw in _OF_SUMMARIES if (figure := draw(runs)) is not None]
