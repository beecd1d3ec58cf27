"""How far the conclusions of a grid depend on the operator."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ice_eval import stats
from ice_eval.analysis.across._base import LONG_TEXT, GridLine, GridResults
from ice_eval.analysis.grid import Cell, Pair
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.analysis.operator_dependence import operator_dependence
from ice_eval.results.records import AgreementLine

_COLUMNS = (
    *naming("attribution", "operators", "texts"),
    Column("n_configurations", "configurations", "count"),
    Column("n_crossings", "cross 55 %", "count"),
    Column("n_confirmed", "confirmed", "count"),
    Column("first_exceeds", "first higher", "percent"),
    Column("mean_gap", "mean gap", "points"),
    Column("median_gap", "median gap", "points"),
    Column("widest_gap", "widest gap", "points"),
    Column("widest_where", "where", "text"),
)
_CROSSING_COLUMNS = (
    *naming("prompt", "attribution", "null", "direction", "k", "operators"),
    Column("first", "first", "percent"),
    Column("second", "second", "percent"),
    Column("gap", "gap", "points"),
    Column("gap_ci", "95 % CI", "points interval"),
    Column("crossing", "crossing", "text"),
)


def operators(grid: GridResults) -> Found | Missing:
    """Every pair of operators over all configurations that have both, all texts together and by their length."""
    names = list(dict.fromkeys(cell.operator for cell in grid.cells))
    if len(names) < 2:
        return Missing("the grid has one operator; give two or more")
    # Runs that were extended may have their operators in another order.
    known = {_key(each): each.line for line in grid.agreement for each in (line, _reversed(line))}
    pairs = list(itertools.combinations(names, 2))
    lines = [line for pair in pairs for line in _lines(grid.cells, pair, known)]
    crossings = [
        _crossing(pair, known) for each in pairs for pair in operator_dependence(grid.cells, operators=each).crossings
    ]
    parts = [Part("Operator dependence", _COLUMNS, tuple(lines))]
    if crossings:
        parts.append(Part("Configurations that cross 55 %", _CROSSING_COLUMNS, tuple(crossings)))
    notes = [
        "Gaps are the first operator's win rate less the second's; a crossing is confirmed where both "
        "one-sided 95 % bounds lie on opposite sides of 55 %.",
        f"Texts are long from {LONG_TEXT} tokens in the median on.",
    ]
    return Found(tuple(parts), tuple(notes))


def _lines(
    cells: Sequence[Cell], pair: tuple[str, str], known: dict[tuple[object, ...], AgreementLine]
) -> Iterator[dict[str, Any]]:
    for attribution in dict.fromkeys(cell.attribution for cell in cells):
        chosen = [cell for cell in cells if cell.attribution == attribution]
        lengths = [each for each in ("short", "long") if any(cell.text_length == each for cell in chosen)]
        # Texts of one length need no line of their own: they are all texts.
        for texts in ["all", *(lengths if len(lengths) > 1 else ())]:
            some = [cell for cell in chosen if texts in ("all", cell.text_length)]
            found = operator_dependence(some, operators=pair)
            if found.widest is None:
                continue
            confirmed = [p for p in found.crossings if known[_pair_key(p)].crosses_threshold == "confirmed"]
            yield {
                "attribution": attribution,
                "operators": _written(pair),
                "texts": texts,
                "n_configurations": len(found.pairs),
                "n_crossings": len(found.crossings),
                "n_confirmed": len(confirmed),
                "first_exceeds": found.first_exceeds,
                "mean_gap": found.mean_gap,
                "median_gap": found.median_gap,
                "widest_gap": found.widest.gap,
                "widest_where": _where(found.widest.first),
            }


def _crossing(pair: Pair, known: dict[tuple[object, ...], AgreementLine]) -> dict[str, Any]:
    line = known[_pair_key(pair)]
    cell = pair.first
    return {
        **{name: getattr(cell, name) for name in ("model", "task", "prompt", "attribution", "null", "direction", "k")},
        "operators": _written((pair.first.operator, pair.second.operator)),
        "first": pair.first.win_rate,
        "second": pair.second.win_rate,
        "gap": pair.gap,
        "gap_ci": None if line.gap_ci is None else list(line.gap_ci),
        "crossing": line.crosses_threshold,
    }


def _written(pair: tuple[str, str]) -> str:
    return " − ".join(pair)


def _where(cell: Cell) -> str:
    return ", ".join(filter(None, (cell.model, cell.task, cell.prompt)))


def _reversed(each: GridLine[AgreementLine]) -> GridLine[AgreementLine]:
    """The same agreement, the second operator first; of its fields those that are used here."""
    line, (first, second) = each.line, each.line.operators
    interval = None if line.gap_ci is None else stats.Interval(-line.gap_ci.high, -line.gap_ci.low)
    return replace(each, line=replace(line, operators=(second, first), gap_ci=interval))


def _key(each: GridLine[AgreementLine]) -> tuple[object, ...]:
    line = each.line
    place = (line.model, line.task, each.run.prompt, line.attribution, line.k, line.direction, line.null)
    return (*place, *line.operators)


def _pair_key(pair: Pair) -> tuple[object, ...]:
    cell = pair.first
    place = (cell.model, cell.task, cell.prompt, cell.attribution, cell.k, cell.direction, cell.null)
    return (*place, cell.operator, pair.second.operator)
