"""Ledgers written by hand, for statistics that are worked out by hand."""

import itertools
import math

import pytest

from ice_eval.records import Span
from ice_eval.results import InputRow, LedgerRow, RowKey, RunFolder
from ice_eval.results.comparisons import ExampleLedger
from ice_eval.results.outcomes import Configuration


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
        self.rows.append(LedgerRow(key, tuple(kept), (1, 2), (0, 0), self.scores(value), "text"))
        return self

    def reference(self, *, full=0.9, empty=0.4):
        self.put(RowKey(self.example_id, "full"), range(self.n_units), full)
        return self.put(RowKey(self.example_id, "empty"), (), empty)

    def row(self, kind, units, value, *, operator="delete", direction="sufficiency", index=None, draw=0):
        key = RowKey(self.example_id, kind, operator, direction, len(units), index, draw)
        kept = units if direction == "sufficiency" else [u for u in range(self.n_units) if u not in units]
        return self.put(key, kept, value)

    def null(self, sets, values, **place):
        for index, (units, value) in enumerate(zip(sets, values, strict=True)):
            self.row("random", units, value, index=index, **place)
        return self

    def rationale(self, units, value, *, name="mine", **place):
        return self.row(f"rationale:{name}", units, value, **place)

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

    def outcome(self, *operators, name="mine", direction="sufficiency", size=2):
        operators = operators or ("delete",)
        operator = operators[0] if len(operators) == 1 else "all"
        asked = Configuration(name, operator, direction, size / self.n_units)
        return ExampleLedger(self.input, self.rows).outcome(asked, operators, self.m)


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
        config = {
            "model": "by-hand", "task": "letters", "attributions": ["mine"], "operators": ["delete"],
            "directions": ["sufficiency"], "k": [1 / 3], "n": len(books), "m": books[0].m, "seed": 0,
        }  # fmt: skip
        with folder.opened():
            folder.write_manifest({"status": "complete", "config": config | changed, "flags": list(flags)})
            for part, start in enumerate(range(0, len(books), 16)):
                batch = books[start : start + 16]
                folder.write_part(part, [b.input for b in batch], [row for b in batch for row in b.rows], {"rows": 0})
        return folder

    return write
