"""Which attribution to use for which model, task and language, where the intervals of a grid settle it."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.analysis._runs import groups_of
from ice_eval.analysis.across._base import LEVEL, GridResults, GridRun
from ice_eval.analysis.grid import POSITIVE_EVIDENCE
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.rationales import Share
from ice_eval.results import SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.seeding import rng_for

_CONTROLS = frozenset({"random", "first-k", "last-k", "longest-words", "rarest-tokens", "lexicon", "human"})
"""Attributions that show what is to be beaten, and are never advised."""
NOT_SETTLED = "not settled"

_PLACE = ("null", "direction", "k")
_COLUMNS = (
    *naming("language", "prompt", *_PLACE),
    Column("advice", "use", "text"),
    Column("reason", "because", "text"),
)


def guidelines(grid: GridResults) -> Found | Missing:
    """One line for every run: an attribution, or that the data do not settle which.

    An attribution is advised where, under every operator, its 95 % interval lies above 55 %, its p-value adjusted over
    the grid is at most 0.05, and its paired difference to every other attribution, the controls included, excludes 0.
    """
    lines = [line for run in grid.runs for line in _of_run(run, grid)]
    if not lines:
        return Missing("no attribution beside controls was evaluated")
    advised = [line["advice"] for line in lines if line["advice"] != NOT_SETTLED]
    counts = ", ".join(f"{name} in {advised.count(name)}" for name in dict.fromkeys(advised))
    notes = (
        f"Of {len(lines)} cases {len(lines) - len(advised)} are not settled{f'; advised: {counts}' if counts else ''}.",
        "Advised means: under every operator the 95 % interval lies above 55 %, the p-value adjusted over the grid is "
        "at most 0.05, and the paired difference to every other attribution excludes 0. What is not settled may be so "
        "with more examples.",
    )
    return Found((Part("Guidelines", _COLUMNS, tuple(lines)),), notes)


def is_control(attribution: str) -> bool:
    """Whether an attribution, whatever its options, only shows what is to be beaten."""
    return attribution.partition(":")[0] in _CONTROLS


def _of_run(run: GridRun, grid: GridResults) -> list[dict[str, Any]]:
    lines = [line for line in grid.lines_of(run) if line.operator != ALL]
    operators = {line.operator for line in lines}
    places: dict[tuple[Any, ...], list[SummaryLine]] = {}
    for line in lines:
        for k in _compared_at(line, lines):
            places.setdefault((line.null, line.direction, k), []).append(line)
    found = []
    for place, compared in places.items():
        if not all(is_control(line.attribution) for line in compared):
            advice, reason = _advice(run, compared, operators)
            found.append({**run.head, **dict(zip(_PLACE, place, strict=True)), "advice": advice, "reason": reason})
    return found


def _compared_at(line: SummaryLine, lines: Sequence[SummaryLine]) -> list[Share | None]:
    """The sizes at which a line competes: its own; rationales of their own size compete with those of every k."""
    sizes: list[Share | None] = list(dict.fromkeys(each.k for each in lines if each.k is not None))
    return [line.k] if line.k is not None else sizes or [None]


def _advice(run: GridRun, lines: Sequence[SummaryLine], operators: Set[str]) -> tuple[str, str]:
    by_name: dict[str, list[SummaryLine]] = {}
    for line in lines:
        if line.win_rate is not None:
            by_name.setdefault(line.attribution, []).append(line)
    supported = [
        name
        for name, own in by_name.items()
        if not is_control(name) and {line.operator for line in own} == operators and all(map(_is_supported, own))
    ]
    if not supported:
        return NOT_SETTLED, "no attribution's interval lies above 55 % under every operator"
    if len(by_name) < 2:
        return NOT_SETTLED, "there is no other attribution to compare with"
    rivals = {name: _not_beaten(run, by_name[name], by_name) for name in supported}
    alone = [name for name, others in rivals.items() if not others]
    if not alone:
        best = max(supported, key=lambda name: min(line.win_rate or 0.0 for line in by_name[name]))
        others = " and ".join(rivals[best])
        return NOT_SETTLED, f"{best} lies above 55 % under every operator, but its difference to {others} is not sure"
    [name] = alone
    lowest = min(line.win_rate_ci.low for line in by_name[name] if line.win_rate_ci is not None)
    shown = " and ".join(line.operator for line in by_name[name])
    return name, f"above {100 * lowest:.1f} % under {shown}, and ahead of all others there"


def _is_supported(line: SummaryLine) -> bool:
    return (
        line.win_rate_ci is not None
        and line.win_rate_ci.low > POSITIVE_EVIDENCE
        and line.p_adjusted is not None
        and line.p_adjusted <= LEVEL
    )


def _not_beaten(run: GridRun, own: Sequence[SummaryLine], by_name: Mapping[str, Sequence[SummaryLine]]) -> list[str]:
    """The attributions that this one is not surely ahead of under every operator."""
    found = []
    for other, lines in by_name.items():
        theirs = {line.operator: line for line in lines}
        ahead = [line.operator in theirs and _is_ahead(run, line, theirs[line.operator]) for line in own]
        if other != own[0].attribution and not all(ahead):
            found.append(other)
    return found


def _is_ahead(run: GridRun, line: SummaryLine, other: SummaryLine) -> bool:
    first, second = (run.win_rates[each.configuration] for each in (line, other))
    shared = [each for each in first if each in second]
    if not shared:
        return False
    rates = (np.array([each[name] for name in shared]) for each in (first, second))
    seed = run.folder.manifest().config.seed
    groups = groups_of([run.inputs[name] for name in shared])
    interval = stats.difference_interval(*rates, rng=rng_for(seed, "guidelines"), groups=groups)
    return interval is not None and interval.low > 0
