"""Submission of a part's new rows to the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.attributions import PerRow
from ice_eval.errors import ConfigError
from ice_eval.models import Prior
from ice_eval.pipeline.engine import Engine
from ice_eval.records import (
    DIRECTIONS,
    NO_IDS,
    NOT_SET,
    Encoded,
    Fills,
    Ids,
    Inputs,
    KeepMasks,
    Kind,
    LogScores,
    Rows,
    heads,
)
from ice_eval.results.ledger import Ledger, log_odds
from ice_eval.scoring import Progress, Scorer, Submitted
from ice_eval.seeding import rng_for


class AskedRows(NamedTuple):
    """New rows, and their scores as soon as the model has them."""

    rows: Rows
    submitted: Submitted

    def scores(self) -> LogScores:
        """Wait for the model and return the scores of all rows."""
        return self.submitted.collect()


class RowQueue:
    """Queue of a part's rows for the model.

    An input is scored once per part: a second score would differ by rounding and break a tie. All inputs share their
    first `prefix` tokens; `known` are the stored rows.
    """

    def __init__(self, scorer: Scorer, prefix: int, known: Ledger, progress: Progress) -> None:
        self.known, self.asked = known, list[AskedRows]()
        self._scorer, self._prefix, self._progress = scorer, prefix, progress
        self._places = {key: place for place, key in enumerate(_keys(known.head))}
        self._ends = np.cumsum(known.n_kept)
        self._answers = dict(zip(known.inputs.keys, known.scores, strict=True))
        self._unread: AskedRows | None = None

    def ask(self, rows: Rows) -> AskedRows:
        """Submit rows that are not stored; inputs that were scored before are not sent again."""
        self._read_answers()
        missing = rows.take(self._missing(rows)) if self._places else rows
        submitted = self._scorer.submit(
            missing.inputs, prefix=self._prefix, progress=self._progress, known=self._answers
        )
        self._unread = AskedRows(missing, submitted)
        self.asked.append(self._unread)
        return self._unread

    def scored(self, rows: Rows) -> LogScores:
        """Return the scores of submitted or stored rows."""
        self._read_answers()
        scores = [
            self.known.scores[self._places[key]] if key in self._places else self._answers[seen]
            for key, seen in zip(_keys(rows.head), rows.inputs.keys, strict=True)
        ]
        return np.array(scores).reshape(len(rows), len(self._scorer.labels.names))

    def _read_answers(self) -> None:
        """Store the scores of the last submitted rows, for rows with the same inputs."""
        if self._unread is not None:
            rows, scores = self._unread.rows, self._unread.scores()
            self._answers.update(zip(rows.inputs.keys, scores, strict=True))
            self._unread = None

    def _missing(self, rows: Rows) -> Ids:
        """Return rows that are not stored, or raise ConfigError if another set is stored under the same key."""
        missing, start = [], 0
        for row, (key, count) in enumerate(zip(_keys(rows.head), rows.n_kept.tolist(), strict=True)):
            place, kept = self._places.get(key), rows.kept[start : start + count]
            start += count
            if place is None:
                missing.append(row)
            elif not np.array_equal(
                kept, self.known.kept[self._ends[place] - self.known.n_kept[place] : self._ends[place]]
            ):
                raise self._changed(self.known.head[place])
        return np.array(missing, dtype=np.int64)

    def _changed(self, row: Any) -> ConfigError:
        names = self.known.names
        example = names.examples[row["example"]]
        if row["attribution"] != NOT_SET:
            return changed(names.attributions[row["attribution"]], example)
        return ConfigError(
            f"the folder holds other random sets for example '{example}': other versions of numpy or ice-eval wrote "
            "it; use another folder."
        )


def changed(name: str, example_id: str) -> ConfigError:
    """Return the error for an attribution whose numbers differ from the stored ones."""
    return ConfigError(
        f"the folder holds other values of the attribution '{name}' for example '{example_id}'; give it another "
        "name, or use another folder."
    )


def _keys(head: NDArray[Any]) -> Sequence[bytes]:
    """Return a key per row that is unique within its part."""
    own = head.copy()
    own["set"][own["kind"] == Kind.RATIONALE] = NOT_SET  # does not identify the row
    content, width = own.tobytes(), own.dtype.itemsize
    return [content[start : start + width] for start in range(0, len(content), width)]


@dataclass
class Probes:
    """Rows that attributions request, and their cost."""

    engine: Engine
    queue: RowQueue
    places: Mapping[str, int]
    """Example id -> index in the part."""
    targets: Mapping[str, int]
    priors: Mapping[str, Prior]
    """Log-scores of each example's empty input."""
    rows: dict[str, int] = field(default_factory=dict)
    """Attribution -> number of new rows."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Attribution -> number of tokens computed for them."""
    _given: dict[tuple[str, str], int] = field(default_factory=dict)
    """(attribution, example) -> number of probes so far, since a method may request several times."""

    def values(self, name: str, batch: Sequence[Encoded], masks: Sequence[KeepMasks], repeat: int) -> list[PerRow]:
        """Return log-odds of the explained label for the keep-masks of each example, scored together."""
        rows = [self._rows(name, item, np.asarray(keep), repeat) for item, keep in zip(batch, masks, strict=True)]
        joined = Rows.join([each for each in rows if each is not None])
        before = self.engine.scorer.counts.tokens
        asked = self.queue.ask(joined)
        self.rows[name] = self.rows.get(name, 0) + len(asked.rows)
        self.tokens[name] = self.tokens.get(name, 0) + self.engine.scorer.counts.tokens - before
        scores, start, found = self.queue.scored(joined), 0, []
        for item, each, keep in zip(batch, rows, masks, strict=True):
            if each is None:
                # An example that cannot be probed has no value: the attribution fails on it, and on it alone.
                found.append(np.full(len(keep), np.nan))
                continue
            own, start = scores[start : start + len(each)], start + len(each)
            prior = np.asarray(self.priors[item.example_id]) if self.calibration() is not None else 0.0
            found.append(log_odds(own - prior, self.targets[item.example_id], versus=self.engine.versus))
        return found

    def calibration(self) -> Mapping[str, Prior] | None:
        """Return the scores that contextual calibration subtracts; None without it."""
        return self.priors if self.engine.config.calibration == "contextual" else None

    def subtracted(self) -> Mapping[str, Prior] | None:
        """Return what models subtract from the log-scores of each example; None for nothing.

        An infinite prior leaves a label out of the log-odds: with `versus`, all but two labels.
        """
        calibrated, versus = self.calibration(), self.engine.versus
        if versus is None:
            return calibrated
        plain = dict.fromkeys(self.targets, [0.0] * len(self.engine.scorer.labels.names))
        return {
            name: [
                value if label in (self.targets[name], versus) else np.inf
                for label, value in enumerate((calibrated or plain)[name])
            ]
            for name in self.targets
        }

    def _rows(self, name: str, item: Encoded, keep: KeepMasks, repeat: int) -> Rows | None:
        act, operator = self.engine.probing[name], self.engine.attributions[name].operator
        if act.needs_fills and self.engine.pool is not None and not self.engine.pool.can_fill(item):
            return None
        fills = probe_fills(self.engine, item, name) if act.needs_fills else NO_IDS
        first = self._given.get((name, item.example_id), 0)
        self._given[name, item.example_id] = first + len(keep)
        names = self.queue.known.names
        head = heads(
            len(keep),
            example=self.places[item.example_id],
            kind=Kind.PROBE,
            attribution=names.attributions.index(name),
            operator=names.operators.index(operator),
            direction=DIRECTIONS.index("sufficiency"),
            size=np.count_nonzero(keep, axis=1),
            set=np.arange(first, first + len(keep)),
            draw=0,
        )
        inputs = _readable(item, act.build(item, keep, fills=fills))
        return Rows.of(head, keep, self.engine.subject.repeated(inputs, repeat))


def _readable(item: Encoded, seen: Inputs) -> Inputs:
    """Replace inputs without a token: a model must read something, even if all text is deleted."""
    lengths = seen.lengths
    if lengths.all():
        return seen
    return Inputs.join([seen.take([row]) if length else item.empty() for row, length in enumerate(lengths.tolist())])


def probe_fills(engine: Engine, item: Encoded, name: str) -> Fills:
    """Draw the fills of an attribution's own probes, never those of the evaluation.

    With the same fills, a method would learn the effect of the fills instead of the text, and its rationales would win
    nearly always on a model without any signal.
    """
    assert engine.pool is not None, "an operator that needs fills has a pool"
    rng = rng_for(engine.config.seed, item.example_id, "probe-fills", name)
    return engine.pool.draw(item, rng, operator=engine.attributions[name].operator).ids
