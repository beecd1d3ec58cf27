"""How far a win rate moves with a choice that should not matter much: the size of a rationale, or the prompt."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ice_eval.analysis.grid import Cell, grouped


@dataclass(frozen=True)
class Spread:
    """The win rates of one configuration over all values of one choice."""

    cells: tuple[Cell, ...]
    """In the order of the choice."""

    @property
    def lowest(self) -> Cell:
        return min(self.cells, key=lambda cell: cell.win_rate)

    @property
    def highest(self) -> Cell:
        return max(self.cells, key=lambda cell: cell.win_rate)

    @property
    def width(self) -> float:
        return self.highest.win_rate - self.lowest.win_rate

    @property
    def increases(self) -> bool:
        """Whether every value of the choice gives a higher win rate than the one before it."""
        rates = [cell.win_rate for cell in self.cells]
        return all(low < high for low, high in zip(rates, rates[1:], strict=False))


def spreads(cells: Iterable[Cell], *, over: Literal["k", "prompt"]) -> list[Spread]:
    """One spread per configuration that was evaluated with at least two values of the choice, the widest first.

    Sizes that are no share have no place among shares, and are left out.

    Raises:
        DataError: Two cells are told apart by nothing but their win rate.
    """
    ordered = [cell for cell in cells if over == "prompt" or isinstance(cell.k, float)]
    groups = (sorted(group, key=lambda cell: getattr(cell, over)) for group in grouped(ordered, over=over))
    return sorted((Spread(tuple(group)) for group in groups if len(group) > 1), key=lambda spread: -spread.width)
