"""Null of equally scattered sets: the same number of units in the same number of runs."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.nulls._base import Key, Null, SetClass, adjacent_units, null
from ice_eval.rationales import Units
from ice_eval.records import Encoded

_Ways = NDArray[Any]  # (runs + 1, spare + 1), whole numbers of any size; spare = units beyond the first of each run


@null("contiguity")
@dataclass(frozen=True, kw_only=True)
class Contiguity(Null):
    """Sets of as many units in as many runs of adjacent ones; a run never crosses from one field into the next."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> "Runs":
        lines = tuple(adjacent_units(item))
        starts, inside = {line.start for line in lines}, set(rationale)
        n_runs = sum(unit in starts or unit - 1 not in inside for unit in rationale)
        return Runs(lines, len(rationale), n_runs)


@dataclass(frozen=True)
class Runs(SetClass):
    """All sets of `size` units in `n_runs` runs, in one or several lines of units."""

    # The share of the first line is drawn in proportion to the number of sets with that share, then that of the second,
    # and so on.

    lines: tuple[range, ...]
    size: int
    n_runs: int

    @property
    def key(self) -> Key:
        return (sum(map(len, self.lines)), self.size, self.n_runs)

    @cached_property
    def count(self) -> int:
        return self._first[-1]

    def every(self) -> Iterator[Units]:
        return self._every(0, self.n_runs, self.size - self.n_runs)

    def _every(self, place: int, runs: int, spare: int) -> Iterator[Units]:
        if place == len(self.lines):
            yield ()
            return
        for here in np.flatnonzero(self._ways(place, runs, spare)):
            r, s = divmod(int(here), spare + 1)
            rest = list(self._every(place + 1, runs - r, spare - s))
            for head in _every_placing(self.lines[place], r + s, r):
                yield from (head + tail for tail in rest)

    def draw(self, rng: np.random.Generator) -> Units:
        runs, spare = self.n_runs, self.size - self.n_runs
        units: Units = ()
        for place, line in enumerate(self.lines):
            up_to = np.cumsum(self._ways(place, runs, spare)).tolist() if place else self._first
            r, s = divmod(bisect_right(up_to, _below(up_to[-1], rng)), spare + 1)
            if r:
                lengths = _lengths(r + s, r, rng)
                # Gaps differ, or two runs would be one: units not in the set before each run.
                gaps = sorted(rng.permutation(len(line) - r - s + 1)[:r].tolist())
                units += _placed(line, lengths, gaps)
            runs, spare = runs - r, spare - s
        return units

    def _ways(self, place: int, runs: int, spare: int) -> _Ways:
        """Count sets of the lines from `place` on with r runs and s spare units there: entry r * (spare + 1) + s."""
        here, later = self._alone[place][: runs + 1, : spare + 1], self._later[place][: runs + 1, : spare + 1]
        return np.asarray(here * later[::-1, ::-1]).ravel()

    @cached_property
    def _first(self) -> list[int]:
        return list(itertools.accumulate(self._ways(0, self.n_runs, self.size - self.n_runs)))

    @cached_property
    def _alone(self) -> list[_Ways]:
        """Number of ways in which each line holds so many runs and spare units."""
        rows, columns = range(self.n_runs + 1), range(self.size - self.n_runs + 1)
        return [
            np.array([[n_placings(len(line), r + s, r) for s in columns] for r in rows], dtype=object)
            for line in self.lines
        ]

    @cached_property
    def _later(self) -> list[_Ways]:
        """Number of ways for all lines after each one together; after the last, nothing is held in one way."""
        nothing = np.zeros_like(self._alone[-1])
        nothing[0, 0] = 1
        later = [nothing]
        for alone in self._alone[:0:-1]:
            total = np.zeros_like(alone)
            for r, s in np.argwhere(later[-1]):
                total[r:, s:] += later[-1][r, s] * alone[: len(alone) - r, : alone.shape[1] - s]
            later.append(total)
        return later[::-1]


def n_placings(n_units: int, size: int, runs: int) -> int:
    """Count the sets of `size` of `n_units` units in a line with so many runs: ways to cut times ways to place."""
    if not 0 < runs <= size <= n_units:
        return int(runs == size == 0)
    return math.comb(size - 1, runs - 1) * math.comb(n_units - size + 1, runs)


def _lengths(size: int, runs: int, rng: np.random.Generator) -> Sequence[int]:
    """Draw lengths of the runs: `size` cut at `runs - 1` of the `size - 1` places between units."""
    lengths: list[int] = np.diff([0, *sorted(rng.permutation(np.arange(1, size))[: runs - 1].tolist()), size]).tolist()
    return lengths


def _placed(line: range, lengths: Sequence[int], gaps: Sequence[int]) -> Units:
    """Return the units of the runs: before the t-th one in a set come t others and the units not in the set."""
    return tuple((np.arange(sum(lengths)) + np.repeat(gaps, lengths) + line.start).tolist())


def _every_placing(line: range, size: int, runs: int) -> Iterator[Units]:
    if not runs:
        yield ()
        return
    for cuts in itertools.combinations(range(1, size), runs - 1):
        lengths = np.diff([0, *cuts, size]).tolist()
        for gaps in itertools.combinations(range(len(line) - size + 1), runs):
            yield _placed(line, lengths, gaps)


def _below(bound: int, rng: np.random.Generator) -> int:
    """Draw an integer from 0 to `bound` - 1, all equally likely; numpy stops at 64 bits."""
    bits = bound.bit_length()
    while True:
        number = int.from_bytes(rng.bytes(bits // 8 + 1), "little") & ((1 << bits) - 1)
        if number < bound:
            return number
