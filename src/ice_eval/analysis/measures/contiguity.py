"""Contiguity: adjacency of the units of a rationale."""

from dataclasses import dataclass

import numpy as np

from ice_eval.analysis._runs import above_chance, explained, groups_of, rationales_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.rationales import Units
from ice_eval.results import RunFolder
from ice_eval.seeding import rng_for
from ice_eval.table import Column, naming

_COLUMNS = (
    *naming("attribution", "k"),
    Column("n", "n", "count"),
    Column("mean", "contiguity", "percent"),
    Column("mean_ci", "95 % CI", "percent interval"),
    Column("chance", "chance", "percent"),
    Column("above_chance", "above chance", "signed"),
    Column("above_chance_ci", "95 % CI of it", "signed interval"),
)


def contiguity(rationale: Units, fields: list[str]) -> float:
    """Return the pairs of neighbours in a rationale over the possible maximum; `fields` are those of all units."""
    pairs = sum(b - a == 1 and fields[a] == fields[b] for a, b in zip(rationale, rationale[1:], strict=False))
    return pairs / (len(rationale) - 1)


def chance_contiguity(size: int, fields: list[str]) -> float:
    """Return the expected contiguity of a random set: each pair of neighbours is in it with `s(s-1) / (n(n-1))`."""
    n, neighbours = len(fields), sum(a == b for a, b in zip(fields, fields[1:], strict=False))
    return neighbours * size / (n * (n - 1))


@measure("contiguity")
@dataclass(frozen=True, kw_only=True)
class Contiguity(Measure):
    """How much of a rationale stands together, beside random sets of its size."""

    needs = "rationales of two units or more"

    def of(self, folder: RunFolder) -> Found | Missing:
        rows = {row.example_id: row for row in explained(folder)}
        seed = folder.manifest().config.seed
        lines = []
        for (attribution, k), rationales in rationales_of(folder).items():
            used = [(rows[example], units) for example, units in rationales.items() if len(units) > 1]
            if not used:
                continue
            sets = [(units, [span.field for span in row.spans]) for row, units in used]
            found = above_chance(
                np.array([contiguity(units, fields) for units, fields in sets]),
                np.array([chance_contiguity(len(units), fields) for units, fields in sets]),
                rng=rng_for(seed, "contiguity", attribution, str(k)),
                groups=groups_of([row for row, _ in used]),
            )
            lines.append({"attribution": attribution, "k": k, "n": len(used), **found})
        if not lines:
            return Missing("every rationale is a single unit; a larger --k gives longer ones")
        return Found((Part("Contiguity of rationales", _COLUMNS, tuple(lines)),))
