"""Human rationales as marks on units, how well a rationale fits them, and how well a random one would."""

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from ice_eval import stats
from ice_eval.rationales import Units
from ice_eval.records import PerUnit
from ice_eval.results import InputRow
from ice_eval.seeding import rng_for

Marks = NDArray[np.bool_]
"""Which units a person marked, (n,)."""
HUMAN = "human"
"""The attribution that is made of the marks, and so is no test of them."""
MATCH = 0.5
"""Intersection over union from which on a rationale counts as the human one."""


def marks_of(row: InputRow) -> Marks:
    """The units with at least one character that a person marked."""
    return np.array(
        [
            any(mark.field == unit.field and mark.start < unit.end and unit.start < mark.end for mark in row.human)
            for unit in row.spans
        ],
        dtype=bool,
    )


def tells_units_apart(marks: Marks) -> bool:
    """Whether some units are marked and some are not; no attribution is right or wrong otherwise."""
    return bool(marks.any() and not marks.all())


def overlap(n_both: float, n_first: int, n_second: int) -> float:
    """Intersection over union of two sets that share `n_both` units."""
    return n_both / (n_first + n_second - n_both)


def iou(rationale: Units, marks: Marks) -> float:
    """Intersection over union of the rationale and the marked units."""
    return overlap(int(marks[list(rationale)].sum()), len(rationale), int(marks.sum()))


def is_match(rationale: Units, marks: Marks) -> float:
    """1 where intersection over union reaches one half, else 0."""
    return float(iou(rationale, marks) >= MATCH)


def f1(rationale: Units, marks: Marks) -> float:
    """Harmonic mean of precision (how much of the rationale is marked) and recall (how much of the marks is in it)."""
    return 2 * int(marks[list(rationale)].sum()) / (len(rationale) + int(marks.sum()))


def average_precision(vector: PerUnit, marks: Marks) -> float:
    """Area under the curve of precision over recall, when units are taken from the highest number down.

    `sum_g t_g / h * T_g / c_g`: the g-th group of equal numbers holds `t_g` of the h marked units, and up to its end
    at place `c_g` there are `T_g`. The value is scikit-learn's, whose checks of every call take longer than all else
    that is asked of an example.
    """
    groups, counts = _groups(vector)
    marked = np.bincount(groups, weights=marks)
    return float((marked * np.cumsum(marked) / np.cumsum(counts)).sum() / marks.sum())


def chance_iou(n_units: int, size: int, n_marked: int) -> float:
    """Expected intersection over union of a random set of that size."""
    return sum(p * overlap(both, size, n_marked) for both, p in _shared(n_units, size, n_marked))


def chance_match(n_units: int, size: int, n_marked: int) -> float:
    """Probability that a random set of that size has an intersection over union of one half or more."""
    return sum(p for both, p in _shared(n_units, size, n_marked) if overlap(both, size, n_marked) >= MATCH)


def chance_f1(n_units: int, size: int, n_marked: int) -> float:
    """Expected F1 of a random set of that size."""
    return 2 * (size * n_marked / n_units) / (size + n_marked)


def chance_average_precision(vector: PerUnit, marks: Marks) -> float:
    """Expected average precision if the same numbers belonged to units in random order.

    Taken from the highest number down, the g-th group of equal numbers holds `m_g` units and ends at place `c_g`:
    `sum_g m_g / (c_g n) * (1 + (c_g - 1)(h - 1) / (n - 1))` with h of n units marked. That is h/n where all numbers are
    equal, and more where they differ: h/n alone is too low a yardstick for short texts.
    """
    n, n_marked = marks.size, int(marks.sum())
    _, counts = _groups(vector)
    ends = np.cumsum(counts)
    return math.fsum(counts / (ends * n) * (1 + (ends - 1) * (n_marked - 1) / (n - 1)))


def _groups(vector: PerUnit) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The place of every unit's number among the different numbers, from the highest down, and how many share it."""
    _, groups, counts = np.unique(-vector, return_inverse=True, return_counts=True)
    return groups, counts


@lru_cache(maxsize=4096)
def _shared(n_units: int, size: int, n_marked: int) -> tuple[tuple[int, float], ...]:
    """How many marked units a random set may hold, and with what probability."""
    counts = np.arange(max(0, size + n_marked - n_units), min(size, n_marked) + 1)
    probabilities = hypergeom.pmf(counts, n_units, n_marked, size)
    return tuple(zip(counts.tolist(), probabilities.tolist(), strict=True))


class Overlap(NamedTuple):
    """Overlap of one rationale with the human one, and its win rate."""

    overlap: float
    win_rate: float
    group: Hashable | None
    """Examples that share a passage share a group."""


def overlap_correlation(points: Sequence[Overlap]) -> stats.Correlation:
    """Return Pearson's r of overlap and win rate over examples, with an interval that allows for groups."""
    x, y = np.array([point.overlap for point in points]), np.array([point.win_rate for point in points])
    groups = [(index, None) if point.group is None else (None, point.group) for index, point in enumerate(points)]
    return stats.correlate(x, y, rng=rng_for(0, "plausibility"), groups=groups)
