"""The rows of one example: what is kept, and what the model sees."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from ice_eval._seeding import rng_for
from ice_eval.nulls import SIZE, matched_sets
from ice_eval.pipeline.engine import Engine
from ice_eval.rationales import (
    ERASER_SHARES,
    Share,
    Units,
    independent_sets,
    keep_mask,
    positive,
    random_sets,
    rationale_size,
    top_k,
)
from ice_eval.records import PROTECTED, Direction, Encoded, Fills, ModelInput, PerUnit
from ice_eval.results.comparisons import FIRST_SETS
from ice_eval.results.schema import LEAVE_ONE_OUT, RowKey, eraser_kind, null_kind, rationale_kind

_BEGIN = FIRST_SETS + 1
"""Sets that a sequential test begins with: one may be the rationale."""
_GROWTH = 1.5
_EMPTY_WORDS = 5
"""Tokens of an empty input of the released package, where tokens are filled in."""


@dataclass(frozen=True)
class Row:
    """A row that is to be scored."""

    key: RowKey
    kept: Units
    input: ModelInput
    item: Encoded


def reference_rows(engine: Engine, items: Sequence[Encoded]) -> Iterator[Row]:
    """What every score is measured against: the full input, and the empty one."""
    for item in items:
        name, every = item.example_id, tuple(range(item.n_units))
        rows = [(RowKey(name, "full"), every, item.full()), (RowKey(name, "empty"), (), item.empty())]
        if engine.config.choices.own_empty:
            rows += [(RowKey(name, "empty", each), (), _own_empty(engine, item, each)) for each in engine.operators]
        yield from (Row(key, kept, seen, item) for key, kept, seen in rows)


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


class Stream(NamedTuple):
    """The random sets of one kind and size under one operator: an order, scored from its beginning as far as asked."""

    size: int
    kind: str
    operator: str
    direction: str


class ExampleRows:
    """The rows of one example.

    With a fixed number of sets every stream is scored to its end. A sequential test begins with a few sets of each, and
    the streams that have decided nothing yet grow.
    """

    def __init__(self, engine: Engine, item: Encoded, vectors: Mapping[tuple[str, str], PerUnit]) -> None:
        self.engine, self.item = engine, item
        self._rationales: dict[int, dict[str, Units]] = {}
        self._orders: dict[tuple[int, str], list[Units]] = {}
        for name, units in self._chosen(vectors, engine.config.k):
            self._rationales.setdefault(len(units), {})[name] = units
        for size in self._rationales:
            self._orders |= {(size, kind): sets for kind, sets in self._nulls(size)}
        self._reach = {
            Stream(*key, operator, direction): self._begin(len(sets))
            for key, sets in self._orders.items()
            for operator in engine.operators
            for direction in engine.config.directions
        }
        self._given: dict[Stream, int] = {}
        self._beside = list(self._of_eraser(vectors)) if engine.config.eraser else []
        self._n_beside = len(self._beside)

    def __len__(self) -> int:
        """Rows asked for so far."""
        config = self.engine.config
        draws = {name: self._n_draws(name) for name in self.engine.operators}
        n_rationales = sum(map(len, self._rationales.values())) * len(config.directions)
        n_random = sum(reach * draws[stream.operator] for stream, reach in self._reach.items())
        return n_rationales * sum(draws.values()) + n_random + self._n_beside

    def new(self) -> Iterator[Row]:
        """The rows asked for since the last call."""
        for size in self._rationales:
            for operator in self.engine.operators:
                for direction in self.engine.config.directions:
                    sets = dict(self._new_sets(size, operator, direction))
                    if sets:
                        yield from self._under(operator, direction, size, sets)
        beside, self._beside = self._beside, []
        yield from beside

    def has(self, stream: Stream) -> bool:
        """Whether there is such a stream; an attribution that is not finite has none of its own."""
        return stream in self._reach

    def reach(self, stream: Stream) -> int:
        """How many sets of a stream have been asked for."""
        return self._reach[stream]

    def at_end(self, stream: Stream) -> bool:
        """Whether a stream has no further set."""
        return self._reach[stream] == len(self._orders[stream.size, stream.kind])

    def grow(self, stream: Stream) -> None:
        """Ask for half as many sets again: few rounds, and at most a third of all sets beyond the one that decides."""
        longest = len(self._orders[stream.size, stream.kind])
        self._reach[stream] = min(math.ceil(_GROWTH * self._reach[stream]), longest)

    def _begin(self, n_sets: int) -> int:
        return min(_BEGIN, n_sets) if self.engine.config.adaptive == "examples" else n_sets

    def _n_draws(self, operator: str) -> int:
        return self.engine.config.n_fills if self.engine.operators[operator].needs_fills else 1

    def _of_eraser(self, vectors: Mapping[tuple[str, str], PerUnit]) -> Iterator[Row]:
        """Rows of ERASER's measures: rationales of its sizes kept and removed, and every unit removed alone."""
        sizes: dict[int, dict[tuple[str, int | None], Units]] = {}
        for name, units in self._chosen(vectors, (*ERASER_SHARES, *self.engine.config.k)):
            sizes.setdefault(len(units), {})[eraser_kind(name), None] = units
        alone: dict[tuple[str, int | None], Units] = {
            (LEAVE_ONE_OUT, unit): (unit,) for unit in range(self.item.n_units)
        }
        for operator in self.engine.operators:
            for direction in get_args(Direction):
                for size, sets in sizes.items():
                    yield from self._under(operator, direction, size, sets)
            yield from self._under(operator, "necessity", 1, alone)

    def _chosen(
        self, vectors: Mapping[tuple[str, str], PerUnit], shares: Sequence[Share]
    ) -> Iterator[tuple[str, Units]]:
        """The rationales of each attribution: the top k units for every k, or those that it marks."""
        config, n_units = self.engine.config, self.item.n_units
        for name, method in self.engine.attributions.items():
            vector = vectors[name, self.item.example_id]
            if not np.isfinite(vector).all():
                continue
            if method.sized:
                yield from [(name, units) for units in [positive(vector)] if 0 < len(units) < n_units]
                continue
            if name in self.engine.by_magnitude:
                vector = np.abs(vector)
            for size in dict.fromkeys(rationale_size(vector, k) for k in shares):
                ties = rng_for(config.seed, self.item.example_id, "ties", name)
                yield name, top_k(vector, size, rng=ties)

    def _nulls(self, size: int) -> Iterator[tuple[str, list[Units]]]:
        """The random sets of one size, by kind: one order for all attributions, or one for each."""
        config, item = self.engine.config, self.item
        m, seed, example = config.m, config.seed, item.example_id
        for null in config.nulls:
            if null == SIZE and not config.choices.own_null:
                sets = random_sets(item.n_units, size, m + 1, seed=seed, example_id=example)
                yield null_kind("", null, config.choices), sets
                continue
            for name, rationale in self._rationales[size].items():
                kind = null_kind(name, null, config.choices)
                if null == SIZE:
                    sets = independent_sets(item.n_units, size, m, seed=seed, example_id=example, kind=kind)
                else:
                    sets = matched_sets(null, item, rationale, m, seed=seed, counts=self.engine.unit_counts)
                yield kind, sets

    def _new_sets(self, size: int, operator: str, direction: str) -> Iterator[tuple[tuple[str, int | None], Units]]:
        for (own_size, kind), sets in self._orders.items():
            if own_size == size:
                stream = Stream(size, kind, operator, direction)
                before, self._given[stream] = self._given.get(stream, 0), self._reach[stream]
                yield from (((kind, index), sets[index]) for index in range(before, self._reach[stream]))
        once = Stream(size, "rationales", operator, direction)
        if once not in self._given:
            self._given[once] = len(self._rationales[size])
            yield from (((rationale_kind(name), None), units) for name, units in self._rationales[size].items())

    def _under(
        self, operator: str, direction: str, size: int, sets: Mapping[tuple[str, int | None], Units]
    ) -> Iterator[Row]:
        """The rows of sets under one operator, for every draw of its fills."""
        act, item = self.engine.operators[operator], self.item
        masks = np.stack([keep_mask(units, item.n_units) for units in sets.values()])
        if direction == "necessity":
            masks = ~masks
        for draw in range(self._n_draws(operator)):
            keys = [RowKey(item.example_id, kind, operator, direction, size, index, draw) for kind, index in sets]
            if act.needs_fills and self.engine.config.fills == "own":
                built = [
                    act.inputs(item, mask[None], fills=_fills(self.engine, item, *key[1:]))[0]
                    for key, mask in zip(keys, masks, strict=True)
                ]
            else:
                fills = _fills(self.engine, item, draw) if act.needs_fills else ()
                built = act.inputs(item, masks, fills=fills)
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
