"""A text with its attribution, and a null as a few bars: what a terminal and a notebook both draw."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ice_eval.records import Span
from ice_eval.report.colours import TAXONOMY_COLOURS
from ice_eval.results import ExampleOutcome, ExampleView
from ice_eval.results.view import Scores

SUPPORT = TAXONOMY_COLOURS["faithful"]
"""Shade of units that speak for the explained label."""
AGAINST = TAXONOMY_COLOURS["anti-faithful"]
"""Shade of units that speak against it."""
N_BINS = 24
LARGEST_LOG_ODDS = 30.0
"""Log-odds beyond this are drawn as this: the probability is 1 to the thirteenth digit."""


class Piece(NamedTuple):
    """A stretch of text: a unit, or what lies between two."""

    text: str
    strength: float
    """Of the unit's attribution, from -1 to 1: the largest of the text, in size, is 1."""
    in_rationale: bool


class Histogram(NamedTuple):
    """The null of one example, and where the rationale lies."""

    counts: tuple[int, ...]
    place: int
    """The bin of the rationale."""
    low: float
    """Probability at the left end."""
    high: float
    rationale: float
    """Probability of the label for the rationale."""
    null: tuple[float, float]
    """The lowest and the highest probability of a random set."""


def pieces(view: ExampleView, line: ExampleOutcome) -> Iterator[tuple[str, list[Piece]]]:
    """Every explained field with its text in pieces, as one configuration sees it."""
    example = view.example
    values = np.array(example.attributions.get(line.attribution, ()), dtype=np.float64)
    strengths = np.zeros(len(example.spans)) if values.size != len(example.spans) else _scaled(values)
    rationale = set(line.rationale)
    for name, text in example.fields.items():
        spans = [(unit, span) for unit, span in enumerate(example.spans) if span.field == name]
        if spans:
            cut = cut_at_units(text, spans)
            yield name, [Piece(part, float(strengths[u]) if u >= 0 else 0.0, u in rationale) for part, u in cut]


def cut_at_units(text: str, spans: Sequence[tuple[int, Span]]) -> list[tuple[str, int]]:
    """A text in pieces, each with its unit; -1 is what stands between units.

    It is cut here also for the page, because a browser counts characters in another way than Python.
    """
    found, place = list[tuple[str, int]](), 0
    for unit, span in sorted(spans, key=lambda each: each[1].start):
        found += [(text[place : span.start], -1), (text[max(span.start, place) : span.end], unit)]
        place = max(place, span.end)
    return [(piece, unit) for piece, unit in (*found, (text[place:], -1)) if piece]


def histogram(scores: Scores) -> Histogram:
    """The null in bins of equal width on the scale of log-odds, which does not saturate."""
    values = np.clip(np.append(scores.null, scores.rationale), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)
    counts, _ = np.histogram(values[:-1], bins=edges)
    place = int(np.clip(np.searchsorted(edges, values[-1], side="right") - 1, 0, N_BINS - 1))
    lowest, highest = _probability(float(values[:-1].min())), _probability(float(values[:-1].max()))
    return Histogram(
        counts=tuple(counts.tolist()),
        place=place,
        low=_probability(low),
        high=_probability(high),
        rationale=_probability(float(values[-1])),
        null=(lowest, highest),
    )


def _scaled(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    finite = np.where(np.isfinite(values), values, 0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    return finite / largest if largest > 0 else finite


def _probability(log_odds: float) -> float:
    return float(1 / (1 + np.exp(-log_odds)))
