"""Small runs of a model whose scores never tie, and the same numbers worked out with plain loops."""

import itertools
import math
import zlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.rows import each_row, ledger_rows, name_of

import ice_eval
from ice_eval.models.toy import Toy
from ice_eval.pipeline import Silent
from ice_eval.results.folder import OUTCOME_FILE
from ice_eval.results.outcomes import FLAGS, OUTCOMES
from ice_eval.results.view import shown_text
from ice_eval.tasks import Records, Task

PROMPT = "Review: {text}\nSentiment:"
LABEL_WORDS = {"negative": " negative", "positive": " positive"}
SIDES = {"sufficiency": 1, "necessity": -1}
OPERATORS, DIRECTIONS = ["delete", "mask-unk"], list(SIDES)
"""Those that can be worked out with plain loops."""
UNKNOWN = 1
"""The token that mask-unk writes."""


def wave(ids):
    """Log-odds of the positive label: what a word adds depends on where it stands, so that sets do not just add up."""
    return sum(math.sin(0.7371 * (int(token) % 9973) + place) for place, token in enumerate(ids))


class Waves(Toy):
    """The toy with scores that never tie; it counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.name, self.asked = "waves", 0

    def log_scores(self, batch, labels, *, prefix=0):
        self.asked += len(batch)
        log_odds = np.array(
            [np.sin(0.7371 * (row.ids % 9973) + np.arange(len(row.ids))).sum() for row in each_row(batch)]
        )
        return np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)


class Told(Silent):
    """Remembers what a run says."""

    def __init__(self):
        self.messages = []

    def say(self, message):
        self.messages.append(message)


class Interrupted(Waves):
    """Is interrupted when it has answered a number of rows."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def log_scores(self, batch, labels, *, prefix=0):
        if self.asked > self.after:
            raise KeyboardInterrupt
        return super().log_scores(batch, labels, prefix=prefix)


def texts(n, *, words=(11, 14), vocabulary=400, seed=0):
    """Texts of distinct words, shorter and longer ones in turn."""
    rng = np.random.default_rng(seed)
    known = np.array([f"w{number}" for number in range(vocabulary)])
    low, high = words
    return [" ".join(rng.choice(known, low + index % (high - low + 1), replace=False)) for index in range(n)]


def task_of(found, **changes):
    """A task of texts, or of whole records."""
    records = [record if isinstance(record, Mapping) else {"text": record} for record in found]
    return Task(**{"data": Records(records), "prompt": PROMPT, "label_words": LABEL_WORDS, "name": "waves"} | changes)


def run(found, *, model=None, **settings):
    settings = {"attributions": ["random"], "operators": ["delete"]} | settings
    task = found if isinstance(found, Task) else task_of(found)
    return ice_eval.evaluate(model or Waves(), task, **settings)


def picks(name, *, towards=0.0):
    """An attribution that is a number out of a hat for every unit, and `towards` of what the unit really does."""

    def attribute(item):
        hat = np.array(
            [zlib.crc32(f"{name}|{item.example_id}|{unit}".encode()) / 2**32 for unit in range(item.n_units)]
        )
        places = np.flatnonzero(item.unit_of >= 0)
        moves = np.sin(0.7371 * (item.ids[places] % 9973) + places)
        return hat + towards * np.sign(wave(item.ids)) * moves

    return attribute


METHODS = {"strong": picks("strong", towards=4), "hat": picks("hat"), "against": picks("against", towards=-4)}
"""Explanations that mostly win, that win half of the time, and that mostly lose."""


def rows_of(found, name=None, **key):
    """Rows of a run, those of a name as `tests.rows.name_of` gives it, or of some other fields of their keys."""
    rows = [row for row in ledger_rows(found.folder) if name in (None, name_of(row))]
    return [row for row in rows if all(getattr(row.key, field) == value for field, value in key.items())]


def shown_rows(folder):
    """Rows of a run folder, each with the text that it shows a person."""
    examples = {example.example_id: example for part in folder.parts() for example in folder.inputs(part)}
    return [row._replace(text=shown_text(examples[row.key.example_id], row)) for row in ledger_rows(folder)]


def lines_of(found, **where):
    return [line for line in found.folder.examples() if matches(line, where)]


def line_of(found, **where):
    lines = found.folder.summary().configurations
    [line] = [line for line in lines if matches(line, where)]
    return line


def matches(line, where):
    return all(getattr(line, name) == value for name, value in where.items())


def write_lines(path, lines):
    """Write outcomes of examples into a folder, in place of those that it has."""
    flags = [{name: None if line.error else name in line.flags for name in FLAGS} for line in lines]
    rows = [vars(line) | {"k": None if line.k is None else str(line.k)} for line in lines]
    rows = [
        {name: None if value != value else value for name, value in (row | raised).items() if name in OUTCOMES.names}
        for row, raised in zip(rows, flags, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=OUTCOMES), path / OUTCOME_FILE)


def results_of(found):
    return [(found.path / name).read_bytes() for name in ("summary.json", "examples.parquet")]


def files_of(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}


class Plain:
    """One text of a run, with every number worked out by hand."""

    def __init__(self, text, *, codec=None):
        codec = codec or Toy().codec
        ids = codec.tokenize(PROMPT.format(text=text)).ids.tolist()
        self.head, self.content, self.tail = ids[:2], ids[2:-2], ids[-2:]
        self.n_units = len(self.content)
        self.target = 1 if wave(ids) > 0 else 0

    def top(self, vector, size):
        ranked = sorted(range(self.n_units), key=lambda unit: vector[unit], reverse=True)
        return tuple(sorted(ranked[:size]))

    def size(self, k):
        return max(1, math.floor(k * self.n_units + 1e-9))

    def sets(self, size):
        return itertools.combinations(range(self.n_units), size)

    def log_odds(self, units, operator, direction):
        """Of the target, when just these units are kept, or just these are removed."""
        kept = set(units) if direction == "sufficiency" else set(range(self.n_units)) - set(units)
        content = [
            token if unit in kept else UNKNOWN
            for unit, token in enumerate(self.content)
            if unit in kept or operator == "mask-unk"
        ]
        return (1 if self.target == 1 else -1) * wave([*self.head, *content, *self.tail])

    def value(self, units, operators, direction):
        """What sets are ranked by: larger is better. Several operators are averaged as probabilities."""
        found = [self.log_odds(units, operator, direction) for operator in operators]
        if len(found) > 1:
            return SIDES[direction] * sum(1 / (1 + math.exp(-each)) for each in found) / len(found)
        return SIDES[direction] * found[0]
