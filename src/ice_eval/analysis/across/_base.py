"""The finished runs of a grid, read once, and what their texts are like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ice_eval.analysis._runs import confidences_of, explained
from ice_eval.analysis.grid import Cell, TextLength, cells_of
from ice_eval.analysis.measures import Found, Missing
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.outcomes import ALL, Configuration
from ice_eval.words import word_spans

Line = Mapping[str, Any]
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
            if "error" not in line:
                cell = Configuration.of(line)
                found.setdefault(cell, {})[line["example_id"]] = line["win_rate"]
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
        for row in run.folder.ledger(part, inputs=True, kinds=("full", "empty")):
            sign = 1 if row.key.kind == "full" else -1
            if row.key.operator is None:
                tokens[row.key.example_id] = tokens.get(row.key.example_id, 0) + sign * len(row.input_ids)
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
class GridResults:
    """All finished runs of a grid together."""

    runs: tuple[GridRun, ...]
    configurations: tuple[Line, ...]
    """As in `summary.json`, each with its `run`, `prompt` and `language`."""
    agreement: tuple[Line, ...]
    """The same of operator agreement."""
    robustness: tuple[Line, ...]
    """The same of the word on all operators."""

    @cached_property
    def cells(self) -> list[Cell]:
        """The win rates under single operators, for analyses that a published table can be asked too."""
        return [
            cell
            for run in self.runs
            for cell in cells_of(
                {"configurations": [line for line in self.configurations if line["run"] == run.name]},
                text_lengths={} if run.texts is None else {run.task: run.texts.length},
            )
            if cell.operator != ALL
        ]

    def several(self, name: str) -> bool:
        """Whether configurations differ in a field."""
        return len({line[name] for line in self.configurations}) > 1


def grid_results(runs: Sequence[GridRun], summaries: Sequence[Mapping[str, Any]]) -> GridResults:
    """Put the summaries of a grid's runs together, their p-values adjusted already."""
    parts: dict[str, tuple[Line, ...]] = {
        part: tuple(
            {"run": run.name, **line, **run.head}
            for run, summary in zip(runs, summaries, strict=True)
            for line in summary[part]
        )
        for part in ("configurations", "agreement", "robustness")
    }
    return GridResults(tuple(runs), **parts)


Question = Callable[[GridResults], Found | Missing]
"""Takes a grid and answers with tables, or with the reason why there is nothing to say."""
