"""Single examples of a run, gathered before they are drawn: a figure holds bins and quantiles, never 2,000 points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.report.figures._runs import Line, named
from ice_eval.report.tables import share
from ice_eval.results import RunFolder

USUAL_K = 0.2


@dataclass(frozen=True)
class Examples:
    """The examples of one run at one k, direction and null."""

    setting: str
    """In words."""
    lines: Mapping[tuple[str, str], Sequence[Line]]
    """By attribution and operator, in the order of the summary; examples that failed are left out."""
    sequential: bool
    """Whether each example took as many random sets as its tests needed."""

    @property
    def n_bins(self) -> int:
        """Of a histogram: few random sets allow few win rates, and narrow bins would show gaps that mean nothing."""
        return 20 if max(line["m"] for lines in self.lines.values() for line in lines) >= 40 else 10

    def column(self, cell: tuple[str, str], name: str) -> NDArray[np.float64]:
        """Of the lines that have the value."""
        return np.array([line[name] for line in self.lines[cell] if line[name] is not None], dtype=np.float64)


def examples_of(folder: RunFolder, configurations: Sequence[Line]) -> Examples | None:
    """The examples at k = 0.2 where the run has it, else at its first k; under its first direction and null.

    Rationales that have a size of their own are there whatever k.
    """
    sizes = [line["k"] for line in configurations if line["k"] is not None]
    k = USUAL_K if USUAL_K in sizes else next(iter(sizes), None)
    first = configurations[0]
    setting: dict[str, Any] = {"k": k, "direction": first["direction"], "null": first["null"]}
    found: dict[tuple[str, str], list[Line]] = {
        (line["attribution"], line["operator"]): [] for line in configurations if _matches(line, setting)
    }
    for line in map(named, folder.examples()):
        if "error" not in line and _matches(line, setting):
            found[line["attribution"], line["operator"]].append(line)
    found = {cell: lines for cell, lines in found.items() if lines}
    words = f"{'own sizes' if k is None else f'k = {share(k)}'}, {setting['direction']}"
    if setting["null"] != "size":
        words += f", null: {setting['null']}"
    sequential = folder.manifest()["config"].get("adaptive") == "examples"
    return Examples(words, found, sequential) if found else None


def _matches(line: Line, setting: Mapping[str, Any]) -> bool:
    return all(
        line.get(name, "size") == value or (name == "k" and line["k"] is None) for name, value in setting.items()
    )


def shares(values: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Share of values in [0, 1] in every bin; a value on a limit belongs to the bin below, 0 to the first."""
    places = np.clip(np.ceil(values * n_bins - 1e-9).astype(int) - 1, 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins) / max(values.size, 1)
