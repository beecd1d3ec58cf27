"""Whether attributions mark what people marked, and whether that goes with faithfulness."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval.analysis import human
from ice_eval.analysis._runs import above_chance, explained, groups_of, ranked, rationales_of
from ice_eval.analysis.human import Marks
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.rationales import Share, Units
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.results.outcomes import ALL
from ice_eval.seeding import rng_for
from ice_eval.stats.correlation import FEWEST_PAIRS
from ice_eval.table import Column, naming

_OF_SETS: Mapping[str, tuple[Callable[[Units, Marks], float], Callable[[int, int, int], float]]] = {
    "IoU": (human.iou, human.chance_iou),
    "IoU ≥ 0.5": (human.is_match, human.chance_match),
    "token F1": (human.f1, human.chance_f1),
}
_AUPRC = "AUPRC"
_CORRELATED = ("IoU", "token F1", _AUPRC)
_PLACE = ("attribution", "operator", "direction", "null", "k")
_AGREEMENT = (
    Column("measure", "measure", "text"),
    Column("n", "n", "count"),
    Column("mean", "mean"),
    Column("mean_ci", "95 % CI", "interval"),
    Column("chance", "chance"),
    Column("above_chance", "above chance", "signed"),
    Column("above_chance_ci", "95 % CI of it", "signed interval"),
)
_OF_RATIONALES = (*naming("attribution", "k"), *_AGREEMENT)
_OF_VECTORS = (*naming("attribution"), *_AGREEMENT)
_RELATION = (
    *naming(*_PLACE, "measure"),
    Column("n", "n", "count"),
    Column("pearson", "r", "signed"),
    Column("pearson_ci", "95 % CI", "signed interval"),
    Column("pearson_p", "p", "p-value"),
    Column("pearson_p_adjusted", "p adj.", "p-value"),
    Column("spearman", "rho", "signed"),
    Column("spearman_ci", "95 % CI of rho", "signed interval"),
    Column("detectable", "detectable r"),
)
_FOUND_TOGETHER = ("n", "pearson", "spearman")
_TOGETHER = tuple(column for column in _RELATION if column.field in {*_PLACE[1:], "measure", *_FOUND_TOGETHER})
"""Over attributions: the same examples are behind every point, so that neither p-values nor intervals hold."""
RATIONALES, VECTORS = "Plausibility of rationales", "Plausibility of whole attributions"
RELATION = "Plausibility and win rate, over examples"
CONFIGURATIONS = "Plausibility and win rate, over attributions"
ALL_RUNS = "Plausibility and win rate, over attributions of all runs"
_DESCRIPTION = "points over attributions share their examples: read that r as a description"


class _Value(NamedTuple):
    """One measure of one example, and what chance would give."""

    found: float
    chance: float


@measure("plausibility")
@dataclass(frozen=True, kw_only=True)
class Plausibility(Measure):
    """Overlap of rationales and attributions with human rationales, beside chance, and its relation to win rates."""

    needs = "human rationales in the data"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        took_part = list(explained(folder))
        if not any(row.human for row in took_part):
            return Missing(
                "the run's data have no human rationales; give each example a 'rationale' ([[start, end], …] in the "
                "prompt's first field, or [[field, start, end], …]) or 'highlights_FIELD' (places of words)"
            )
        rows = {row.example_id: row for row in took_part if human.tells_units_apart(human.marks_of(row))}
        if not rows and config.scope == "prompt":
            return Missing("people marked fields, and the units of --scope prompt are of no field; run without it")
        if not rows:
            return Missing("no human rationale marks some units of a text and leaves others")
        values = _values(folder, rows, config)
        if not values:
            return Missing("the run has no attribution beside 'human', which is the yardstick")
        lines = list(_agreement(values, rows, config.seed))
        relation = _adjusted(list(_relation(folder, values, rows, config.seed)))
        parts = (
            Part(RATIONALES, _OF_RATIONALES, tuple(line for line in lines if line["measure"] != _AUPRC)),
            Part(VECTORS, _OF_VECTORS, tuple(line for line in lines if line["measure"] == _AUPRC)),
            Part(RELATION, _RELATION, tuple(relation)),
            Part(CONFIGURATIONS, _TOGETHER, tuple(_over_configurations(relation))),
        )
        return Found(tuple(part for part in parts if part.lines), tuple(_notes(took_part, rows, parts)))

    def across(self, found: Sequence[Found]) -> Found | None:
        lines = [line for each in found for part in each.parts if part.title == RELATION for line in part.lines]
        together = tuple(_over_configurations(lines))
        return Found((Part(ALL_RUNS, _TOGETHER, together),), (_DESCRIPTION,)) if together else None


def _values(
    folder: RunFolder, rows: Mapping[str, InputRow], config: RunSettings
) -> dict[tuple[str, Share | None, str], dict[str, _Value]]:
    """By attribution, k and measure, the values of every example; AUPRC knows no k."""
    found: dict[tuple[str, Share | None, str], dict[str, _Value]] = defaultdict(dict)
    marks = {example: human.marks_of(row) for example, row in rows.items()}
    for (attribution, k), rationales in rationales_of(folder).items():
        if attribution == human.HUMAN:
            continue
        for example, units in rationales.items():
            if example not in rows:
                continue
            marked = marks[example]
            size = (marked.size, len(units), int(marked.sum()))
            for name, (value, chance) in _OF_SETS.items():
                found[attribution, k, name][example] = _Value(value(units, marked), chance(*size))
            if example not in found[attribution, None, _AUPRC]:
                vector = ranked(attribution, rows[example], config)
                found[attribution, None, _AUPRC][example] = _Value(
                    human.average_precision(vector, marked), human.chance_average_precision(vector, marked)
                )
    return found


def _agreement(
    values: Mapping[tuple[str, Share | None, str], Mapping[str, _Value]], rows: Mapping[str, InputRow], seed: int
) -> Iterator[dict[str, Any]]:
    for (attribution, k, name), by_example in values.items():
        used = [rows[example] for example in by_example]
        means = above_chance(
            np.array([value.found for value in by_example.values()]),
            np.array([value.chance for value in by_example.values()]),
            rng=rng_for(seed, "plausibility", attribution, name, str(k)),
            groups=groups_of(used),
        )
        yield {"attribution": attribution, "k": k, "measure": name, "n": len(used), **means}


def _relation(
    folder: RunFolder,
    values: Mapping[tuple[str, Share | None, str], Mapping[str, _Value]],
    rows: Mapping[str, InputRow],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Correlation over examples of every measure with the win rate of every configuration."""
    rates: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for line in folder.examples():
        if line.error is None and line.operator != ALL:
            key = (line.attribution, line.operator, line.direction, line.null, line.k)
            rates[key][line.example_id] = line.win_rate
    for (key, by_example), name in itertools.product(rates.items(), _CORRELATED):
        attribution, k = key[0], key[-1]
        found = values.get((attribution, None if name == _AUPRC else k, name), {})
        used = [example for example in by_example if example in found]
        if not used:
            continue
        x = np.array([found[example].found for example in used])
        y = np.array([by_example[example] for example in used])
        fields = dict(zip(_PLACE, key, strict=True))
        correlated = _correlations(x, y, seed, (*map(str, key), name), [rows[example] for example in used])
        means = {"mean": float(x.mean()), "win_rate": float(y.mean())}
        yield {**fields, "measure": name, **correlated, **means}


def _over_configurations(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Correlation of mean plausibility with mean win rate over attributions that differ in nothing else."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    fields = (*_PLACE[1:], "measure")
    for line in lines:
        groups[tuple(line[field] for field in fields)].append(line)
    for key, group in groups.items():
        if len(group) >= FEWEST_PAIRS:
            x, y = (np.array([line[field] for line in group]) for field in ("mean", "win_rate"))
            found = _correlations(x, y, 0, ("over", *map(str, key)), None)
            shown = {field: found[field] for field in _FOUND_TOGETHER}
            yield {**dict(zip(fields, key, strict=True)), **shown}


def _correlations(
    x: np.ndarray[Any, np.dtype[np.float64]],
    y: np.ndarray[Any, np.dtype[np.float64]],
    seed: int,
    keys: Sequence[str],
    rows: Sequence[InputRow] | None,
) -> dict[str, Any]:
    groups = None if rows is None else groups_of(rows)
    found: dict[str, Any] = {"n": x.size}
    for coefficient in ("pearson", "spearman"):
        each = stats.correlate(
            x, y, rng=rng_for(seed, "plausibility", coefficient, *keys), coefficient=coefficient, groups=groups
        )
        interval = None if each.interval is None else list(each.interval)
        found |= {coefficient: each.r, f"{coefficient}_ci": interval, f"{coefficient}_p": each.p_value}
        found["detectable"] = each.detectable
    return found


def _adjusted(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the p-values of Pearson's r of all lines adjusted together."""
    found = stats.adjusted_known([line["pearson_p"] for line in lines])
    return [{**line, "pearson_p_adjusted": p_adjusted} for line, p_adjusted in zip(lines, found, strict=True)]


def _notes(took_part: Sequence[InputRow], rows: Mapping[str, InputRow], parts: Sequence[Part]) -> Iterator[str]:
    left_out = len(took_part) - len(rows)
    if left_out:
        yield f"{left_out} of {len(took_part)} examples are left out: no unit of their text is marked, or every one"
    yield (
        "chance is what a random set of the same size, or the same numbers in random order, would reach on the same "
        "examples; above chance, its interval excludes 0"
    )
    if any(part.title == CONFIGURATIONS and part.lines for part in parts):
        yield _DESCRIPTION
