"""Compactness: share of units that hold the mass of an attribution."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval.analysis._runs import explained, groups_of, mean_with_interval, vectors_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder
from ice_eval.seeding import rng_for
from ice_eval.table import Column

_COLUMNS = (
    Column("attribution", "attribution", "text"),
    Column("n", "n", "count"),
    Column("half_mass", "units for half", "percent"),
    Column("half_mass_ci", "95 % CI", "percent interval"),
    Column("entropy", "entropy", "number"),
    Column("entropy_ci", "95 % CI of entropy", "interval"),
)


def half_mass(vector: PerUnit) -> float:
    """Return the smallest share of units that holds at least half of the sum of magnitudes."""
    magnitudes = np.sort(np.abs(vector))[::-1]
    sums = np.cumsum(magnitudes)
    # Of equal units half must not become one more than half by round-off.
    return float(1 + np.searchsorted(sums, 0.5 * sums[-1] * (1 - 1e-12))) / vector.size


def entropy(vector: PerUnit) -> float:
    """Return the entropy of the magnitudes over that of equal ones: 0 where one unit has all, 1 where all are alike."""
    shares = np.abs(vector) / np.abs(vector).sum()
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum() / np.log(vector.size))


@measure("compactness")
@dataclass(frozen=True, kw_only=True)
class Compactness(Measure):
    """How few units hold half of an attribution's mass, and the entropy of that mass."""

    needs = "attribution vectors"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        rows = list(explained(folder))
        vectors = {
            name: [each for each in vectors_of(name, rows, config) if each[1].any()] for name in config.attributions
        }
        lines = tuple(_line(name, used, config.seed) for name, used in vectors.items() if used)
        if not lines:
            return Missing("no example has an attribution with two units or more that are not all 0")
        return Found((Part("Compactness", _COLUMNS, tuple(lines)),))


def _line(name: str, used: list[tuple[InputRow, PerUnit]], seed: int) -> dict[str, Any]:
    line: dict[str, Any] = {"attribution": name, "n": len(used)}
    groups = groups_of([row for row, _ in used])
    for field, value in (("half_mass", half_mass), ("entropy", entropy)):
        values = np.array([value(vector) for _, vector in used])
        rng = rng_for(seed, "compactness", field, name)
        line |= mean_with_interval(values, rng=rng, groups=groups, field=field)
    return line
