"""The rows of one example: what is kept, and what the model sees."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ice_eval._seeding import rng_for
from ice_eval.pipeline.engine import Engine
from ice_eval.rationales import Units, independent_sets, keep_mask, random_sets, set_size, top_k
from ice_eval.records import PROTECTED, Encoded, Fills, ModelInput, PerUnit
from ice_eval.results.schema import LedgerRow, RowKey, null_kind, rationale_kind

_EMPTY_WORDS = 5
"""Tokens of an empty input of the released package, where tokens are filled in."""


@dataclass(frozen=True)
class Row:
    """A row that is to be scored."""

    key: RowKey
    kept: Units
    input: ModelInput
    item: Encoded


def reference_rows(engine: Engine, items: Sequence[Encoded], known: Mapping[RowKey, LedgerRow]) -> Iterator[Row]:
    for item in items:
        name, every = item.example_id, tuple(range(item.n_units))
        rows = [(RowKey(name, "full"), every, item.full()), (RowKey(name, "empty"), (), item.empty())]
        if engine.config.choices.own_empty:
            rows += [(RowKey(name, "empty", each), (), _own_empty(engine, item, each)) for each in engine.operators]
        for key, kept, seen in rows:
            if key not in known:
                yield Row(key, kept, seen, item)


def n_references(engine: Engine) -> int:
    return 2 + (len(engine.operators) if engine.config.choices.own_empty else 0)


def _own_empty(engine: Engine, item: Encoded, operator: str) -> ModelInput:
    """What the released package calls empty: special tokens or one of them, or a few words of the data."""
    bare, content = item.unit_of == PROTECTED, item.content
    if engine.pool is not None and engine.operators[operator].needs_fills:
        words = engine.pool.tokens(_EMPTY_WORDS, rng_for(engine.config.seed, "empty", operator))
        ids = np.concatenate([item.ids[: content.start], words, item.ids[content.stop :]])
        return ModelInput(ids, np.zeros_like(ids))
    if not bare.any() and item.special.start is not None:
        return ModelInput(np.array([item.special.start], dtype=np.int64), np.zeros(1, dtype=np.int64))
    return item.empty()


def wanted_rows(engine: Engine, item: Encoded, vectors: Mapping[tuple[str, str], PerUnit]) -> Iterator[Row]:
    """Every logical row of one example, whether it was scored before or not."""
    config = engine.config
    for size in dict.fromkeys(set_size(item.n_units, k) for k in config.k):
        sets = dict(_null_sets(engine, item, size))
        for name in engine.attributions:
            vector = vectors[name, item.example_id]
            if np.isfinite(vector).all():
                ties = rng_for(config.seed, item.example_id, "ties", name)
                sets[rationale_kind(name), None] = top_k(vector, size, rng=ties)
        for operator in engine.operators:
            for direction in config.directions:
                yield from _operator_rows(engine, item, operator, direction, size, sets)


def _null_sets(engine: Engine, item: Encoded, size: int) -> Iterator[tuple[tuple[str, int | None], Units]]:
    """The random sets of one size: one order for all attributions, or draws for each."""
    config, example_id = engine.config, item.example_id
    for kind in dict.fromkeys(null_kind(name, config.choices) for name in engine.attributions):
        if config.choices.own_null:
            drawn = independent_sets(item.n_units, size, config.m, seed=config.seed, example_id=example_id, kind=kind)
        else:
            drawn = random_sets(item.n_units, size, config.m + 1, seed=config.seed, example_id=example_id)
        yield from (((kind, index), units) for index, units in enumerate(drawn))


def _operator_rows(
    engine: Engine,
    item: Encoded,
    operator: str,
    direction: str,
    size: int,
    sets: Mapping[tuple[str, int | None], Units],
) -> Iterator[Row]:
    """The rows of all sets under one operator, for every draw of its fills."""
    act = engine.operators[operator]
    masks = np.stack([keep_mask(units, item.n_units) for units in sets.values()])
    if direction == "necessity":
        masks = ~masks
    for draw in range(engine.config.n_fills if act.needs_fills else 1):
        keys = [RowKey(item.example_id, kind, operator, direction, size, index, draw) for kind, index in sets]
        if act.needs_fills and engine.config.fills == "own":
            built = [
                act.inputs(item, mask[None], fills=_fills(engine, item, *key[1:]))[0]
                for key, mask in zip(keys, masks, strict=True)
            ]
        else:
            built = act.inputs(item, masks, fills=_fills(engine, item, draw) if act.needs_fills else ())
        for key, mask, seen in zip(keys, masks, built, strict=True):
            yield Row(key, tuple(int(u) for u in np.flatnonzero(mask)), seen, item)


def _fills(engine: Engine, item: Encoded, *purpose: str | int | None) -> Fills:
    """One replacement per unit, drawn for a purpose: a draw shared by all rows, or one row alone."""
    assert engine.pool is not None, "an operator that needs fills has a pool"
    return engine.pool.draw(item, rng_for(engine.config.seed, item.example_id, "fills", *(str(p) for p in purpose)))


def content_of(row: Row) -> Any:
    """The ids between the template's head and tail."""
    content = row.item.content
    return row.input.ids[content.start : len(row.input.ids) - (len(row.item.ids) - content.stop)]
