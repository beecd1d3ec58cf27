"""The examples of a run as plain, compact records: what the example browser of the page reads."""

import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval._files import as_text
from ice_eval.nulls import SIZE
from ice_eval.protocols import PROTOCOLS
from ice_eval.records import Span
from ice_eval.report.chains import chain_record
from ice_eval.report.embed import script_json
from ice_eval.report.run_names import run_names
from ice_eval.results import InputRow, LedgerRow, RowKey, RunFolder
from ice_eval.results.comparisons import ALL, Configuration, ExampleLedger, examples_of
from ice_eval.results.schema import null_kind, rationale_kind
from ice_eval.results.summary import configurations

Record = dict[str, Any]

BUDGET = 3_600_000
"""Bytes that the examples of a page may take; with the figures' library the page then stays below 5 MB."""
COLUMNS = (
    "win_rate", "ties", "p", "p_lower", "effect_size", "score", "disagree", "rationale", "null", "text", "random",
)  # fmt: skip
"""What a cell holds, in this order. The last four are places in the example's own lists."""
N_RANDOM_TEXTS = 2
LONGEST_TEXT = 600
"""Characters of a counterfactual that are shown; `ice show` prints the rest."""
_LARGEST = 30.0
"""Log-odds beyond this are drawn as this: the probability is 1 to the thirteenth digit."""


def browser_data(folders: Sequence[RunFolder], *, budget: int = BUDGET) -> Record:
    """Everything that the browser shows, a share of the budget for each run."""
    runs = [
        {"title": f"{model} on {task}", **run_record(folder, budget=budget // len(folders))}
        for folder, (model, task) in zip(folders, run_names(folders), strict=True)
    ]
    return {"columns": COLUMNS, "runs": runs}


def run_record(folder: RunFolder, *, budget: int) -> Record:
    """The examples of one run, and what its selectors offer."""
    manifest, config = folder.manifest(), folder.manifest()["config"]
    return {
        "folder": as_text(Path(folder.path.name)),
        "labels": manifest["labels"],
        "chains": "cot" in manifest,
        "language": _language(manifest.get("language", "und")),
        "configurations": [cell._asdict() for cell, _ in configurations(config)],
        "strict": PROTOCOLS[config.get("protocol", "default")].strict,
        "total": manifest["data"]["examples"],
        "examples": _examples(folder, budget=budget),
    }


def _language(said: str) -> str | None:
    """What a page may say of its texts: fonts, hyphens and screen readers go by it."""
    return None if said == "und" else said


def _examples(folder: RunFolder, *, budget: int) -> list[Record]:
    """The examples of a run that fit. Where not all do, the chosen ones are read again: not all are ever held."""
    kept, sketches, total = list[Record](), list[Sketch](), 0
    for record in example_records(folder):
        sketches.append(sketch_of(record))
        total += sketches[-1].size
        if total <= budget:
            kept.append(record)
    if total > budget:
        kept.clear()
        kept.extend(example_records(folder, only=set(within(sketches, budget=budget))))
    return [_without_ranks(record) for record in kept]


def example_records(folder: RunFolder, *, only: Container[int] | None = None) -> Iterator[Record]:
    """Every example of a run, or those at some places, in the order of the data."""
    manifest = folder.manifest()
    config, of_chains = manifest["config"], "cot" in manifest
    n_cells, lines, place = len(configurations(config)), folder.examples(), 0
    for part in folder.parts():
        inputs = folder.inputs(part)
        outcomes = [list(itertools.islice(lines, n_cells)) for _ in inputs]
        chosen = [only is None or place + index in only for index in range(len(inputs))]
        place += len(inputs)
        rows = folder.ledger(part, texts=True, probes=of_chains) if any(chosen) else []
        by_example: dict[str, list[LedgerRow]] = {}
        for row in rows:
            by_example.setdefault(row.key.example_id, []).append(row)
        for ledger, found in itertools.compress(zip(examples_of(inputs, rows, config), outcomes, strict=True), chosen):
            own = by_example.get(ledger.example.example_id, ())
            record = example_record(ledger, own, found, config)
            yield {**record, "chain": chain_record(ledger.example, own, config)} if of_chains else record


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
        "ranks": _ranks(outcomes),
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
    pieces, units = pieces_of(text, [(unit, span) for unit, span in enumerate(example.spans) if span.field == name])
    human = [(span.start, span.end) for span in example.human if span.field == name]
    return {"name": name, "pieces": pieces, "units": units, "human": [text[start:end] for start, end in human]}


def pieces_of(text: str, spans: Sequence[tuple[int, Span]]) -> tuple[list[str], list[int]]:
    """A text cut at its units. Cut here, because a browser counts characters in another way than Python."""
    pieces, units, place = list[str](), list[int](), 0
    for unit, span in sorted(spans, key=lambda each: each[1].start):
        if span.start > place:
            pieces.append(text[place : span.start])
            units.append(-1)
        pieces.append(text[span.start : span.end])
        units.append(unit)
        place = span.end
    if place < len(text):
        pieces.append(text[place:])
        units.append(-1)
    return pieces, units


def _flags(example: InputRow, first: Mapping[str, Any] | None) -> list[str]:
    """What a reader should know of the example, whatever the attribution."""
    found = [] if first is None else [flag for flag in first["flags"] if flag != "ties"]
    return [*found, "truncated"] if example.truncated else found


def scaled(log_odds: float) -> int:
    """Thousandths: four digits are enough to draw, and take half the space of a fraction."""
    return round(1000 * min(max(log_odds, -_LARGEST), _LARGEST))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " …"


def _short(value: float) -> float | None:
    """Three significant digits; None for what is no number."""
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _log_odds(probability: float) -> float:
    if probability in (0.0, 1.0):
        return _LARGEST if probability else -_LARGEST
    return math.log(probability) - math.log1p(-probability)


# --- which examples, where not all fit ---------------------------------------------------------------------------


def _ranks(outcomes: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """What makes an example worth a look; smaller comes first: skipped, beaten by random sets, disagreement."""
    rates = [line["win_rate"] for line in outcomes if "error" not in line]
    groups: dict[tuple[Any, ...], list[float]] = {}
    for line in outcomes:
        if "error" not in line and line["operator"] != ALL:
            key = (line["attribution"], line.get("null", SIZE), line["direction"], line["k"])
            groups.setdefault(key, []).append(line["win_rate"])
    gap = max((max(found) - min(found) for found in groups.values()), default=0.0)
    return (float(bool(rates)), min(rates, default=1.0), -gap)


class Sketch(NamedTuple):
    """What decides whether an example is shown."""

    size: int
    """Bytes as it stands in the page: a text full of "<" takes six times its length there."""
    ranks: tuple[float, float, float]


def sketch_of(record: Record) -> Sketch:
    return Sketch(len(script_json(_without_ranks(record)).encode()), record["ranks"])


def within(sketches: Sequence[Sketch], *, budget: int) -> list[int]:
    """The places of the examples that fit the budget, in the order of the data.

    Where not all fit they are taken in turn from four queues: the first in the data, the examples that were skipped,
    those with the lowest win rate, and those with the largest gap between operators.
    """
    numbers = range(len(sketches))
    if sum(sketch.size for sketch in sketches) <= budget:
        return list(numbers)
    queues = [list(numbers), *(sorted(numbers, key=lambda i, q=q: sketches[i].ranks[q]) for q in range(3))]  # type: ignore[misc]
    kept: dict[int, None] = {}
    for index in itertools.chain.from_iterable(zip(*queues, strict=True)):
        if index in kept:
            continue
        budget -= sketches[index].size
        if budget < 0:
            break
        kept[index] = None
    return sorted(kept)


def _without_ranks(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "ranks"}
