"""The examples of runs for the example browser of the page: all of them, or the most telling ones that fit."""

import itertools
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ice_eval.files import as_text
from ice_eval.protocols import PROTOCOLS
from ice_eval.report.chains import chain_record
from ice_eval.report.embed import script_json
from ice_eval.report.example_record import COLUMNS, PartRows, Record, example_record
from ice_eval.report.run_names import run_names
from ice_eval.results import Configuration, ExampleOutcome, RunFolder
from ice_eval.results.comparisons import Reading, ScoredExamples
from ice_eval.results.outcomes import ALL
from ice_eval.results.summary import COMPARED, configurations, names_of

BUDGET = 3_600_000
"""Bytes that the examples of a page may take; with the figures' library the page then stays below 5 MB."""


def browser_data(folders: Sequence[RunFolder], *, budget: int = BUDGET) -> Record:
    """Everything that the browser shows, a share of the budget for each run."""
    runs = [
        {"title": f"{model} on {task}", **run_record(folder, budget=budget // len(folders))}
        for folder, (model, task) in zip(folders, run_names(folders), strict=True)
    ]
    return {"columns": COLUMNS, "runs": runs}


def run_record(folder: RunFolder, *, budget: int) -> Record:
    """The examples of one run, and what its selectors offer."""
    manifest = folder.manifest()
    config = manifest.config
    return {
        "folder": as_text(Path(folder.path.name)),
        "labels": list(manifest.labels),
        "chains": manifest.chains is not None,
        "language": _language(manifest.language),
        "configurations": [cell._asdict() for cell, _ in configurations(config)],
        "strict": PROTOCOLS[config.protocol].strict,
        "total": manifest.data.examples,
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
    config, of_chains = manifest.config, manifest.chains is not None
    n_cells, lines, place = len(configurations(config)), folder.examples(), 0
    for part in folder.parts():
        inputs = folder.inputs(part)
        outcomes = [list(itertools.islice(lines, n_cells)) for _ in inputs]
        chosen = [only is None or place + index in only for index in range(len(inputs))]
        place += len(inputs)
        if not any(chosen):
            continue
        examples = folder.columns(part)
        ledger = folder.ledger(part, names_of(config, examples.ids), kinds=None if of_chains else COMPARED)
        rows = PartRows(ScoredExamples(examples, ledger, Reading.of(config)), config)
        for index in itertools.compress(range(len(inputs)), chosen):
            own = ledger.records(np.flatnonzero(ledger.head["example"] == index)) if of_chains else ()
            chain = {"chain": chain_record(inputs[index], own, config)} if of_chains else {}
            record = example_record(inputs[index], index, rows, outcomes[index])
            yield {**record, **chain, "ranks": _ranks(outcomes[index])}


def _ranks(outcomes: Sequence[ExampleOutcome]) -> tuple[float, float, float]:
    """What makes an example worth a look; smaller comes first: skipped, beaten by random sets, disagreement."""
    rates = [line.win_rate for line in outcomes if line.error is None]
    groups: dict[Configuration, list[float]] = {}
    for line in outcomes:
        if line.error is None and line.operator != ALL:
            groups.setdefault(line.configuration._replace(operator=""), []).append(line.win_rate)
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
