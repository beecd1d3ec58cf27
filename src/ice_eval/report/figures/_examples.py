"""Single examples of a run, gathered before they are drawn: a figure holds bins and quantiles, never 2,000 points."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.records import Direction
from ice_eval.report.figures._runs import named
from ice_eval.report.tables import share
from ice_eval.results import ExampleOutcome, RunFolder, SummaryLine

USUAL_K = 0.2
_COLUMNS = ("m", "win_rate", "p_value", "effect_size")
"""What figures are drawn from."""


@dataclass(frozen=True)
class Examples:
    """The examples of one run at one k, direction and null."""

    folder: RunFolder
    setting: str
    """In words."""
    sequential: bool
    """Whether each example took as many random sets as its tests needed."""
    _at: "_Setting"
    _columns: Mapping[tuple[str, str], Mapping[str, NDArray[np.float64]]]

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Attributions and operators, in the order of the summary."""
        return list(self._columns)

    @property
    def n_bins(self) -> int:
        """Of a histogram: few random sets allow few win rates, and narrow bins would show gaps that mean nothing."""
        return 20 if max(columns["m"].max() for columns in self._columns.values()) >= 40 else 10

    def count(self, cell: tuple[str, str]) -> int:
        """Examples; those that failed are left out."""
        return self._columns[cell]["m"].size

    def column(self, cell: tuple[str, str], name: str) -> NDArray[np.float64]:
        """Of the examples that have the value."""
        values = self._columns[cell][name]
        return values[~np.isnan(values)]

    def lines(self) -> Iterator[ExampleOutcome]:
        """The lines of these examples, as they stand in the folder."""
        return _lines(self.folder, self._at)


def examples_of(folder: RunFolder, configurations: Sequence[SummaryLine]) -> Examples | None:
    """The examples at k = 0.2 where the run has it, else at its first k; under its first direction and null.

    Rationales that have a size of their own are there whatever k.
    """
    sizes = [line.k for line in configurations if line.k is not None]
    k = USUAL_K if USUAL_K in sizes else next(iter(sizes), None)
    first = configurations[0]
    setting = _Setting(k, first.direction, first.null)
    found: dict[tuple[str, str], dict[str, array[float]]] = {
        (line.attribution, line.operator): {name: array("d") for name in _COLUMNS}
        for line in configurations
        if setting.holds(line)
    }
    for line in _lines(folder, setting):
        for name, values in found[line.attribution, line.operator].items():
            value = getattr(line, name)
            values.append(np.nan if value is None else value)
    columns = {
        cell: {name: np.array(values) for name, values in gathered.items()}
        for cell, gathered in found.items()
        if gathered["m"]
    }
    words = f"{'own sizes' if k is None else f'k = {share(k)}'}, {setting.direction}"
    if setting.null != SIZE:
        words += f", null: {setting.null}"
    sequential = folder.manifest().config.adaptive == "examples"
    return Examples(folder, words, sequential, setting, columns) if columns else None


def _lines(folder: RunFolder, setting: "_Setting") -> Iterator[ExampleOutcome]:
    return (named(line) for line in folder.examples() if line.error is None and setting.holds(line))


class _Setting(NamedTuple):
    """The configurations that are drawn."""

    k: Share | None
    direction: Direction
    null: str

    def holds(self, line: SummaryLine | ExampleOutcome) -> bool:
        """Whether a line is of this setting; rationales with sizes of their own are of any k."""
        return line.k in (self.k, None) and (line.direction, line.null) == (self.direction, self.null)


def shares(values: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Share of values in [0, 1] in every bin; a value on a limit belongs to the bin below, 0 to the first."""
    places = np.clip(np.ceil(values * n_bins - 1e-9).astype(int) - 1, 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins) / max(values.size, 1)
