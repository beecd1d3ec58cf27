"""One example as a plain, compact record: what the example browser of the page reads of it."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ice_eval import stats
from ice_eval.protocols import PROTOCOLS
from ice_eval.report.highlight import LARGEST_LOG_ODDS, cut_at_units
from ice_eval.results import InputRow, LedgerRow, RowKey
from ice_eval.results.comparisons import ExampleLedger
from ice_eval.results.outcomes import ALL, Configuration
from ice_eval.results.schema import null_kind, rationale_kind
from ice_eval.results.summary import configurations

Record = dict[str, Any]

COLUMNS = (
    "win_rate", "ties", "p", "p_lower", "effect_size", "score", "disagree", "rationale", "null", "text", "random",
)  # fmt: skip
"""What a cell holds, in this order. The last four are places in the example's own lists."""
N_RANDOM_TEXTS = 2
LONGEST_TEXT = 600
"""Characters of a counterfactual that are shown; `ice show` prints the rest."""


def example_record(
    ledger: ExampleLedger, rows: Sequence[LedgerRow], outcomes: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> Record:
    """One example: its text in pieces, its attributions, and a cell for every configuration.

    Equal texts, nulls and rationales are kept once: the null is shared by the attributions.
    """
    example, first = ledger.example, next((line for line in outcomes if "error" not in line), None)
    lists = _Lists({row.key: row for row in rows})
    cells = [
        line["error"] if "error" in line else _cell(ledger, lists, line, cell, operators, config)
        for line, (cell, operators) in zip(outcomes, configurations(config), strict=True)
    ]
    _mark_disagreement(cells, outcomes, config)
    return {
        "id": example.example_id,
        "fields": [_field(name, text, example) for name, text in example.fields.items()],
        "gold": example.gold,
        "target": example.target,
        "full": None if first is None else scaled(_log_odds(first["score_full"])),
        "empty": None if first is None else scaled(_log_odds(first["score_empty"])),
        "flags": _flags(example, first),
        "skip": example.skip_reason,
        "vectors": {name: [_short(value) for value in values] for name, values in example.attributions.items()},
        "texts": lists.texts.values,
        "nulls": lists.nulls.values,
        "rationales": lists.rationales.values,
        "cells": cells,
    }


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
    """What the cells of one example point to, and the rows it is taken from."""

    def __init__(self, rows: Mapping[RowKey, LedgerRow]) -> None:
        self.rows = rows
        self.texts, self.nulls, self.rationales = _Interned(), _Interned(), _Interned()

    def text(self, key: RowKey) -> int | None:
        row = self.rows.get(key)
        return None if row is None or row.text is None else self.texts.place(shortened(row.text))


def _cell(
    ledger: ExampleLedger,
    lists: _Lists,
    line: Mapping[str, Any],
    cell: Configuration,
    operators: Sequence[str],
    config: Mapping[str, Any],
) -> list[Any]:
    """The numbers of one configuration, and where its texts and scores are."""
    numbers = [round(line[name], 4) for name in ("win_rate", "tie_rate", "p_value", "p_lower")]
    effect = None if line["effect_size"] is None else round(line["effect_size"], 2)
    rationale = lists.rationales.place(line["rationale"])
    if cell.operator == ALL:  # the operators are shown side by side, each with its own rows
        return [*numbers, effect, scaled(_log_odds(line["score"])), 0, rationale, None, None, []]
    found = ledger.scores(cell, operators, config["m"])
    assert found is not None, "a line with numbers has rows"
    example, direction = ledger.example, cell.direction
    place = (cell.operator, direction, len(line["rationale"]))
    random = null_kind(cell.attribution, cell.null, PROTOCOLS[config.get("protocol", "default")])
    texts = [lists.text(RowKey(example.example_id, random, *place, index, 0)) for index in found.sets[:N_RANDOM_TEXTS]]
    return [
        *numbers,
        effect,
        scaled(found.rationale),
        0,
        rationale,
        lists.nulls.place([scaled(value) for value in found.null[: line["m"]]]),
        lists.text(RowKey(example.example_id, rationale_kind(cell.attribution), *place, None, 0)),
        texts,
    ]


def _mark_disagreement(cells: list[Any], outcomes: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> None:
    """Note in the cells of an attribution that two of its operators lie on opposite sides of chance."""
    place, behind = COLUMNS.index("disagree"), [_sets_behind(line, config) for line in outcomes]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, (cell, _) in enumerate(configurations(config)):
        groups.setdefault((cell.attribution, cell.null, cell.direction, cell.k), []).append(index)
    for group in groups.values():
        single = [i for i in group if outcomes[i]["operator"] != ALL and "error" not in outcomes[i]]
        rates = [np.array([outcomes[i]["win_rate"]]) for i in single]
        if any(
            stats.sides_differ(rates[a], rates[b], behind[single[a]], behind[single[b]]).item()
            for a, b in itertools.combinations(range(len(single)), 2)
        ):
            for index in group:
                if not isinstance(cells[index], str):
                    cells[index][place] = 1


def _sets_behind(line: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    """Random sets behind a win rate; all sets there are leave no doubt, as very many would."""
    drawn: int = line.get("m", 0)
    return 1e12 if config.get("adaptive") is None and drawn < config["m"] else drawn


def _field(name: str, text: str, example: InputRow) -> Record:
    """A field in pieces; `units` says which piece is which unit, and -1 is what stands between them."""
    cut = cut_at_units(text, [(unit, span) for unit, span in enumerate(example.spans) if span.field == name])
    return {
        "name": name,
        "pieces": [piece for piece, _ in cut],
        "units": [unit for _, unit in cut],
        "human": [text[span.start : span.end] for span in example.human if span.field == name],
    }


def _flags(example: InputRow, first: Mapping[str, Any] | None) -> list[str]:
    """What a reader should know of the example, whatever the attribution."""
    found = [] if first is None else [flag for flag in first["flags"] if flag != "ties"]
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
