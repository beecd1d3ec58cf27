"""What instruction tuning does to win rates."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.analysis.across._base import GridResults, GridRun
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.results import differences
from ice_eval.results.outcomes import ALL

BASE = "base"
_PLACE = ("prompt", "attribution", "null", "operator", "direction", "k")
_PAIRS = (
    *naming("base", "tuned", *_PLACE),
    Column("win_rate_base", "base win rate", "percent"),
    Column("win_rate_tuned", "tuned win rate", "percent"),
    Column("difference", "difference", "points"),
    Column("difference_ci", "95 % CI", "points interval"),
    Column("p_adjusted", "p adj.", "p-value"),
)
_KINDS = (
    *naming(*_PLACE),
    Column("n_base", "base models", "count"),
    Column("n_tuned", "tuned models", "count"),
    Column("win_rate_base", "mean of base", "percent"),
    Column("win_rate_tuned", "mean of tuned", "percent"),
    Column("difference", "difference", "points"),
)


def tuning(grid: GridResults) -> Found | Missing:
    """Every tuned model against its own base model over the same examples, and all tuned against all base models."""
    runs = {(run.model, run.task, run.prompt): run for run in grid.runs}
    pairs = [
        (runs[run.base, run.task, run.prompt], run)
        for run in grid.runs
        if run.base is not None and (run.base, run.task, run.prompt) in runs
    ]
    own = tuple(_adjusted([line for base, tuned in pairs for line in _of_pair(base, tuned)]))
    kinds = tuple(_by_kind(grid))
    if not own and not kinds:
        return Missing("no base model and tuned model share a task; say `tuning` or `base` of a model in the grid")
    parts = [Part("Tuned models and their base", _PAIRS, own)] if own else []
    parts += [Part("Tuned and base models", _KINDS, kinds)] if kinds else []
    note = "Means over models have no interval: a grid holds too few of them, and they differ in more than tuning."
    return Found(tuple(parts), (note,) if kinds else ())


def _of_pair(base: GridRun, tuned: GridRun) -> list[dict[str, Any]]:
    [found] = differences(base.folder, [tuned.folder])
    return [
        {
            "task": tuned.task,
            "base": base.model,
            "tuned": tuned.model,
            "prompt": tuned.prompt,
            **{name: getattr(line, name) for name in _PLACE[1:]},
            "paired": line.paired,
            "win_rate_base": line.win_rate_first,
            "win_rate_tuned": line.win_rate_second,
            "difference": line.difference,
            "difference_ci": None if line.difference_ci is None else list(line.difference_ci),
            "p_value": line.p_value,
        }
        for line in found.configurations
        if line.operator != ALL
    ]


def _adjusted(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """With the p-values of all pairs adjusted together."""
    for line, p_adjusted in zip(lines, stats.adjusted_known([line["p_value"] for line in lines]), strict=True):
        yield {**line, "p_adjusted": p_adjusted}


def _by_kind(grid: GridResults) -> Iterator[dict[str, Any]]:
    """Mean win rates of base and of tuned models, where the grid says what its models are and has both."""
    is_base = {run.model: run.tuning == BASE for run in grid.runs if run.tuning is not None}
    groups: dict[tuple[Any, ...], dict[bool, list[float]]] = {}
    for cell in grid.cells:
        if cell.model in is_base:
            place = (cell.task, *(getattr(cell, name) for name in _PLACE))
            groups.setdefault(place, {True: [], False: []})[is_base[cell.model]].append(cell.win_rate)
    for place, rates in groups.items():
        if rates[True] and rates[False]:
            base, tuned = float(np.mean(rates[True])), float(np.mean(rates[False]))
            yield {
                **dict(zip(("task", *_PLACE), place, strict=True)),
                "n_base": len(rates[True]),
                "n_tuned": len(rates[False]),
                "win_rate_base": base,
                "win_rate_tuned": tuned,
                "difference": tuned - base,
            }
