"""One example as a plain, compact record: what the example browser of the page reads of it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ice_eval.report.highlight import LARGEST_LOG_ODDS, cut_at_units
from ice_eval.results import ExampleOutcome, InputRow, RunSettings
from ice_eval.results.agreements import disagreements
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import configurations
from ice_eval.results.view import shown_text

Record = dict[str, Any]

COLUMNS = (
    "win_rate", "ties", "p", "p_lower", "effect_size", "score", "disagree", "rationale", "null", "text", "random",
)  # fmt: skip
"""What a cell holds, in this order. The last four are places in the example's own lists."""
N_RANDOM_TEXTS = 2
LONGEST_TEXT = 600
"""Characters of a counterfactual that are shown; `ice show` prints the rest."""


def example_record(example: InputRow, place: int, part: "PartRows", outcomes: Sequence[ExampleOutcome]) -> Record:
    """One example: its text in pieces, its attributions, and a cell for every configuration.

    Equal texts, nulls and rationales are kept once: the null is shared by the attributions.
    """
    first = next((line for line in outcomes if line.error is None), None)
    lists = _Lists()
    cells = [
        _cell(example, place, part, lists, line, disagree=disagree) if line.error is None else line.error
        for line, disagree in zip(outcomes, disagreements(outcomes), strict=True)
    ]
    return {
        "id": example.example_id,
        "fields": [_field(name, text, example) for name, text in example.fields.items()],
        "gold": example.gold,
        "target": example.target,
        "full": None if first is None else scaled(_log_odds(first.score_full)),
        "empty": None if first is None else scaled(_log_odds(first.score_empty)),
        "flags": _flags(example, first),
        "skip": example.skip_reason,
        "vectors": {name: [_short(value) for value in values] for name, values in example.attributions.items()},
        "texts": lists.texts.values,
        "nulls": lists.nulls.values,
        "rationales": lists.rationales.values,
        "cells": cells,
    }


class PartRows:
    """The rows of a part, and what is compared under each configuration."""

    def __init__(self, scored: ScoredExamples, config: RunSettings) -> None:
        self.ledger = scored.ledger
        self.compared = {
            cell: scored.compared(cell, operators) for cell, operators in configurations(config) if cell.operator != ALL
        }

    def text(self, example: InputRow, row: int) -> str:
        """Return what a row showed the model."""
        [record] = self.ledger.records(np.array([row]))
        return shortened(shown_text(example, record))


class _Interned:
    """Values in the order they came, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        key = tuple(value) if isinstance(value, list) else value
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


class _Lists:
    """Values that the cells of one example point to."""

    def __init__(self) -> None:
        self.texts, self.nulls, self.rationales = _Interned(), _Interned(), _Interned()


def _cell(
    example: InputRow, place: int, part: PartRows, lists: _Lists, line: ExampleOutcome, *, disagree: bool
) -> list[Any]:
    """The numbers of one configuration, and where its texts and scores are."""
    cell = line.configuration
    numbers = [round(value, 4) for value in (line.win_rate, line.tie_rate, line.p_value, line.p_lower)]
    effect = None if line.effect_size is None else round(line.effect_size, 2)
    rationale = lists.rationales.place(list(line.rationale))
    if cell.operator == ALL:  # the operators are shown side by side, each with its own rows
        return [*numbers, effect, scaled(_log_odds(line.score)), int(disagree), rationale, None, None, []]
    found = part.compared[cell]
    values, rows = found.log_odds[place], found.null_rows[place, : min(N_RANDOM_TEXTS, line.m)]
    return [
        *numbers,
        effect,
        scaled(float(values[0])),
        int(disagree),
        rationale,
        lists.nulls.place([scaled(value) for value in values[1 : 1 + line.m].tolist()]),
        lists.texts.place(part.text(example, int(found.rationale[place]))),
        [lists.texts.place(part.text(example, row)) for row in rows.tolist()],
    ]


def _field(name: str, text: str, example: InputRow) -> Record:
    """A field in pieces; `units` says which piece is which unit, and -1 is what stands between them."""
    cut = cut_at_units(text, [(unit, span) for unit, span in enumerate(example.spans) if span.field == name])
    return {
        "name": name,
        "pieces": [piece for piece, _ in cut],
        "units": [unit for _, unit in cut],
        "human": [text[span.start : span.end] for span in example.human if span.field == name],
    }


def _flags(example: InputRow, first: ExampleOutcome | None) -> list[str]:
    """What a reader should know of the example, whatever the attribution."""
    found = [] if first is None else [flag for flag in first.flags if flag != "ties"]
    return [*found, "truncated"] if example.truncated else found


def scaled(log_odds: float) -> int:
    """Thousandths: four digits are enough to draw, and take half the space of a fraction."""
    return round(1000 * min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"


def _short(value: float) -> float | None:
    """Three significant digits; None for what is no number."""
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _log_odds(probability: float) -> float:
    if probability in (0.0, 1.0):
        return LARGEST_LOG_ODDS if probability else -LARGEST_LOG_ODDS
    return math.log(probability) - math.log1p(-probability)
