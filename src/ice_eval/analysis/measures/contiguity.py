"""Whether rationales are phrases or scattered units."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval.analysis._runs import above_chance, explained, groups_of, rationales_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.rationales import Share, Units
from ice_eval.results import InputRow, RunFolder
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
    """Neighbouring units of the rationale, as a share of the most there can be; `fields` are those of all units."""
    pairs = sum(b - a == 1 and fields[a] == fields[b] for a, b in zip(rationale, rationale[1:], strict=False))
    return pairs / (len(rationale) - 1)


def chance_contiguity(size: int, fields: list[str]) -> float:
    """Expected contiguity of a random set of that size: each pair of neighbours is in it with `s(s-1) / (n(n-1))`."""
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
        lines = [
            _line(attribution, k, {e: units for e, units in rationales.items() if len(units) > 1}, rows, seed)
            for (attribution, k), rationales in rationales_of(folder).items()
            if any(len(units) > 1 for units in rationales.values())
        ]
        if not lines:
            return Missing("every rationale is a single unit; a larger --k gives longer ones")
        return Found((Part("Contiguity of rationales", _COLUMNS, tuple(lines)),))


def _line(
    attribution: str, k: Share | None, rationales: dict[str, Units], rows: dict[str, InputRow], seed: int
) -> dict[str, Any]:
    used = [rows[example] for example in rationales]
    fields = [[span.field for span in row.spans] for row in used]
    found = above_chance(
        np.array([contiguity(units, names) for units, names in zip(rationales.values(), fields, strict=True)]),
        np.array([chance_contiguity(len(u), names) for u, names in zip(rationales.values(), fields, strict=True)]),
        rng=rng_for(seed, "contiguity", attribution, str(k)),
        groups=groups_of(used),
    )
    return {"attribution": attribution, "k": k, "n": len(used), **found}
