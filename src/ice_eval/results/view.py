"""All data of one example, for display."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.records import Kind
from ice_eval.results.comparisons import Reading, ScoredExamples
from ice_eval.results.examples import Examples, InputRow
from ice_eval.results.folder import RunFolder
from ice_eval.results.ledger import LedgerRow
from ice_eval.results.records import Configuration, ExampleOutcome, RunSettings
from ice_eval.results.summary import configurations, names_of
from ice_eval.words import runs_on


class Scores(NamedTuple):
    """Log-odds of the target for a rationale and for the sets of its null."""

    rationale: float
    null: NDArray[np.float64]
    sets: tuple[int, ...]
    """The `set` of the rows of the null."""


@dataclass(frozen=True)
class ComparedOutcome:
    """One configuration of an example."""

    line: ExampleOutcome
    """Row of `examples.parquet`."""
    scores: Scores | None
    """None if nothing was compared."""


@dataclass(frozen=True)
class ExampleView:
    """One example: its text, all its rows, and the scores of its rationales and their nulls."""

    example: InputRow
    labels: tuple[str, ...]
    rows: tuple[LedgerRow, ...]
    compared: tuple[ComparedOutcome, ...]

    def rationale_rows(self, line: ExampleOutcome) -> list[LedgerRow]:
        """Return the rows that keep, or remove, the rationale of one configuration."""
        place = (Kind.RATIONALE, line.attribution, line.operator, line.direction, len(line.rationale))
        names = ("kind", "attribution", "operator", "direction", "size")
        return [row for row in self.rows if tuple(getattr(row.key, name) for name in names) == place]

    @property
    def target(self) -> str:
        """The explained label."""
        return self.labels[self.example.target or 0]


def view_example(
    folder: RunFolder,
    example_id: str,
    *,
    attribution: str | None = None,
    operator: str | None = None,
    direction: str | None = None,
    k: float | None = None,
    null: str | None = None,
) -> ExampleView:
    """Return one example, under all or the selected configurations.

    Raises:
        ConfigError: The run is not finished, or holds no such example or configuration.
    """
    folder.require_complete()
    manifest = folder.manifest()
    config = manifest.config
    chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
    cells = _chosen(folder, config, {name: value for name, value in chosen.items() if value is not None})
    example, part = _find(folder, example_id)
    ledger = folder.ledger(part, names_of(config, (example_id,)), inputs=True)
    ledger = ledger.take(np.flatnonzero(ledger.head["example"] == 0))
    scored = ScoredExamples(Examples.of([example]), ledger, Reading.of(config))
    operators, compared = dict(configurations(config)), []
    for line in folder.examples():
        cell = line.configuration
        if line.example_id == example_id and cell in cells:
            scores = None
            if line.error is None:
                found = scored.compared(cell, operators[cell])
                n, values = min(line.m, int(found.n[0])), found.log_odds[0]  # a test may stop before the last set
                scores = Scores(float(values[0]), values[1 : 1 + n], tuple(found.sets[0, :n].tolist()))
            compared.append(ComparedOutcome(line, scores))
    rows = [row._replace(text=shown_text(example, row)) for row in ledger.records()]
    return ExampleView(example, manifest.labels, tuple(rows), tuple(compared))


def shown_text(example: InputRow, row: LedgerRow) -> str:
    """Return the text of a row: kept units unchanged, others removed or filled; unknown fills are an ellipsis."""
    if row.text is not None:
        return row.text
    kept = range(len(example.spans)) if row.key.kind == Kind.FULL else set(row.kept)
    fills = next((f.texts for f in example.fills if (f.operator, f.draw) == (row.key.operator, row.key.draw)), None)
    removes = fills is None and row.key.operator in (None, "delete")
    if row.key.kind == Kind.PROBE:
        fills = None  # probes have fills of their own, which are not stored
    names = dict.fromkeys(span.field for span in example.spans)
    return "\n".join(_field_text(example, name, kept, fills, removes=removes) for name in names)


def _field_text(
    example: InputRow, name: str, kept: Container[int], fills: Sequence[str] | None, *, removes: bool
) -> str:
    text, shown, end, was_filled = example.fields[name], "", 0, False
    for unit, span in enumerate(example.spans):
        if span.field != name:
            continue
        gap = text[end : span.start] if span.start >= end else " "
        end, is_filled = span.end, unit not in kept
        if is_filled and removes:
            continue
        piece = text[span.start : span.end]
        if is_filled:
            piece = "…" if fills is None else fills[unit].strip()
        # A fill is a unit of its own: it must not look like a part of the word beside it.
        apart = not gap and (is_filled or was_filled) and runs_on(shown, piece)
        shown += (" " if apart else gap) + piece
        was_filled = is_filled
    return shown.strip()


def _chosen(folder: RunFolder, config: RunSettings, wanted: Mapping[str, object]) -> set[Configuration]:
    cells = [cell for cell, _ in configurations(config)]
    for name, value in wanted.items():
        # A rationale that sets its own size has no k: it is selected by its attribution.
        known = [each for each in dict.fromkeys(getattr(cell, name) for cell in cells) if each is not None]
        if value not in known:
            names = [str(each) for each in known]
            meant = did_you_mean(value, names) if isinstance(value, str) else "."
            raise ConfigError(f"{folder.path} has no {name} '{value}'{meant} It has {', '.join(names)}.")
    return {cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())}


def _find(folder: RunFolder, example_id: str) -> tuple[InputRow, int]:
    """Return an example and its part."""
    known: list[str] = []
    for part in folder.parts():
        for row in folder.inputs(part):
            if row.example_id == example_id:
                return row, part
            known.append(row.example_id)
    raise ConfigError(
        f"no example '{example_id}' in {folder.path}{did_you_mean(example_id, known)} "
        f"It holds {len(known)}, from '{known[0]}' to '{known[-1]}'."
    )
