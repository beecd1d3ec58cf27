"""Ledgers written by hand, for statistics that are worked out by hand."""

import itertools
import math

import pytest
from tests.made_records import manifest, settings
from tests.rows import ledger_of

from ice_eval.nulls import SIZE
from ice_eval.records import Kind, Span
from ice_eval.results import Configuration, InputRow, LedgerRow, RowKey, RunFolder
from ice_eval.results.comparisons import ScoredExamples
from ice_eval.results.examples import Examples
from ice_eval.results.ledger import Names
from ice_eval.results.outcomes import outcome_lines, outcome_table


class Book:
    """The rows of one example: probabilities of the target in, ledger rows out.

    A value is the probability of the target (what is left is shared by the other labels), or the log-scores of all
    labels as a tuple.
    """

    def __init__(self, example_id="e0", *, n_units=6, target=1, gold=None, n_labels=2, m=4, **attributions):
        self.example_id, self.n_units, self.target, self.gold = example_id, n_units, target, gold
        self.n_labels, self.m = n_labels, m
        self.attributions = {"mine": tuple(float(u) for u in range(n_units))} | attributions
        self.skip_reason = None
        self.rows = []

    def scores(self, value):
        if isinstance(value, tuple):
            return value
        others = math.log((1 - value) / (self.n_labels - 1))
        return tuple(math.log(value) if label == self.target else others for label in range(self.n_labels))

    def put(self, key, kept, value):
        self.rows.append(LedgerRow(key, tuple(kept), self.scores(value), (1, 2), (0, 0), "text"))
        return self

    def reference(self, *, full=0.9, empty=0.4):
        self.put(RowKey(self.example_id, Kind.FULL), range(self.n_units), full)
        return self.put(RowKey(self.example_id, Kind.EMPTY), (), empty)

    def row(self, kind, units, value, *, operator="delete", direction="sufficiency", draw=0, **named):
        key = RowKey(self.example_id, kind, operator, direction, len(units), draw=draw, **named)
        kept = units if direction == "sufficiency" else [u for u in range(self.n_units) if u not in units]
        return self.put(key, kept, value)

    def null(self, sets, values, **place):
        for index, (units, value) in enumerate(zip(sets, values, strict=True)):
            self.row(Kind.RANDOM, units, value, set=index, null=SIZE, **place)
        return self

    def rationale(self, units, value, *, name="mine", **place):
        return self.row(Kind.RATIONALE, units, value, attribution=name, **place)

    @property
    def input(self):
        return InputRow(
            example_id=self.example_id,
            fields={"text": " ".join("abcdefghijklmnopqrstuvwxyz"[: self.n_units])},
            spans=tuple(Span("text", 2 * unit, 2 * unit + 1) for unit in range(self.n_units)),
            gold=self.gold,
            target=None if self.skip_reason else self.target,
            skip_reason=self.skip_reason,
            attributions={} if self.skip_reason else self.attributions,
        )

    def ledger_rows(self):
        """The rows as a run writes them: a rationale that is a set of its null says which."""
        sets = {(row.kept, row.key[2:5]): row.key.set for row in self.rows if row.key.kind == Kind.RANDOM}
        return [
            row._replace(key=row.key._replace(set=sets.get((row.kept, row.key[2:5]))))
            if row.key.kind == Kind.RATIONALE
            else row
            for row in self.rows
        ]

    def outcomes(self, *operators, name="mine", direction="sufficiency", size=2, **changes):
        """The configuration that is asked about, and the columns of this one example under it."""
        operators = operators or ("delete",)
        operator = operators[0] if len(operators) == 1 else "all"
        asked = Configuration(name, operator, direction, size / self.n_units)
        ledger = ledger_of(self.ledger_rows(), names_of([self], attributions=[name], operators=operators))
        scored = ScoredExamples(Examples.of([self.input]), ledger, settings(m=self.m, **changes))
        return asked, scored.outcomes(asked, operators)

    def outcome(self, *operators, **asked):
        """The outcome as a reader of the results sees it."""
        cell, found = self.outcomes(*operators, **asked)
        [line] = outcome_lines(outcome_table({cell: found}))
        return line


def names_of(books, *, attributions=(), operators=()):
    """The names that the rows of books use, after some others."""
    keys = [row.key for book in books for row in book.rows]
    ids, nulls = tuple(book.example_id for book in books), (SIZE,)
    return Names(
        ids,
        tuple(dict.fromkeys([*attributions, *(key.attribution for key in keys if key.attribution is not None)])),
        nulls,
        tuple(dict.fromkeys([*operators, *(key.operator for key in keys if key.operator is not None)])),
    )


@pytest.fixture
def book():
    """The class `Book`: `book(n_units=5).reference().null(sets, values).rationale(units, value).outcome()`."""
    return Book


@pytest.fixture
def hand_made_run(tmp_path):
    """A new run folder that holds the given books; keywords replace fields of its configuration."""
    names = (f"run-{number}" for number in itertools.count())

    def write(books, *, flags=(), **changed):
        folder = RunFolder(tmp_path / next(names))
        lists = {name: tuple(value) if isinstance(value, list) else value for name, value in changed.items()}
        usual = {"attributions": ("mine",), "operators": ("delete",), "k": (1 / 3,), "n": len(books), "m": books[0].m}
        config = settings(**{"model": "by-hand", "task": "letters", **usual, **lists})
        with folder.opened():
            folder.write_manifest(manifest(config=config, flags=tuple(flags)))
            for part, start in enumerate(range(0, len(books), 16)):
                batch = books[start : start + 16]
                rows = [row for one in batch for row in one.ledger_rows()]
                ledger = ledger_of(rows, names_of(batch))
                folder.write_part(part, [one.input for one in batch], ledger, {"rows": 0})
        return folder

    return write
