"""A grid of win rates, of a user's runs or of published tables, and its cells in pairs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from ice_eval.errors import DataError
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.results import SummaryLine
from ice_eval.stats import WEAKLY_FAITHFUL, reaches

TextLength = Literal["short", "long"]

POSITIVE_EVIDENCE = WEAKLY_FAITHFUL
"""Win rate from which on the paper speaks of evidence for an explanation."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One win rate, and what it was measured on."""

    model: str
    task: str
    attribution: str
    operator: str
    win_rate: float
    """A fraction, as everywhere."""
    k: Share | None = 0.2
    """None for rationales that have a size of their own."""
    direction: str = "sufficiency"
    null: str = SIZE
    prompt: str = ""
    """Which prompt, where several were tried."""
    text_length: TextLength | None = None
    n: int | None = None
    """Examples, where known."""

    def key(self, *, without: str = "") -> tuple[object, ...]:
        """What tells cells of a grid apart, less one field."""
        return tuple(getattr(self, name) for name in _IDENTITY if name != without)


_IDENTITY = tuple(field.name for field in fields(Cell) if field.name not in {"win_rate", "text_length", "n"})


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in one thing."""

    first: Cell
    second: Cell

    @property
    def gap(self) -> float:
        """Win rate of the first less that of the second."""
        return self.first.win_rate - self.second.win_rate

    def crosses(self, threshold: float = POSITIVE_EVIDENCE) -> bool:
        """Whether the two lie on opposite sides; the threshold itself belongs to the upper one."""
        return reaches(self.first.win_rate, threshold) != reaches(self.second.win_rate, threshold)


def cells_of(
    lines: Iterable[SummaryLine], *, prompt: str = "", text_lengths: Mapping[str, TextLength] | None = None
) -> list[Cell]:
    """Return the cells of a run.

    Args:
        lines: The configurations of its summary; those without an example are skipped.
        prompt: Name of its prompt, where several were tried.
        text_lengths: Task -> whether its texts are short or long; a summary does not say.
    """
    lengths = text_lengths or {}
    return [
        Cell(
            model=line.model,
            task=line.task,
            attribution=line.attribution,
            operator=line.operator,
            win_rate=line.win_rate,
            k=line.k,
            direction=line.direction,
            null=line.null,
            prompt=prompt,
            text_length=lengths.get(line.task),
            n=line.n,
        )
        for line in lines
        if line.win_rate is not None
    ]


def paired(cells: Iterable[Cell], *, over: str, first: str, second: str) -> list[Pair]:
    """All pairs of cells that differ in the field `over` alone, where it is `first` in one and `second` in the other.

    Raises:
        DataError: Two cells are told apart by nothing but their win rate.
    """
    found = grouped(cells, over=over)
    by_value = ({getattr(cell, over): cell for cell in group} for group in found)
    return [Pair(values[first], values[second]) for values in by_value if first in values and second in values]


def grouped(cells: Iterable[Cell], *, over: str) -> list[list[Cell]]:
    """Cells that differ in the field `over` alone, together, in the order in which they were given.

    Raises:
        DataError: Two cells are told apart by nothing but their win rate.
    """
    several = list(cells)
    _refuse_doubles(several)
    groups: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in several:
        groups[cell.key(without=over)].append(cell)
    return list(groups.values())


def _refuse_doubles(cells: Sequence[Cell]) -> None:
    key, count = next(iter(Counter(cell.key() for cell in cells).most_common(1)), (None, 1))
    if key is not None and count > 1:
        raise DataError(
            f"{count} win rates are given for {', '.join(str(part) for part in key if part != '')}; "
            "one per configuration is expected: leave out the others, or give their runs other names."
        )
