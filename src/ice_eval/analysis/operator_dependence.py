"""How far a grid of win rates depends on the operator, and which explanations are worse than random."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.analysis.grid import POSITIVE_EVIDENCE, Cell, Pair, paired
from ice_eval.stats import taxonomy


@dataclass(frozen=True)
class OperatorDependence:
    """The same configurations under two operators."""

    operators: tuple[str, str]
    pairs: tuple[Pair, ...]
    """Configurations that were evaluated under both."""
    crossings: tuple[Pair, ...]
    """Those that the operators put on opposite sides of the threshold."""

    @property
    def gaps(self) -> list[float]:
        """Win rate under the first operator less that under the second, of each configuration."""
        return [pair.gap for pair in self.pairs]

    @property
    def first_exceeds(self) -> float | None:
        """Share of the configurations with a higher win rate under the first operator."""
        return float(np.mean([gap > 0 for gap in self.gaps])) if self.pairs else None

    @property
    def median_gap(self) -> float | None:
        return float(np.median(self.gaps)) if self.pairs else None

    @property
    def mean_gap(self) -> float | None:
        return float(np.mean(self.gaps)) if self.pairs else None

    @property
    def widest(self) -> Pair | None:
        """The configuration that the operators differ most about, in either direction."""
        return max(self.pairs, key=lambda pair: abs(pair.gap), default=None)


def operator_dependence(
    cells: Iterable[Cell], *, operators: tuple[str, str] = ("delete", "infill"), threshold: float = POSITIVE_EVIDENCE
) -> OperatorDependence:
    """Compare two operators over all configurations of a grid that have both.

    Point estimates only: whether a single crossing is more than sampling noise is in a run's own `agreement`.

    Raises:
        DataError: Two cells are told apart by nothing but their win rate.
    """
    first, second = operators
    pairs = paired(cells, over="operator", first=first, second=second)
    return OperatorDependence(operators, tuple(pairs), tuple(pair for pair in pairs if pair.crosses(threshold)))


def anti_faithful(cells: Sequence[Cell]) -> list[Cell]:
    """The explanations that random sets of equal size beat more often than not, the worst first."""
    found = (cell for cell in cells if taxonomy(cell.win_rate) == "anti-faithful")
    return sorted(found, key=lambda cell: cell.win_rate)
