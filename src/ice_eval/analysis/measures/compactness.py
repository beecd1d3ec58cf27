"""How few units an attribution speaks of."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval.analysis._runs import explained, groups_of, mean_with_interval
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
    """Smallest share of units that holds at least half of the sum of magnitudes."""
    magnitudes = np.sort(np.abs(vector))[::-1]
    sums = np.cumsum(magnitudes)
    # Of equal units half must not become one more than half by round-off.
    return float(1 + np.searchsorted(sums, 0.5 * sums[-1] * (1 - 1e-12))) / vector.size


def entropy(vector: PerUnit) -> float:
    """Entropy of the magnitudes as shares of their sum, over that of equal shares: 0 one unit, 1 all alike."""
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
        lines = [_line(name, rows, config.seed) for name in config.attributions]
        if not any(line["n"] for line in lines):
            return Missing("no example has an attribution with two units or more that are not all 0")
        return Found((Part("Compactness", _COLUMNS, tuple(line for line in lines if line["n"])),))


def _line(name: str, rows: list[InputRow], seed: int) -> dict[str, Any]:
    used = [row for row in rows if name in row.attributions and _has_mass(row.attributions[name])]
    line: dict[str, Any] = {"attribution": name, "n": len(used)}
    if not used:
        return line
    for field, value in (("half_mass", half_mass), ("entropy", entropy)):
        values = np.array([value(np.asarray(row.attributions[name])) for row in used])
        rng = rng_for(seed, "compactness", field, name)
        line |= mean_with_interval(values, rng=rng, groups=groups_of(used), field=field)
    return line


def _has_mass(vector: tuple[float, ...]) -> bool:
    return len(vector) > 1 and any(vector) and bool(np.isfinite(vector).all())
