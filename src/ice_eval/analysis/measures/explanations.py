"""Measures of explanations alone, and of their overlap with human rationales."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom, spearmanr

from ice_eval import stats
from ice_eval.analysis import _base
from ice_eval.analysis._base import Found, Measure, Missing, Part, Values, filled, listed, measure
from ice_eval.rationales import Share, Units
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.folder import FinishedRun
from ice_eval.results.outcomes import ALL
from ice_eval.seeding import rng_for
from ice_eval.stats import Groups
from ice_eval.stats.agreement import FEWEST_PAIRS
from ice_eval.table import Column, N, columns, estimate, naming

# --- plausibility ---------------------------------------------------------------------------------------------------

Marks = NDArray[np.bool_]
"""Units that a person marked, (n,)."""
HUMAN = "human"
"""Attribution that is made of the marks, and so cannot be tested by them."""
MATCH = 0.5
"""Smallest intersection over union of a match with the human rationale."""


def marks_of(row: InputRow) -> Marks:
    """Return the units with at least one character that a person marked."""
    marked = [
        any(mark.field == unit.field and mark.start < unit.end and unit.start < mark.end for mark in row.human)
        for unit in row.spans
    ]
    return np.array(marked, dtype=bool)


def tells_units_apart(marks: Marks) -> bool:
    """Return True if some units are marked and some are not; else no attribution is right or wrong."""
    return bool(marks.any() and not marks.all())


def overlap(n_both: float, n_first: int, n_second: int) -> float:
    """Return the intersection over union of two sets that share `n_both` units."""
    return n_both / (n_first + n_second - n_both)


def iou(rationale: Units, marks: Marks) -> float:
    return overlap(int(marks[list(rationale)].sum()), len(rationale), int(marks.sum()))


def is_match(rationale: Units, marks: Marks) -> float:
    """Return 1 where intersection over union reaches one half, else 0."""
    return float(iou(rationale, marks) >= MATCH)


def f1(rationale: Units, marks: Marks) -> float:
    """Return the harmonic mean of precision (marked share of the rationale) and recall (share of the marks in it)."""
    return 2 * int(marks[list(rationale)].sum()) / (len(rationale) + int(marks.sum()))


def average_precision(vector: PerUnit, marks: Marks) -> float:
    """Return the area under the curve of precision over recall, units taken from the highest number down."""
    # `sum_g t_g / h * T_g / c_g`: the g-th group of equal numbers holds `t_g` of the h marked units, and up to its end
    # at position `c_g` there are `T_g`. Equal to scikit-learn's value, without the cost of its checks.
    _, groups, counts = np.unique(-vector, return_inverse=True, return_counts=True)
    marked = np.bincount(groups, weights=marks)
    return float((marked * np.cumsum(marked) / np.cumsum(counts)).sum() / marks.sum())


def chance_iou(n_units: int, size: int, n_marked: int) -> float:
    return sum(p * overlap(both, size, n_marked) for both, p in _shared(n_units, size, n_marked))


def chance_match(n_units: int, size: int, n_marked: int) -> float:
    """Return the probability that a random set of that size is a match."""
    return sum(p for both, p in _shared(n_units, size, n_marked) if overlap(both, size, n_marked) >= MATCH)


def chance_f1(n_units: int, size: int, n_marked: int) -> float:
    return 2 * (size * n_marked / n_units) / (size + n_marked)


def chance_average_precision(vector: PerUnit, marks: Marks) -> float:
    """Return the expected average precision if the same numbers belonged to units in random order."""
    # The g-th group of equal numbers, from the highest down, holds `m_g` units and ends at position `c_g`:
    # `sum_g m_g / (c_g n) * (1 + (c_g - 1)(h - 1) / (n - 1))` with h of n units marked. That is h/n where all numbers
    # are equal, and more where they differ: h/n alone is too low for short texts.
    n, n_marked = marks.size, int(marks.sum())
    _, counts = np.unique(-vector, return_counts=True)
    ends = np.cumsum(counts)
    return math.fsum(counts / (ends * n) * (1 + (ends - 1) * (n_marked - 1) / (n - 1)))


@lru_cache(maxsize=4096)
def _shared(n_units: int, size: int, n_marked: int) -> tuple[tuple[int, float], ...]:
    """Return the possible numbers of marked units in a random set, and their probabilities."""
    counts = np.arange(max(0, size + n_marked - n_units), min(size, n_marked) + 1)
    probabilities = hypergeom.pmf(counts, n_units, n_marked, size)
    return tuple(zip(counts.tolist(), probabilities.tolist(), strict=True))


class Overlap(NamedTuple):
    """Overlap of one rationale with the human one, and its win rate."""

    overlap: float
    win_rate: float
    group: Hashable | None
    """Equal for examples that share a passage."""


def overlap_correlation(points: Sequence[Overlap]) -> stats.Correlation:
    """Return Pearson's r of overlap and win rate over examples, with an interval that allows for groups."""
    x, y = np.array([point.overlap for point in points]), np.array([point.win_rate for point in points])
    groups = [(index, None) if point.group is None else (None, point.group) for index, point in enumerate(points)]
    return stats.correlate(x, y, rng=rng_for(0, "plausibility"), groups=groups)


_OF_SETS: Mapping[str, tuple[Callable[[Units, Marks], float], Callable[[int, int, int], float]]] = {
    "IoU": (iou, chance_iou),
    "IoU ≥ 0.5": (is_match, chance_match),
    "token F1": (f1, chance_f1),
}
_AUPRC = "AUPRC"
_CORRELATED = ("IoU", "token F1", _AUPRC)
_PLACE = ("attribution", "operator", "direction", "null", "k")
_MEANS = (*naming("measure"), *N, *_base.above_chance_columns("mean"))
_RELATION = (
    *naming(*_PLACE, "measure"),
    *N,
    *estimate("pearson", "r", "signed"),
    *columns("p-value", pearson_p="p", pearson_p_adjusted="p adj."),
    *estimate("spearman", "rho", "signed", "95 % CI of rho"),
    *columns("number", detectable="detectable r"),
)
_FOUND_TOGETHER = ("n", "pearson", "spearman")
_TOGETHER = tuple(column for column in _RELATION if column.field in {*_PLACE[1:], "measure", *_FOUND_TOGETHER})
"""Note for correlations over attributions: all points share examples, so p-values and intervals would not hold."""
RATIONALES, VECTORS = "Plausibility of rationales", "Plausibility of whole attributions"
RELATION = "Plausibility and win rate, over examples"
CONFIGURATIONS = "Plausibility and win rate, over attributions"
ALL_RUNS = "Plausibility and win rate, over attributions of all runs"
_DESCRIPTION = "points over attributions share their examples: that r is descriptive only"


_Values = Mapping[tuple[str, Share | None, str], Mapping[str, tuple[float, float]]]
"""Value and chance of every example by attribution, k and measure; AUPRC has no k."""


@measure("plausibility")
class PlausibilityMeasure(Measure):
    """Overlap of rationales and attributions with human rationales, beside chance, and its relation to win rates."""

    needs = "human rationales in the data"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        if not any(row.human for row in run.inputs.values()):
            return Missing(
                "the run's data have no human rationales; give each example a 'rationale' ([[start, end], …] in the "
                "prompt's first field, or [[field, start, end], …]) or 'highlights_FIELD' (places of words)"
            )
        rows = {name: row for name, row in run.inputs.items() if tells_units_apart(marks_of(row))}
        if not rows and run.config.scope == "prompt":
            return Missing("human rationales mark fields, which --scope prompt does not keep; run without it")
        if not rows:
            return Missing("no human rationale marks some units of a text and leaves others")
        values = _values(run, rows)
        if not values:
            return Missing("the run has no attribution beside 'human', which is the yardstick")
        lines = []
        for (attribution, k, name), by_example in values.items():
            found, chance = np.array(list(by_example.values())).T
            means = _base.above_chance(found, chance, [rows[example] for example in by_example])
            lines.append({"attribution": attribution, "k": k, "measure": name, "n": len(by_example), **means})
        relation = _relation(run, values)
        together = list(_over_configurations(relation))
        parts = filled(
            Part(RATIONALES, (*naming("attribution", "k"), *_MEANS), [x for x in lines if x["measure"] != _AUPRC]),
            Part(VECTORS, (*naming("attribution"), *_MEANS), [x for x in lines if x["measure"] == _AUPRC]),
            Part(RELATION, _RELATION, relation),
            Part(CONFIGURATIONS, _TOGETHER, together),
        )
        notes = [
            "chance is what a random set of the same size, or the same numbers in random order, would reach on the "
            "same examples; above chance, its interval excludes 0"
        ]
        if len(rows) < len(run.inputs):
            left_out = f"{len(run.inputs) - len(rows)} of {len(run.inputs)} examples are left out"
            notes.insert(0, f"{left_out}: no unit of their text is marked, or every one")
        return Found(parts, (*notes, _DESCRIPTION) if together else tuple(notes))

    def across(self, found: Sequence[Found], folders: Sequence[RunFolder]) -> Found | None:
        lines = [line for each in found for part in each.parts if part.title == RELATION for line in part.lines]
        together = list(_over_configurations(lines))
        return Found((Part(ALL_RUNS, _TOGETHER, together),), (_DESCRIPTION,)) if together else None


def _values(run: FinishedRun, rows: Mapping[str, InputRow]) -> _Values:
    found: dict[tuple[str, Share | None, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    marks = {example: marks_of(row) for example, row in rows.items()}
    for (attribution, k), rationales in run.rationales.items():
        if attribution == HUMAN:
            continue
        for example in (example for example in rationales if example in rows):
            units, marked = rationales[example], marks[example]
            size = (marked.size, len(units), int(marked.sum()))
            for name, (value, chance) in _OF_SETS.items():
                found[attribution, k, name][example] = value(units, marked), chance(*size)
            if example not in found[attribution, None, _AUPRC]:
                vector = _base.ranked(attribution, rows[example], run.config)
                both = average_precision(vector, marked), chance_average_precision(vector, marked)
                found[attribution, None, _AUPRC][example] = both
    return found


def _relation(run: FinishedRun, values: _Values) -> list[dict[str, Any]]:
    """Correlate every measure with the win rate of every configuration over examples; p-values adjusted together."""
    lines = []
    for (cell, by_example), name in itertools.product(run.win_rates.items(), _CORRELATED):
        found = values.get((cell.attribution, None if name == _AUPRC else cell.k, name), {})
        used = [example for example in by_example if example in found]
        if used and cell.operator != ALL:
            x = np.array([found[example][0] for example in used])
            y = np.array([by_example[example] for example in used])
            key = _base.fields_of(cell, *_PLACE)
            correlated = _correlations(x, y, run.config.seed, (*map(str, key.values()), name), run.groups_of(used))
            means = {"mean": float(x.mean()), "win_rate": float(y.mean())}
            lines.append({**key, "measure": name, **correlated, **means})
    p_adjusted = stats.adjusted_known([line["pearson_p"] for line in lines])
    return [{**line, "pearson_p_adjusted": p} for line, p in zip(lines, p_adjusted, strict=True)]


def _over_configurations(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Correlate mean plausibility with mean win rate over attributions that differ in nothing else."""
    fields, groups = (*_PLACE[1:], "measure"), defaultdict[tuple[Any, ...], list[Mapping[str, Any]]](list)
    for line in lines:
        groups[tuple(line[field] for field in fields)].append(line)
    for key, group in groups.items():
        if len(group) >= FEWEST_PAIRS:
            x, y = (np.array([line[field] for line in group]) for field in ("mean", "win_rate"))
            found = _correlations(x, y, 0, ("over", *map(str, key)), None)
            yield {**dict(zip(fields, key, strict=True)), **{field: found[field] for field in _FOUND_TOGETHER}}


def _correlations(x: Values, y: Values, seed: int, keys: Sequence[str], groups: Groups) -> dict[str, Any]:
    found: dict[str, Any] = {"n": x.size}
    for coefficient in ("pearson", "spearman"):
        rng = rng_for(seed, "plausibility", coefficient, *keys)
        each = stats.correlate(x, y, rng=rng, coefficient=coefficient, groups=groups)
        found |= {coefficient: each.r, f"{coefficient}_ci": each.interval, f"{coefficient}_p": each.p_value}
        found["detectable"] = each.detectable
    return found


# --- agreement ------------------------------------------------------------------------------------------------------

_PAIR = (Column("first", "attribution", "text"), Column("second", "and", "text"))
_RANKS = (*_PAIR, *N, *estimate("mean", "rank correlation", "signed"))
_OVERLAP = (*_PAIR, *naming("k"), *N, *_base.above_chance_columns("IoU"))


@measure("agreement")
class AgreementMeasure(Measure):
    """Rank correlation and overlap of rationales between each two attributions."""

    needs = "two attributions"

    def of(self, folder: RunFolder) -> Found | Missing:
        run = FinishedRun(folder=folder)
        if len(run.config.attributions) < 2:
            return Missing("the run has one attribution, and agreement needs two; add one with --attributions")
        found = filled(
            Part("Agreement of attributions", _RANKS, list(_rank_lines(run))),
            Part("Overlap of rationales", _OVERLAP, list(_overlap_lines(run))),
        )
        return Found(found) if found else Missing("no example has two attributions that rank its units")


def _rank_lines(run: FinishedRun) -> Iterator[dict[str, Any]]:
    """Yield Spearman's rho of each two attributions; constant magnitudes have no ranks."""
    rows = list(run.inputs.values())
    vectors = {
        name: {row.example_id: v for row, v in _base.vectors_of(name, rows, run.config) if np.ptp(np.abs(v)) > 0}
        for name in run.config.attributions
    }
    for first, second in itertools.combinations(vectors, 2):
        used = [row for row in rows if row.example_id in vectors[first] and row.example_id in vectors[second]]
        pairs = [(vectors[first][row.example_id], vectors[second][row.example_id]) for row in used]
        values = np.array([float(spearmanr(a, b).statistic) for a, b in pairs])
        if used:
            mean = _base.mean_of(values, used, scale=(-1.0, 1.0))
            yield {"first": first, "second": second, "n": len(used), **mean}


def _overlap_lines(run: FinishedRun) -> Iterator[dict[str, Any]]:
    """Yield the overlap of each two rationales of the same k; those with their own size are compared with every k."""
    both = itertools.combinations(run.rationales.items(), 2)
    for ((first, k), one), ((second, other_k), other) in both:
        used = [row for name, row in run.inputs.items() if name in one and name in other]
        if not used or first == second or (k != other_k and k is not None and other_k is not None):
            continue
        sets = [(len(row.spans), set(one[row.example_id]), set(other[row.example_id])) for row in used]
        values = np.array([overlap(len(a & b), len(a), len(b)) for _, a, b in sets])
        chance = np.array([chance_iou(n_units, len(a), len(b)) for n_units, a, b in sets])
        found = _base.above_chance(values, chance, used)
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
        run, lines = FinishedRun(folder=folder), []
        rows = list(run.inputs.values())
        for name in run.config.attributions:
            used = [(row, vector) for row, vector in _base.vectors_of(name, rows, run.config) if vector.any()]
            if used:
                line: dict[str, Any] = {"attribution": name, "n": len(used)}
                for field, value in (("half_mass", half_mass), ("entropy", entropy)):
                    values = np.array([value(v) for _, v in used])
                    line |= _base.mean_of(values, [row for row, _ in used], field=field)
                lines.append(line)
        missing = "no example has an attribution with two units or more that are not all 0"
        return listed("Compactness", _MASS, lines, missing)


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
        run, lines = FinishedRun(folder=folder), []
        for (attribution, k), rationales in run.rationales.items():
            used = [(run.inputs[example], units) for example, units in rationales.items() if len(units) > 1]
            if not used:
                continue
            sets = [(units, [span.field for span in row.spans]) for row, units in used]
            values = np.array([contiguity(units, fields) for units, fields in sets])
            chance = np.array([chance_contiguity(len(units), fields) for units, fields in sets])
            found = _base.above_chance(values, chance, [row for row, _ in used])
            lines.append({"attribution": attribution, "k": k, "n": len(used), **found})
        columns = (*naming("attribution", "k"), *N, *_base.above_chance_columns("contiguity", "percent"))
        missing = "every rationale is a single unit; a larger --k gives longer ones"
        return listed("Contiguity of rationales", columns, lines, missing)
