"""Probes: rows that an attribution asks for, to find out what matters.

They go through the same scorer as all other rows and are listed in the ledger, but no rationale is ever compared with
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ice_eval.attributions import PerRow
from ice_eval.models import Prior
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.queue import RowQueue
from ice_eval.records import DIRECTIONS, Encoded, Fills, Inputs, KeepMasks, Kind, Rows, heads
from ice_eval.results.log_odds import log_odds
from ice_eval.seeding import rng_for

_NO_FILLS: Fills = np.zeros(0, dtype=np.int64)


@dataclass
class Probes:
    """The rows that attributions of a part ask for, and what they cost."""

    engine: Engine
    queue: RowQueue
    places: Mapping[str, int]
    """Example id -> its place in the part."""
    targets: Mapping[str, int]
    priors: Mapping[str, Prior]
    """Log-scores of each example's empty input."""
    rows: dict[str, int] = field(default_factory=dict)
    """Attribution -> rows that the folder did not hold."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Attribution -> tokens that went through the model for them."""
    _given: dict[tuple[str, str], int] = field(default_factory=dict)
    """(attribution, example) -> probes so far: one may ask several times."""

    def values(self, name: str, batch: Sequence[Encoded], masks: Sequence[KeepMasks]) -> list[PerRow]:
        """Return log-odds of the explained label for the keep-masks of each example, all examples in one stream."""
        rows = [self._rows(name, item, np.asarray(keep)) for item, keep in zip(batch, masks, strict=True)]
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
            found.append(log_odds(own - prior, self.targets[item.example_id]))
        return found

    def calibration(self) -> Mapping[str, Prior] | None:
        """Return what contextual calibration takes off every score; None without it."""
        return self.priors if self.engine.config.calibration == "contextual" else None

    def _rows(self, name: str, item: Encoded, keep: KeepMasks) -> Rows | None:
        act, operator = self.engine.probing[name], self.engine.attributions[name].operator
        if act.needs_fills and self.engine.pool is not None and not self.engine.pool.can_fill(item):
            return None
        fills = probe_fills(self.engine, item, name) if act.needs_fills else _NO_FILLS
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
        return Rows.of(head, keep, _readable(item, act.build(item, keep, fills=fills)))


def _readable(item: Encoded, seen: Inputs) -> Inputs:
    """Replace inputs without a token: a model must read something, also where all of the text is deleted."""
    lengths = seen.lengths
    if lengths.all():
        return seen
    return Inputs.join([seen.take([row]) if length else item.empty() for row, length in enumerate(lengths.tolist())])


def probe_fills(engine: Engine, item: Encoded, name: str) -> Fills:
    """Draw the fills of an attribution's own probes, never those of the evaluation.

    With the same fills a method learns what they do, and not what the text does: on a model without any signal its
    rationales would win nearly always.
    """
    assert engine.pool is not None, "an operator that needs fills has a pool"
    return engine.pool.draw(item, rng_for(engine.config.seed, item.example_id, "probe-fills", name)).ids
