"""How far accuracy, confidence and win rates of a grid move with the wording of a prompt."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.analysis.across._base import GridResults, GridRun
from ice_eval.analysis.grid import Cell
from ice_eval.analysis.measures import Column, Found, Missing, Part, naming
from ice_eval.analysis.sensitivity import Spread, spreads
from ice_eval.seeding import rng_for

_PLACE = ("attribution", "null", "operator", "direction", "k")
_SPREAD_COLUMNS = (
    *naming(*_PLACE),
    Column("n_prompts", "prompts", "count"),
    Column("lowest", "lowest", "percent"),
    Column("lowest_prompt", "under", "text"),
    Column("highest", "highest", "percent"),
    Column("highest_prompt", "under ", "text"),
    Column("width", "range", "points"),
)
_CORRELATION_COLUMNS = (
    *naming(*_PLACE),
    Column("n", "runs", "count"),
    Column("r", "r", "signed"),
)


def prompts(grid: GridResults) -> Found | Missing:
    """Accuracy, confidence and win rates under every prompt, their range, and whether confidence foretells them."""
    found = spreads(grid.cells, over="prompt")
    if not found:
        return Missing("no task has two prompts; name several as `prompts`")
    varied = {cell for spread in found for cell in spread.cells}
    cells = [cell for cell in grid.cells if cell in varied]
    facts = {(run.model, run.task, run.prompt): (_accuracy(grid, run), run.confidence) for run in grid.runs}
    parts = [
        Part("Prompts", _columns(cells), tuple(_lines(cells, facts))),
        Part("Sensitivity to the prompt", _SPREAD_COLUMNS, tuple(map(_spread, found))),
    ]
    notes = ["Confidence is the mean probability of the explained label on whole texts."]
    correlations = tuple(_correlations(cells, {place: each for place, (_, each) in facts.items()}))
    if correlations:
        parts.append(Part("Confidence and win rate, over prompts", _CORRELATION_COLUMNS, correlations))
        notes.append("Runs of one model or task share more than a prompt: read r over them as a description.")
    if _contrast(cells):
        notes.append("Δ is the win rate of attention less that of gradient.")
    return Found(tuple(parts), tuple(notes))


def _attributions(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.attribution for cell in cells))


def _contrast(cells: list[Cell]) -> bool:
    return {"attention", "gradient"} <= set(_attributions(cells))


def _columns(cells: list[Cell]) -> tuple[Column, ...]:
    return (
        *naming("prompt", "operator", "null", "direction", "k"),
        Column("accuracy", "accuracy", "percent"),
        Column("confidence", "confidence", "percent"),
        *(Column(name, name, "percent") for name in _attributions(cells)),
        *([Column("difference", "Δ", "points")] if _contrast(cells) else []),
    )


def _lines(cells: list[Cell], facts: Mapping[Any, tuple[float | None, float | None]]) -> Iterator[dict[str, Any]]:
    """One line for each prompt and operator, the attributions side by side."""
    names = _attributions(cells)
    by_place: dict[tuple[Any, ...], dict[str, float]] = {}
    for cell in cells:
        place = (cell.model, cell.task, cell.prompt, cell.operator, cell.null, cell.direction, cell.k)
        by_place.setdefault(place, {})[cell.attribution] = cell.win_rate
    for place, rates_here in sorted(by_place.items(), key=lambda item: tuple(map(str, item[0]))):
        accuracy, confidence = facts[place[:3]]
        line = dict(zip(("model", "task", "prompt", "operator", "null", "direction", "k"), place, strict=True))
        line |= {"accuracy": accuracy, "confidence": confidence, **{name: rates_here.get(name) for name in names}}
        if _contrast(cells):
            both = [rates_here.get(name) for name in ("attention", "gradient")]
            line["difference"] = None if None in both else rates_here["attention"] - rates_here["gradient"]
        yield line


def _accuracy(grid: GridResults, run: GridRun) -> float | None:
    """Of the configuration with the most examples: where some drop out for one attribution, the others have more."""
    lines = [line for line in grid.lines_of(run) if line.accuracy is not None]
    return max(lines, key=lambda line: line.n).accuracy if lines else None


def _spread(found: Spread) -> dict[str, Any]:
    return {
        **{name: getattr(found.lowest, name) for name in ("model", "task", *_PLACE)},
        "n_prompts": len(found.cells),
        "lowest": found.lowest.win_rate,
        "lowest_prompt": found.lowest.prompt,
        "highest": found.highest.win_rate,
        "highest_prompt": found.highest.prompt,
        "width": found.width,
    }


def _correlations(cells: list[Cell], confidence: Mapping[Any, float | None]) -> Iterator[dict[str, Any]]:
    """Pearson's r of confidence and win rate over all prompts of all tasks; a handful of prompts says nothing."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(getattr(cell, name) for name in _PLACE), []).append(cell)
    for place, group in groups.items():
        pairs = [(confidence[cell.model, cell.task, cell.prompt], cell.win_rate) for cell in group]
        known = np.array([(x, y) for x, y in pairs if x is not None])
        found = stats.correlate(*known.T, rng=rng_for(0, "prompts")) if len(known) else None
        if found is not None and found.r is not None:
            yield {**dict(zip(_PLACE, place, strict=True)), "n": found.n, "r": found.r}
