"""Tables of rates that were measured by simulation, before and after a change."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_SIZES = 3
"""A table of a summary leaves sizes out if there are more."""
_SLACK = 1e-12


@dataclass(frozen=True)
class Cell:
    """One measured rate, before and after; None where there is none."""

    before: float | None
    after: float | None
    n: int
    """Number of simulated data sets."""


@dataclass(frozen=True)
class Line:
    """One case of a claim, for several sizes."""

    case: str
    cells: dict[int, Cell]
    most: float | None = None
    """Nominal rate of an error."""
    least: float | None = None
    """Nominal rate of a success, such as coverage."""

    @property
    def error(self) -> float:
        """Largest Monte Carlo standard error: at the nominal rate, else at the measured one."""
        nominal = self.most if self.most is not None else self.least
        rates = [(cell.after or 0.0) if nominal is None else nominal for cell in self.cells.values()]
        return max(_error(rate, cell.n) for rate, cell in zip(rates, self.cells.values(), strict=True))

    def fails(self, size: int) -> bool:
        """Return True if the rate of `ice_eval.stats` is worse than nominal by more than three standard errors."""
        cell = self.cells[size]
        if cell.after is None:
            return False
        if self.most is not None:
            return cell.after > self.most + 3 * _error(self.most, cell.n) + _SLACK
        return self.least is not None and cell.after < self.least - 3 * _error(self.least, cell.n) - _SLACK

    @property
    def failures(self) -> list[int]:
        return [size for size in self.cells if self.fails(size)]


@dataclass(frozen=True)
class Claim:
    """A table: what is claimed, and what was measured."""

    title: str
    lines: list[Line]
    sizes: str = "N"
    """Meaning of the columns."""
    note: str = ""
    in_percent: bool = True

    @property
    def failures(self) -> list[str]:
        return [f"{self.title}: {line.case}, {self.sizes} = {size}" for line in self.lines for size in line.failures]

    def markdown(self) -> str:
        sizes = sorted({size for line in self.lines for size in line.cells})
        head = ["case", "nominal", "s.e.", "", *(f"{self.sizes} = {size}" for size in sizes)]
        rows = [head, ["---"] * 4 + ["--:"] * len(sizes)]
        for line in self.lines:
            sense, nominal = ("≤", line.most) if line.most is not None else ("≥", line.least)
            about = [line.case, "" if nominal is None else f"{sense} {percent(nominal)}"]
            about.append(percent(line.error, digits=2) if self.in_percent else "")
            before = [self._text(line.cells[size].before) if size in line.cells else "" for size in sizes]
            after = [self._text(line.cells[size].after) if size in line.cells else "" for size in sizes]
            marked = [
                f"**{text} fails**" if size in line.failures else text for size, text in zip(sizes, after, strict=True)
            ]
            if any(cell.before is not None for cell in line.cells.values()):
                rows.append([*about, "before", *before])
                about = ["", "", ""]
            rows.append([*about, "after", *marked])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return "\n\n".join(part for part in (f"## {self.title}", self.note, table) if part)

    def summary(self) -> str:
        """Return what a page says beside the overview: the note, and lines without a nominal rate, before → after."""
        lines = [line for line in self.lines if line.most is None and line.least is None]
        if not lines:
            return f"**{self.title}.** {self.note}"
        sizes = sorted({size for line in lines for size in line.cells})
        sizes = sizes[:: math.ceil(len(sizes) / MOST_SIZES)]
        head = ["in %" if self.in_percent else "", f"{self.sizes} = {sizes[0]}", *map(str, sizes[1:])]
        rows = [[line.case, *(self._change(line.cells.get(size)) for size in sizes)] for line in lines]
        table = [f"| {' | '.join(row)} |" for row in (head, *rows)]
        table.insert(1, f"|---|{'--:|' * len(sizes)}")
        return f"## {self.title}\n\n{self.note}\n\n" + "\n".join(table)

    def _change(self, cell: Cell | None) -> str:
        rates = [] if cell is None else [rate for rate in (cell.before, cell.after) if rate is not None]
        return " → ".join(self._text(rate).removesuffix(" %") for rate in rates)

    def _text(self, rate: float | None) -> str:
        if rate is None:
            return "–"
        return percent(rate) if self.in_percent else f"{rate:.3f}"


def percent(rate: float, *, digits: int = 1) -> str:
    return f"{100 * rate:.{digits}f} %"


def _error(rate: float, n: int) -> float:
    return math.sqrt(rate * (1 - rate) / n)


def as_csv(claims: Sequence[Claim]) -> str:
    """Return every measured rate, a line each, as fractions."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["claim", "case", "size_is", "size", "at_most", "at_least", "before", "after", "data_sets", "holds"]
    )
    for claim in claims:
        for line in claim.lines:
            for size, cell in line.cells.items():
                found = (line.most, line.least, cell.before, cell.after)
                texts = ["" if rate is None else f"{rate:.6g}" for rate in found]
                judged = line.most is not None or line.least is not None
                holds = ("no" if line.fails(size) else "yes") if judged else ""
                writer.writerow([claim.title, line.case, claim.sizes, size, *texts, cell.n, holds])
    return stream.getvalue()


def overview(claims: Sequence[Claim]) -> str:
    """Return the worst rate of each kind of error, before and after."""
    rows = [["claim", "nominal", "worst before", "worst after", "s.e.", "holds"]]
    for claim in claims:
        for nominal in dict.fromkeys((line.most, line.least) for line in claim.lines):
            if nominal == (None, None):
                continue
            lines = [line for line in claim.lines if (line.most, line.least) == nominal]
            worst, sense = (max, "≤") if nominal[1] is None else (min, "≥")
            limit, texts = nominal[0] if nominal[1] is None else nominal[1], []
            for side in ("before", "after"):
                rates = [(getattr(cell, side), size) for line in lines for size, cell in line.cells.items()]
                known = [pair for pair in rates if pair[0] is not None]
                rate, size = worst(known) if known else (None, 0)
                texts.append("–" if rate is None else f"{percent(rate)} ({claim.sizes} = {size})")
            error = percent(max(line.error for line in lines), digits=2)
            holds = "**no**" if any(line.failures for line in lines) else "yes"
            rows.append([claim.title, f"{sense} {percent(limit or 0.0)}", *texts, error, holds])
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([table[0], "|---|---|---|---|---|---|", *table[1:]])
