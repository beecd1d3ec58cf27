"""Probes: rows that an attribution asks for, to find out what matters.

They go through the same scorer as all other rows and stand in the ledger, but no rationale is ever compared with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ice_eval._seeding import rng_for
from ice_eval.attributions import PerRow
from ice_eval.models import Prior
from ice_eval.pipeline.desk import Asked, Desk
from ice_eval.pipeline.engine import Engine
from ice_eval.pipeline.rows import Row
from ice_eval.records import Encoded, Fills, KeepMasks, ModelInput
from ice_eval.results.log_odds import log_odds
from ice_eval.results.schema import RowKey, probe_kind


@dataclass
class Probes:
    """What the attributions of a part ask, and what it cost."""

    engine: Engine
    desk: Desk
    targets: Mapping[str, int]
    asked: list[Asked] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    """Attribution -> rows that were missing."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Attribution -> tokens that went through the model for them."""

    _given: dict[tuple[str, str], int] = field(default_factory=dict)
    """(attribution, example) -> probes so far: one may ask several times."""

    def values(self, name: str, batch: Sequence[Encoded], masks: Sequence[KeepMasks]) -> list[PerRow]:
        """Log-odds of the explained label for the keep-masks of each example, all examples in one stream."""
        rows = [self._rows(name, item, keep) for item, keep in zip(batch, masks, strict=True)]
        before = self.engine.scorer.counts.tokens
        asked = self.desk.ask(row for each in rows for row in each)
        self.asked.append(asked)
        self.rows[name] = self.rows.get(name, 0) + len(asked.rows)
        self.tokens[name] = self.tokens.get(name, 0) + self.engine.scorer.counts.tokens - before
        asked.answers(self.desk.answered)
        # An example that cannot be probed has no value: the attribution fails on it, and on it alone.
        return [
            self._log_odds(item, each) if each else np.full(len(keep), np.nan)
            for item, each, keep in zip(batch, rows, masks, strict=True)
        ]

    def priors(self, items: Sequence[Encoded]) -> dict[str, Prior] | None:
        """Log-scores of each example's empty input, which calibration takes off; None without it."""
        if self.engine.config.calibration != "contextual":
            return None
        return {item.example_id: self.desk.answered[item.empty().key()] for item in items}

    def _rows(self, name: str, item: Encoded, keep: KeepMasks) -> list[Row]:
        act, operator = self.engine.probing[name], self.engine.attributions[name].operator
        if act.needs_fills and self.engine.pool is not None and not self.engine.pool.can_fill(item):
            return []
        fills = probe_fills(self.engine, item, name) if act.needs_fills else ()
        first = self._given.get((name, item.example_id), 0)
        self._given[name, item.example_id] = first + len(keep)
        found = []
        for index, (mask, seen) in enumerate(zip(keep, act.inputs(item, keep, fills=fills), strict=True), first):
            kept = tuple(np.flatnonzero(mask).tolist())
            key = RowKey(item.example_id, probe_kind(name), operator, "sufficiency", len(kept), index, 0)
            found.append(Row(key, kept, _readable(item, seen), item))
        return found

    def _log_odds(self, item: Encoded, rows: Sequence[Row]) -> PerRow:
        scores = np.array([self._scores(row) for row in rows], dtype=np.float64)
        priors = self.priors([item])
        if priors is not None:
            scores -= np.array(priors[item.example_id])
        return log_odds(scores, self.targets[item.example_id])

    def _scores(self, row: Row) -> tuple[float, ...]:
        known = self.desk.known.get(row.key)
        return known.scores if known is not None else self.desk.answered[row.input.key()]


def _readable(item: Encoded, seen: ModelInput) -> ModelInput:
    """A model must read something, also where the prompt is nothing but the text and all of it is deleted."""
    return seen if len(seen.ids) else item.empty()


def probe_fills(engine: Engine, item: Encoded, name: str) -> Fills:
    """Fills of an attribution's own, never those of the evaluation.

    With the same fills a method learns what they do, and not what the text does: on a model without any signal its
    rationales would win nearly always.
    """
    assert engine.pool is not None, "an operator that needs fills has a pool"
    return engine.pool.draw(item, rng_for(engine.config.seed, item.example_id, "probe-fills", name))
