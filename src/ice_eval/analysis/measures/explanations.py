"""Measures of explanations alone: agreement of attributions, compactness, contiguity of rationales."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from ice_eval.analysis import examples
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, filled, measure
from ice_eval.analysis.measures.plausibility import chance_iou, overlap
from ice_eval.rationales import Units
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.table import Column, N, estimate, naming

_PAIR = (Column("first", "attribution", "text"), Column("second", "and", "text"))
_RANKS = (*_PAIR, *N, *estimate("mean", "rank correlation", "signed"))
_OVERLAP = (*_PAIR, *naming("k"), *N, *examples.above_chance_columns("IoU"))


@measure("agreement")
class AgreementMeasure(Measure):
    """Rank correlation and overlap of rationales between each two attributions."""

    needs = "two attributions"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        if len(config.attributions) < 2:
            return Missing("the run has one attribution, and agreement needs two; add one with --attributions")
        rows = list(examples.explained(folder))
        found = filled(
            Part("Agreement of attributions", _RANKS, list(_rank_lines(rows, config))),
            Part("Overlap of rationales", _OVERLAP, list(_overlap_lines(folder, rows, config.seed))),
        )
        return Found(found) if found else Missing("no example has two attributions that rank its units")


def _rank_lines(rows: Sequence[InputRow], config: RunSettings) -> Iterator[dict[str, Any]]:
    """Yield Spearman's rho of each two attributions; constant magnitudes have no ranks."""
    vectors = {
        name: {row.example_id: v for row, v in examples.vectors_of(name, rows, config) if np.ptp(np.abs(v)) > 0}
        for name in config.attributions
    }
    for first, second in itertools.combinations(vectors, 2):
        used = [row for row in rows if row.example_id in vectors[first] and row.example_id in vectors[second]]
        pairs = [(vectors[first][row.example_id], vectors[second][row.example_id]) for row in used]
        values = np.array([float(spearmanr(a, b).statistic) for a, b in pairs])
        if used:
            mean = examples.mean_of(values, used, scale=(-1.0, 1.0))
            yield {"first": first, "second": second, "n": len(used), **mean}


def _overlap_lines(folder: RunFolder, rows: Sequence[InputRow], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the overlap of each two rationales of the same k; those with their own size are compared with every k."""
    both = itertools.combinations(examples.rationales_of(folder).items(), 2)
    for ((first, k), one), ((second, other_k), other) in both:
        used = [row for row in rows if row.example_id in one and row.example_id in other]
        if not used or first == second or (k != other_k and k is not None and other_k is not None):
            continue
        sets = [(len(row.spans), set(one[row.example_id]), set(other[row.example_id])) for row in used]
        values = np.array([overlap(len(a & b), len(a), len(b)) for _, a, b in sets])
        chance = np.array([chance_iou(n_units, len(a), len(b)) for n_units, a, b in sets])
        found = examples.above_chance(values, chance, used)
        yield {"first": first, "second": second, "k": other_k if k is None else k, "n": len(used), **found}


# --- compactness --------------------------------------------------------------------------------------------------

_MASS = (
    *naming("attribution"),
    *N,
    *estimate("half_mass", "units for half", "percent"),
    *estimate("entropy", "entropy", interval="95 % CI of entropy"),
)


def half_mass(vector: PerUnit) -> float:
    """Return the smallest share of units that holds at least half of the sum of magnitudes."""
    sums = np.cumsum(np.sort(np.abs(vector))[::-1])
    # Of equal units half must not become one more than half by round-off.
    return float(1 + np.searchsorted(sums, 0.5 * sums[-1] * (1 - 1e-12))) / vector.size


def entropy(vector: PerUnit) -> float:
    """Return the entropy of the magnitudes over that of equal ones: 0 where one unit has all, 1 where all are alike."""
    shares = np.abs(vector) / np.abs(vector).sum()
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum() / np.log(vector.size))


@measure("compactness")
class Compactness(Measure):
    """How few units hold half of an attribution's mass, and the entropy of that mass."""

    needs = "attribution vectors"

    def of(self, folder: RunFolder) -> Found | Missing:
        config, lines = folder.manifest().config, []
        rows = list(examples.explained(folder))
        for name in config.attributions:
            used = [(row, vector) for row, vector in examples.vectors_of(name, rows, config) if vector.any()]
            line: dict[str, Any] = {"attribution": name, "n": len(used)}
            for field, value in (("half_mass", half_mass), ("entropy", entropy)) if used else ():
                values = np.array([value(v) for _, v in used])
                line |= examples.mean_of(values, [row for row, _ in used], field=field)
            lines += [line] if used else []
        if not lines:
            return Missing("no example has an attribution with two units or more that are not all 0")
        return Found((Part("Compactness", _MASS, lines),))


# --- contiguity ---------------------------------------------------------------------------------------------------


def contiguity(rationale: Units, fields: list[str]) -> float:
    """Return the pairs of neighbours in a rationale over the possible maximum; `fields` are those of all units."""
    pairs = sum(b - a == 1 and fields[a] == fields[b] for a, b in itertools.pairwise(rationale))
    return pairs / (len(rationale) - 1)


def chance_contiguity(size: int, fields: list[str]) -> float:
    """Return the expected contiguity of a random set: each pair of neighbours is in it with `s(s-1) / (n(n-1))`."""
    n, neighbours = len(fields), sum(a == b for a, b in itertools.pairwise(fields))
    return neighbours * size / (n * (n - 1))


@measure("contiguity")
class ContiguityMeasure(Measure):
    """How much of a rationale stands together, beside random sets of its size."""

    needs = "rationales of two units or more"

    def of(self, folder: RunFolder) -> Found | Missing:
        rows = {row.example_id: row for row in examples.explained(folder)}
        lines = []
        for (attribution, k), rationales in examples.rationales_of(folder).items():
            used = [(rows[example], units) for example, units in rationales.items() if len(units) > 1]
            if not used:
                continue
            sets = [(units, [span.field for span in row.spans]) for row, units in used]
            values = np.array([contiguity(units, fields) for units, fields in sets])
            chance = np.array([chance_contiguity(len(units), fields) for units, fields in sets])
            found = examples.above_chance(values, chance, [row for row, _ in used])
            lines.append({"attribution": attribution, "k": k, "n": len(used), **found})
        if not lines:
            return Missing("every rationale is a single unit; a larger --k gives longer ones")
        columns = (*naming("attribution", "k"), *N, *examples.above_chance_columns("contiguity", "percent"))
        return Found((Part("Contiguity of rationales", columns, lines),))
