"""The finished runs of a grid, read once, and what their texts are like."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from ice_eval.analysis._runs import confidences_of, explained
from ice_eval.analysis.grid import Cell, TextLength, cells_of
from ice_eval.analysis.measures import Found, Missing
from ice_eval.records import NOT_SET, Kind
from ice_eval.results import Configuration, InputRow, RunFolder, Summary, SummaryLine
from ice_eval.results.json_files import as_json
from ice_eval.results.ledger import NO_NAMES
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine, RobustnessLine
from ice_eval.words import word_spans

L = TypeVar("L", SummaryLine, AgreementLine, RobustnessLine)
LEVEL = 0.05
"""Of p-values that are adjusted over a whole grid."""
LONG_TEXT = 100
"""Tokens of the median text from which on texts count as long."""


@dataclass(frozen=True, kw_only=True)
class GridRun:
    """A finished run of a grid, under the names that the grid gives its parts."""

    name: str
    folder: RunFolder
    model: str
    task: str
    prompt: str = ""
    """Which wording of the task's prompt."""
    language: str = "en"
    base: str | None = None
    """The model that this one was tuned from, by its name in the grid."""
    tuning: str | None = None
    """`base`, or what the model was tuned for; None where nobody says."""

    @property
    def head(self) -> dict[str, str]:
        """What every line about the run begins with."""
        return {name: getattr(self, name) for name in ("model", "task", "prompt", "language")}

    @cached_property
    def win_rates(self) -> dict[Configuration, dict[str, float]]:
        """Of every example, by configuration and example id."""
        found: dict[Configuration, dict[str, float]] = {}
        for line in self.folder.examples():
            if line.error is None:
                found.setdefault(line.configuration, {})[line.example_id] = line.win_rate
        return found

    @cached_property
    def inputs(self) -> dict[str, InputRow]:
        """The examples that took part, by id."""
        return {row.example_id: row for row in explained(self.folder)}

    @cached_property
    def confidence(self) -> float | None:
        """Mean probability that the model gives the label that is explained, on whole texts."""
        found = confidences_of(self.folder)
        return float(np.mean(list(found.values()))) if found else None

    @cached_property
    def texts(self) -> "TextFacts | None":
        """What the texts are like to the model's tokenizer; None where no example took part."""
        return text_facts(self)


@dataclass(frozen=True)
class TextFacts:
    """How a tokenizer cuts the texts of a run."""

    n: int
    tokens_median: float
    """Tokens of the text, without the prompt."""
    tokens_per_word: float
    tokens_per_character: float

    @property
    def length(self) -> TextLength:
        return "long" if self.tokens_median >= LONG_TEXT else "short"


def text_facts(run: GridRun) -> TextFacts | None:
    """Count tokens, words and characters of the texts, as far as the model saw them.

    Tokens of a text are those that the whole input has and the empty one has not.
    """
    tokens: dict[str, int] = {}
    for part in run.folder.parts():
        ledger = run.folder.ledger(part, NO_NAMES, inputs=True, kinds=(Kind.FULL, Kind.EMPTY))
        head, lengths = ledger.head, ledger.inputs.lengths
        for place in np.flatnonzero(head["operator"] == NOT_SET).tolist():
            name, sign = ledger.names.examples[head["example"][place]], 1 if head["kind"][place] == Kind.FULL else -1
            tokens[name] = tokens.get(name, 0) + sign * int(lengths[place])
    used = [(tokens[name], _seen(row)) for name, row in run.inputs.items() if name in tokens]
    n_words = sum(len(word_spans(text)) for _, texts in used for text in texts)
    n_characters = sum(len(text) for _, texts in used for text in texts)
    if not n_words:
        return None
    counts = np.array([count for count, _ in used])
    return TextFacts(
        n=len(used),
        tokens_median=float(np.median(counts)),
        tokens_per_word=float(counts.sum() / n_words),
        tokens_per_character=float(counts.sum() / n_characters),
    )


def _seen(row: InputRow) -> list[str]:
    """The explained fields, without ends that did not fit."""
    ends: dict[str, int] = {}
    for span in row.spans:
        ends[span.field] = max(ends.get(span.field, 0), span.end)
    return [row.fields[name][:end] for name, end in ends.items()]


@dataclass(frozen=True)
class GridLine(Generic[L]):
    """A line of a run's summary, under the names that the grid gives its model and task."""

    run: GridRun
    line: L

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"run": self.run.name, **as_json(self.line), **self.run.head}


@dataclass(frozen=True)
class GridResults:
    """All finished runs of a grid together."""

    runs: tuple[GridRun, ...]
    configurations: tuple[GridLine[SummaryLine], ...]
    agreement: tuple[GridLine[AgreementLine], ...]
    robustness: tuple[GridLine[RobustnessLine], ...]

    @cached_property
    def cells(self) -> list[Cell]:
        """The win rates under single operators, for analyses that a published table can be asked too."""
        return [
            cell
            for run in self.runs
            for cell in cells_of(
                self.lines_of(run),
                prompt=run.prompt,
                text_lengths={} if run.texts is None else {run.task: run.texts.length},
            )
            if cell.operator != ALL
        ]

    def lines_of(self, run: GridRun) -> list[SummaryLine]:
        """The configurations of one run."""
        return [each.line for each in self.configurations if each.run.name == run.name]

    def several(self, name: Literal["prompt", "language"]) -> bool:
        """Whether runs with configurations differ in a field."""
        return len({getattr(each.run, name) for each in self.configurations}) > 1


def grid_results(runs: Sequence[GridRun], summaries: Sequence[Summary]) -> GridResults:
    """Put the summaries of a grid's runs together, their p-values adjusted already."""
    both = list(zip(runs, summaries, strict=True))
    return GridResults(
        tuple(runs),
        configurations=tuple(_named(run, line) for run, summary in both for line in summary.configurations),
        agreement=tuple(_named(run, line) for run, summary in both for line in summary.agreement),
        robustness=tuple(_named(run, line) for run, summary in both for line in summary.robustness),
    )


def _named(run: GridRun, line: L) -> GridLine[L]:
    return GridLine(run, replace(line, model=run.model, task=run.task))


Question = Callable[[GridResults], Found | Missing]
"""Takes a grid and answers with tables, or with the reason why there is nothing to say."""
