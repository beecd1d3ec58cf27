"""All data of one example, for display."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import did_you_mean
from ice_eval.errors import ConfigError
from ice_eval.records import PASSAGE_FIELD, Kind
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.examples import Examples, InputRow
from ice_eval.results.folder import RunFolder
from ice_eval.results.ledger import LedgerRow
from ice_eval.results.records import ClaimLine, Configuration, ExampleOutcome
from ice_eval.results.summary import configurations, names_of
from ice_eval.words import runs_on

QUESTION, ANSWER, CLAIM = "question", "answer", "claim"
"""Fields of a claim of a cited answer, beside its passages."""


class Scores(NamedTuple):
    """Log-odds of the target for a rationale and for the sets of its null."""

    rationale: float
    null: NDArray[np.float64]
    sets: tuple[int, ...]
    """The `set` of the rows of the null."""
    is_open: bool = False
    """True if they are mean log-probabilities per token in place of log-odds."""


class ShownPassage(NamedTuple):
    """A passage, or some of its sentences."""

    name: str
    """Name of the passage, as `2`, with the numbers of its sentences where not all of them are meant."""
    text: str


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
    claim: ClaimLine | None = None
    """Word and scores of a claim, where the run tests its citations."""

    @property
    def is_open(self) -> bool:
        """True if scores are mean log-probabilities per token."""
        return is_open(self.labels)

    @property
    def is_claim(self) -> bool:
        """True if the example is a claim of a cited answer."""
        return CLAIM in self.example.fields and any(name.startswith(PASSAGE_FIELD) for name in self.example.fields)

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
    cells = set(chosen_configurations(folder, **chosen))
    example, part = _find(folder, example_id)
    ledger = folder.ledger(part, names_of(config, (example_id,)), inputs=True)
    ledger = ledger.take(np.flatnonzero(ledger.head["example"] == 0))
    scored = ScoredExamples(Examples.of([example]), ledger, config)
    operators, compared = dict(configurations(config)), []
    for line in folder.examples():
        cell, scores = line.configuration, None
        if line.example_id != example_id or cell not in cells:
            continue
        if line.error is None:
            found = scored.compared(cell, operators[cell])
            n, values = min(line.m, int(found.n[0])), found.log_odds[0]  # a test may stop before the last set
            sets = tuple(found.sets[0, :n].tolist())
            scores = Scores(float(values[0]), values[1 : 1 + n], sets, is_open(manifest.labels))
        compared.append(ComparedOutcome(line, scores))
    rows = [row._replace(text=shown_text(example, row)) for row in ledger.records()]
    content = folder.summary().citations if config.subject == "context" else None
    claims = (line for line in content.claims if line.example_id == example_id) if content is not None else iter(())
    return ExampleView(example, manifest.labels, tuple(rows), tuple(compared), next(claims, None))


def is_open(labels: Sequence[str]) -> bool:
    """Return True if scores are mean log-probabilities per token of one given text, not of label words."""
    return len(labels) == 1


def passages_of(example: InputRow, units: Iterable[int]) -> list[ShownPassage]:
    """Return the passages of a claim that hold some units, each with the text of these units."""
    chosen, by_field = set(units), dict[str, list[int]]()
    for unit, span in enumerate(example.spans):
        by_field.setdefault(span.field, []).append(unit)
    found = []
    for field, own in by_field.items():
        numbers = [number for number, unit in enumerate(own, start=1) if unit in chosen]
        if numbers:
            some = f" ({'sentence' if len(numbers) == 1 else 'sentences'} {', '.join(map(str, numbers))})"
            name = field.removeprefix(PASSAGE_FIELD) + ("" if len(numbers) == len(own) else some)
            spans = [example.spans[own[number - 1]] for number in numbers]
            found.append(ShownPassage(name, " ".join(example.fields[field][each.start : each.end] for each in spans)))
    return found


def passages_named(example: InputRow, units: Iterable[int]) -> str:
    """Return the names of the passages that hold some units, as `2, 5 (sentence 1)`."""
    return ", ".join(passage.name for passage in passages_of(example, units))


def set_of(example: InputRow, row: LedgerRow) -> list[int]:
    """Return the units of a row's set: those that it keeps alone, or those that it removes."""
    removes, kept = row.key.direction == "necessity", set(row.kept)
    return [unit for unit in range(len(example.spans)) if (unit in kept) != removes]


def shown_text(example: InputRow, row: LedgerRow) -> str:
    """Return the text of a row: kept units unchanged, others removed or filled; unknown fills are an ellipsis."""
    if row.text is not None:
        return row.text
    kept = range(len(example.spans)) if row.key.kind == Kind.FULL else set(row.kept)
    fills = next((f.texts for f in example.fills if (f.operator, f.draw) == (row.key.operator, row.key.draw)), None)
    removes = fills is None and row.key.operator in (None, "delete", "blank")
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


def chosen_configurations(folder: RunFolder, **chosen: object) -> list[Configuration]:
    """Return the configurations of a run with these values; None chooses all.

    Raises:
        ConfigError: The run has no such value.
    """
    cells = [cell for cell, _ in configurations(folder.manifest().config)]
    wanted = {name: value for name, value in chosen.items() if value is not None}
    for name, value in wanted.items():
        # A rationale that sets its own size has no k: it is selected by its attribution.
        known = [each for each in dict.fromkeys(getattr(cell, name) for cell in cells) if each is not None]
        if value not in known:
            names = [str(each) for each in known]
            meant = did_you_mean(value, names) if isinstance(value, str) else "."
            raise ConfigError(f"{folder.path} has no {name} '{value}'{meant} It has {', '.join(names)}.")
    return [cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())]


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
