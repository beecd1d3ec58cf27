"""One example of a run with all that is known of it, for people to look at."""

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
from ice_eval.results.ledger import Ledger, LedgerRow
from ice_eval.results.records import Configuration, ExampleOutcome, RunSettings
from ice_eval.results.summary import configurations, names_of
from ice_eval.words import runs_on


class Scores(NamedTuple):
    """What a rationale and its null scored, as log-odds of the target: the same order, and no saturation."""

    rationale: float
    null: NDArray[np.float64]
    sets: tuple[int, ...]
    """Places of the null's sets in their order, the `set` of their rows."""


@dataclass(frozen=True)
class Compared:
    """One configuration of an example."""

    line: ExampleOutcome
    """As `examples.parquet` has it."""
    scores: Scores | None
    """What the rationale and the sets of its null scored; None where nothing was compared."""


@dataclass(frozen=True)
class ExampleView:
    """One example: its text, every row that was scored, and what its rationales were compared with."""

    example: InputRow
    labels: tuple[str, ...]
    rows: tuple[LedgerRow, ...]
    compared: tuple[Compared, ...]

    def rationale_rows(self, line: ExampleOutcome) -> list[LedgerRow]:
        """Return the rows that keep, or remove, the rationale of one configuration."""
        place = (Kind.RATIONALE, line.attribution, line.operator, line.direction, len(line.rationale))
        names = ("kind", "attribution", "operator", "direction", "size")
        return [row for row in self.rows if tuple(getattr(row.key, name) for name in names) == place]

    @property
    def target(self) -> str:
        """The label that is explained."""
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
    """Look at one example, under all configurations or those that are chosen.

    Raises:
        ConfigError: The run is not finished, or holds no such example or configuration.
    """
    folder.require_complete()
    manifest = folder.manifest()
    config = manifest.config
    chosen = {"attribution": attribution, "operator": operator, "direction": direction, "k": k, "null": null}
    cells = _chosen(folder, config, {name: value for name, value in chosen.items() if value is not None})
    example, ledger = _find(folder, example_id, config)
    scored = ScoredExamples(Examples.of([example]), ledger, Reading.of(config))
    operators = dict(configurations(config))
    compared = []
    for line in folder.examples():
        cell = line.configuration
        if line.example_id == example_id and cell in cells:
            scores = None if line.error is not None else scores_of(scored, 0, cell, operators[cell], line.m)
            compared.append(Compared(line, scores))
    rows = [row._replace(text=shown_text(example, row)) for row in ledger.records()]
    return ExampleView(example, manifest.labels, tuple(rows), tuple(compared))


def scores_of(scored: ScoredExamples, place: int, cell: Configuration, operators: Sequence[str], m: int) -> Scores:
    """Return what was compared for one example; `m` sets were looked at, and a test may stop before the last."""
    found = scored.compared(cell, operators)
    n = min(m, int(found.n[place]))
    values = found.log_odds[place]
    return Scores(float(values[0]), values[1 : 1 + n], tuple(found.sets[place, :n].tolist()))


def shown_text(example: InputRow, row: LedgerRow) -> str:
    """Return what a row shows: units that are kept as they are in the text, others removed or as they were filled.

    A fill that is not known, as that of a probe, is shown as an ellipsis.
    """
    if row.text is not None:
        return row.text
    if row.key.kind == Kind.FULL:
        kept = set(range(len(example.spans)))
    else:
        kept = set(row.kept)
    fills = next((f.texts for f in example.fills if (f.operator, f.draw) == (row.key.operator, row.key.draw)), None)
    own = row.key.kind == Kind.PROBE and fills is not None  # probes have fills of their own
    removes = fills is None and row.key.operator in (None, "delete")
    return "\n".join(
        _field_text(example, name, kept, None if own else fills, removes=removes)
        for name in dict.fromkeys(span.field for span in example.spans)
    )


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
        # A rationale of its own size has no k: it is chosen by its attribution.
        known = [each for each in dict.fromkeys(getattr(cell, name) for cell in cells) if each is not None]
        if value not in known:
            names = [str(each) for each in known]
            meant = did_you_mean(value, names) if isinstance(value, str) else "."
            raise ConfigError(f"{folder.path} has no {name} '{value}'{meant} It has {', '.join(names)}.")
    return {cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())}


def _find(folder: RunFolder, example_id: str, config: RunSettings) -> tuple[InputRow, Ledger]:
    known: list[str] = []
    for part in folder.parts():
        for row in folder.inputs(part):
            if row.example_id == example_id:
                return row, _rows_of(folder, part, example_id, config)
            known.append(row.example_id)
    raise ConfigError(
        f"no example '{example_id}' in {folder.path}{did_you_mean(example_id, known)} "
        f"It holds {len(known)}, from '{known[0]}' to '{known[-1]}'."
    )


def _rows_of(folder: RunFolder, part: int, example_id: str, config: RunSettings) -> Ledger:
    """Return the rows of one example, as those of the only one."""
    ledger = folder.ledger(part, names_of(config, (example_id,)), inputs=True)
    return ledger.take(np.flatnonzero(ledger.head["example"] == 0))
