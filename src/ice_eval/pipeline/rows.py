"""The rows of an example: references, rationales and random sets. Only this module defines what is compared."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.attributions import Explained
from ice_eval.nulls import SIZE, matched_sets
from ice_eval.operators import DrawnFills, FillPool, pose_of
from ice_eval.pipeline.engine import Engine
from ice_eval.rationales import (
    ERASER_FILLS,
    ERASER_SHARES,
    Share,
    independent_sets,
    keep_mask,
    place_of,
    positive,
    random_sets,
    rationale_size,
    top_k,
    units_of,
)
from ice_eval.records import (
    DIRECTIONS,
    NO_IDS,
    NOT_SET,
    PROTECTED,
    Encoded,
    Fills,
    Ids,
    Inputs,
    KeepMask,
    KeepMasks,
    Kind,
    PerUnit,
    Rows,
    heads,
)
from ice_eval.results.comparisons import FIRST_SETS, ScoredExamples
from ice_eval.results.examples import Examples, InputRow
from ice_eval.results.ledger import Ledger
from ice_eval.results.summary import configurations
from ice_eval.seeding import rng_for

_BEGIN = FIRST_SETS + 1
"""Initial number of sets of a sequential test: one may be the rationale."""
_SPARE = 1
"""Extra sets scored of a shared null, since a rationale may be one of its sets."""
_GROWTH = 1.5
_EMPTY_WORDS = 5
"""Number of tokens in an empty input of the released package, if tokens are filled in."""

Vectors = Mapping[tuple[str, str], PerUnit]
"""(attribution, example) -> a number per unit."""


def reference_rows(engine: Engine, items: Mapping[int, Encoded]) -> Rows:
    """Return the full and the empty input of each example."""
    columns, inputs, texts = list[tuple[int, Kind, int, int]](), list[Inputs](), dict[int, str]()
    for place, item in items.items():
        columns += [(place, Kind.FULL, NOT_SET, item.n_units), (place, Kind.EMPTY, NOT_SET, 0)]
        inputs += [item.full(), item.empty()]
        if engine.config.choices.own_empty:
            for code, name in enumerate(engine.operators):
                seen = _own_empty(engine, item, name)
                texts[len(inputs)] = engine.model.codec.decode([seen.ids])[0]
                columns.append((place, Kind.EMPTY, code, 0))
                inputs.append(seen)
    examples, kinds, operators, n_kept = np.array(columns, dtype=np.int64).reshape(-1, 4).T
    kept = np.concatenate([np.arange(0), *(np.arange(count) for count in n_kept.tolist())])
    head = heads(len(columns), example=examples, kind=kinds, operator=operators)
    return Rows(head, kept, n_kept, Inputs.join(inputs), texts)


def _own_empty(engine: Engine, item: Encoded, operator: str) -> Inputs:
    """Return the empty input of the released package: special tokens, or a few words of the data."""
    bare, content = item.unit_of == PROTECTED, item.content
    if engine.pool is not None and engine.operators[operator].needs_fills:
        assert isinstance(engine.pool, FillPool), "the protocol is about texts"
        words = engine.pool.tokens(_EMPTY_WORDS, rng_for(engine.config.seed, "empty", operator))
        return Inputs.one(np.concatenate([item.ids[: content.start], words, item.ids[content.stop :]]))
    if not bare.any() and item.special.start is not None:
        return Inputs.one(np.array([item.special.start], dtype=np.int64))
    return item.empty()


class Stream(NamedTuple):
    """The random sets of one null and size under one operator and direction; names are codes of the run."""

    size: int
    null: int
    attribution: int
    """The attribution that the null belongs to; `NOT_SET` if all share it."""
    operator: int
    direction: int


@dataclass(frozen=True)
class _Family:
    """The sets of one null and size, as a slice of the example's sets."""

    size: int
    null: int
    attribution: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class ExampleRows:
    """The rows of one example.

    With a fixed number of sets, every stream is scored to its end. A sequential test begins with a few sets of each
    stream, and undecided streams grow.
    """

    def __init__(self, engine: Engine, place: int, item: Encoded, vectors: Vectors) -> None:
        self.engine, self.place, self.item = engine, place, item
        self.fills: dict[tuple[str, int], DrawnFills] = {}
        """(operator, draw) -> fill of each unit, if all rows share it."""
        self._vectors = vectors
        self._directions = [DIRECTIONS.index(name) for name in engine.config.directions]
        self._families: list[_Family] = []
        self._rationales, self._masks, self._head = self._drawn()
        self._reach = {stream: self._begin(family) for family in self._families for stream in self._of(family)}
        self._given = dict.fromkeys(self._reach, 0)
        self._wants_first = True
        self._n_eraser = self._n_further = 0

    def __len__(self) -> int:
        """Return the number of rows requested so far."""
        n_fills = sum(self._n_fills(name) for name in self.engine.operators)
        n_rationales = len(self._rationales) * len(self._directions)
        return n_rationales * n_fills + sum(self._reach.values()) + self._n_eraser + self._n_further

    def new(self) -> list[Rows]:
        """Return the rows requested since the last call."""
        found = []
        for operator in range(len(self.engine.operators)):
            for direction in self._directions:
                chosen = self._new_sets(operator, direction)
                if chosen.size:
                    # `take` copies whole heads, indexing field by field.
                    head, masks = self._head.take(chosen), self._masks.take(chosen, axis=0)
                    found.append(self._under(operator, direction, head, masks))
        if self._wants_first and self.engine.config.eraser:
            rows = list(self._eraser_rows())
            self._n_eraser = sum(map(len, rows))
            found += rows
        if self._wants_first:
            further = self.engine.subject.further_rows(self.engine, self.place, self.item)
            self._n_further = sum(map(len, further))
            found += further
        self._wants_first = False
        return found

    def has(self, stream: Stream) -> bool:
        """Return True if the stream exists; an attribution that is not finite has none."""
        return stream in self._reach

    def reach(self, stream: Stream) -> int:
        """Return the number of requested sets of a stream."""
        return self._reach[stream]

    def at_end(self, stream: Stream) -> bool:
        """Return True if a stream has no further set."""
        return self._reach[stream] == len(self._family(stream))

    def grow(self, stream: Stream) -> None:
        """Request half as many sets again: few rounds, and at most a third of all sets beyond the deciding one."""
        longest = len(self._family(stream))
        self._reach[stream] = min(math.ceil(_GROWTH * self._reach[stream]), longest)

    def _of(self, family: _Family) -> Iterator[Stream]:
        for operator in range(len(self.engine.operators)):
            for direction in self._directions:
                yield Stream(family.size, family.null, family.attribution, operator, direction)

    def _family(self, stream: Stream) -> _Family:
        return next(each for each in self._families if stream[:3] == (each.size, each.null, each.attribution))

    def _begin(self, family: _Family) -> int:
        """Return the initial number of sets; a pilot scores the first of an order drawn for the whole run."""
        config = self.engine.config
        fixed = config.m + (_SPARE if family.attribution == NOT_SET and config.attributions else 0)
        return min(_BEGIN if config.adaptive == "examples" else fixed, len(family))

    def _n_fills(self, operator: str) -> int:
        """Return the number of fills of an operator; more than there are random sets would not be used."""
        return (
            min(self.engine.config.n_fills, self.engine.longest) if self.engine.operators[operator].needs_fills else 1
        )

    def _drawn(self) -> tuple[Ids, KeepMasks, NDArray[Any]]:
        """Draw the sets of every size; return the indices of rationales, the masks and the heads."""
        always = self.engine.subject.sizes(self.item.n_units, self.engine.config)
        sizes: dict[int, dict[int, KeepMask]] = {size: {} for size in always}
        for code, mask in self._chosen(self.engine.config.k):
            sizes.setdefault(int(np.count_nonzero(mask)), {})[code] = mask
        masks, rationales, n_sets = [np.zeros((0, self.item.n_units), dtype=bool)], list[tuple[int, int, int, int]](), 0
        for size, chosen in sizes.items():
            shared = self._shared_sets(size)
            for null, attribution, sets in self._nulls(size, chosen, shared):
                self._families.append(_Family(size, null, attribution, n_sets, n_sets + len(sets)))
                masks.append(sets)
                n_sets += len(sets)
            for attribution, mask in chosen.items():
                own = None if shared is None else place_of(mask, shared)
                rationales.append((n_sets, attribution, size, NOT_SET if own is None else own))
                masks.append(mask[None])
                n_sets += 1
        head = heads(n_sets, example=self.place, kind=Kind.RANDOM)
        for family in self._families:
            own_rows = head[family.start : family.stop]
            own_rows["attribution"], own_rows["null"] = family.attribution, family.null
            own_rows["size"], own_rows["set"] = family.size, np.arange(len(family))
        places, names, lengths, same = np.array(rationales, dtype=np.int64).reshape(-1, 4).T
        head["kind"][places], head["attribution"][places] = Kind.RATIONALE, names
        head["size"][places], head["set"][places] = lengths, same
        return places, np.concatenate(masks), head

    def _chosen(self, shares: Sequence[Share]) -> Iterator[tuple[int, KeepMask]]:
        """Yield the rationales of each attribution: the top k units for every k, or its own choice."""
        config, n_units = self.engine.config, self.item.n_units
        for code, (name, method) in enumerate(self.engine.attributions.items()):
            vector = self._vectors[name, self.item.example_id]
            if not np.isfinite(vector).all():
                continue
            if method.sized:
                marked = positive(vector)
                if 0 < np.count_nonzero(marked) < n_units:
                    yield code, marked
                continue
            if config.sign == "abs" and method.has_signs:
                vector = np.abs(vector)
            ties = partial(rng_for, config.seed, self.item.example_id, "ties", name)
            parts = partial(method.parts, self.item) if isinstance(method, Explained) else None
            for size in dict.fromkeys(rationale_size(vector, k) for k in shares):
                yield code, top_k(vector, size, rng=ties, parts=parts)

    def _shared_sets(self, size: int) -> KeepMasks | None:
        """Return the sets that all attributions share; None if the protocol draws them for each.

        They are drawn even if the run has another null: a rationale's index among them must not depend on that.
        """
        engine, item = self.engine, self.item
        if engine.config.choices.own_null:
            return None
        count, seed = engine.longest + _SPARE, engine.config.seed
        return random_sets(item.n_units, size, count, seed=seed, example_id=item.example_id)

    def _nulls(
        self, size: int, chosen: Mapping[int, KeepMask], shared: KeepMasks | None
    ) -> Iterator[tuple[int, int, KeepMasks]]:
        """Yield the random sets of one size by null: one order for all attributions, or one for each.

        The null of one attribution never holds its rationale, unless the protocol draws sets independently.
        """
        engine, item, names = self.engine, self.item, tuple(self.engine.attributions)
        seed, m = engine.config.seed, engine.longest
        for code, null in enumerate(engine.config.nulls):
            if null == SIZE and shared is not None:
                yield code, NOT_SET, shared
                continue
            for attribution, mask in chosen.items():
                if null == SIZE:
                    own = {"seed": seed, "example_id": item.example_id, "attribution": names[attribution]}
                    sets = independent_sets(item.n_units, size, m, **own)  # type: ignore[arg-type]
                else:
                    counts = engine.unit_counts
                    found = matched_sets(null, item, units_of(mask), m, seed=seed, counts=counts)
                    sets = np.array([keep_mask(units, item.n_units) for units in found], dtype=bool)
                yield code, attribution, sets.reshape(-1, item.n_units)

    def _new_sets(self, operator: int, direction: int) -> Ids:
        """Return the indices of newly requested sets."""
        posed = pose_of(tuple(self.engine.operators)[operator])
        found = [self._rationales] if self._wants_first and not posed else []
        for family in self._families:
            stream = Stream(family.size, family.null, family.attribution, operator, direction)
            found.append(np.arange(family.start + self._given[stream], family.start + self._reach[stream]))
            self._given[stream] = self._reach[stream]
        return np.concatenate(found) if found else NO_IDS

    def _eraser_rows(self) -> Iterator[Rows]:
        """Yield the rows of ERASER's measures: rationales of its sizes kept and removed, and single units removed."""
        n_units, sets = self.item.n_units, dict[tuple[int, int], KeepMask]()
        for code, mask in self._chosen((*ERASER_SHARES, *self.engine.config.k)):
            sets[code, int(np.count_nonzero(mask))] = mask
        codes = np.array(list(sets), dtype=np.int64).reshape(-1, 2)
        chosen = heads(len(sets), example=self.place, kind=Kind.ERASER, attribution=codes[:, 0], size=codes[:, 1])
        masks = np.array(list(sets.values()), dtype=bool).reshape(-1, n_units)
        alone = heads(n_units, example=self.place, kind=Kind.LEAVE_ONE_OUT, size=1, set=np.arange(n_units))
        for operator in range(len(self.engine.operators)):
            for direction in range(len(DIRECTIONS)):
                yield self._under(operator, direction, chosen, masks)
            yield self._under(operator, DIRECTIONS.index("necessity"), alone, np.eye(n_units, dtype=bool))

    def _under(self, operator: int, direction: int, head: NDArray[Any], sets: KeepMasks) -> Rows:
        """Return the rows of sets under one operator and direction.

        Rationales are scored under every fill of the operator. Random sets are distributed over the fills: set number j
        is scored under fill j modulo their number, and compared with the rationale under that fill.
        """
        name, item = tuple(self.engine.operators)[operator], self.item
        act = self.engine.operators[name]
        keep = sets if DIRECTIONS[direction] == "sufficiency" else ~sets
        draws, rows = _under_fills(head, self._n_fills(name)).nonzero()
        own, kept = head.take(rows), keep.take(rows, axis=0)
        own["operator"], own["direction"], own["draw"] = operator, direction, draws
        if act.needs_fills and self.engine.config.fills == "own":
            return self._with_own_fills(act, own, kept)
        starts = np.flatnonzero(np.diff(draws, prepend=NOT_SET)).tolist()  # rows of one fill are adjacent
        inputs = []
        for start, stop in itertools.pairwise([*starts, len(draws)]):
            fills = self._shared_fills(name, int(draws[start])) if act.needs_fills else NO_IDS
            inputs.append(act.build(item, kept[start:stop], fills=fills))
        return Rows.of(own, kept, Inputs.join(inputs))

    def _shared_fills(self, operator: str, draw: int) -> Fills:
        if (operator, draw) not in self.fills:
            self.fills[operator, draw] = _draw_fills(self.engine, self.item, operator, draw)
        return self.fills[operator, draw].ids

    def _with_own_fills(self, act: Any, head: NDArray[Any], keep: KeepMasks) -> Rows:
        """Return rows that each have their own fills."""
        item, inputs, texts = self.item, [], {}
        for row, mask in enumerate(keep):
            operator = self.engine.config.operators[head[row]["operator"]]
            drawn = _draw_fills(self.engine, item, operator, *self._purpose(head[row]))
            inputs.append(act.build(item, mask[None], fills=drawn.ids))
            texts[row] = " ".join(np.where(mask, item.texts, drawn.texts).tolist())
        return Rows.of(head, keep, Inputs.join(inputs), texts)

    def _purpose(self, row: Any) -> tuple[str | int | None, ...]:
        """Return the seed keys of one row's fills; changing these words would change the draws."""
        name = self.engine.config.attributions[row["attribution"]] if row["attribution"] != NOT_SET else ""
        null = self.engine.config.nulls[row["null"]] if row["null"] != NOT_SET else ""
        words = {
            Kind.RATIONALE: f"rationale:{name}",
            Kind.RANDOM: ":".join(each for each in ("random", "" if null == SIZE else null, name) if each),
            Kind.ERASER: f"probe:eraser:{name}",
            Kind.LEAVE_ONE_OUT: "probe:leave-one-out",
        }
        kind = Kind(row["kind"])
        place = int(row["set"]) if kind in (Kind.RANDOM, Kind.LEAVE_ONE_OUT) else None
        operator = self.engine.config.operators[row["operator"]]
        return (words[kind], operator, DIRECTIONS[row["direction"]], int(row["size"]), place, int(row["draw"]))


def _under_fills(head: NDArray[Any], n_fills: int) -> NDArray[np.bool_]:
    """Return a mask of the rows that are scored under each fill, (fills, rows)."""
    kind, draws = head["kind"], np.arange(n_fills)[:, None]
    is_set = (kind == Kind.RANDOM) & (head["set"] % n_fills == draws)
    is_probe = ((kind == Kind.ERASER) | (kind == Kind.LEAVE_ONE_OUT)) & (draws < ERASER_FILLS)
    chosen: NDArray[np.bool_] = (kind == Kind.RATIONALE) | is_set | is_probe
    return chosen


def _draw_fills(engine: Engine, item: Encoded, operator: str, *purpose: str | int | None) -> DrawnFills:
    """Draw one replacement per unit for a purpose: a draw shared by all rows, or a single row."""
    assert engine.pool is not None, "an operator that needs fills has a pool"
    rng = rng_for(engine.config.seed, item.example_id, "fills", *(str(p) for p in purpose))
    return engine.pool.draw(item, rng, operator=operator)


def undecided(
    inputs: Sequence[InputRow], wanted: Sequence[ExampleRows], scored: Ledger
) -> list[tuple[ExampleRows, set[Stream]]]:
    """Return the examples with undecided tests, each with the streams to extend.

    Every attribution has its own stopping time under every operator. The average over operators uses the sets that all
    of them have scored, so its shortest streams grow.
    """
    engine = wanted[0].engine
    config = engine.settings(model=engine.model.name)
    names, examples = scored.names, Examples.of(inputs)
    tests = ScoredExamples(examples, scored, config)
    growing: dict[int, set[Stream]] = {}
    for cell, operators in configurations(config):
        decided = tests.decided(cell, operators)
        sizes = tests.sizes(cell.attribution, cell.k)
        own, null = names.attributions.index(cell.attribution), names.nulls.index(cell.null)
        direction, codes = DIRECTIONS.index(cell.direction), [names.operators.index(name) for name in operators]
        for rows in wanted:
            size = int(sizes[rows.place])
            if not size or decided[rows.place]:
                continue
            streams = [Stream(size, null, whose, code, direction) for code in codes for whose in (NOT_SET, own)]
            shortest = list(_shortest(rows, streams))
            if not any(rows.at_end(stream) for stream in shortest):
                growing.setdefault(rows.place, set()).update(shortest)
    return [(rows, growing[rows.place]) for rows in wanted if growing.get(rows.place)]


def _shortest(rows: ExampleRows, streams: Sequence[Stream]) -> Iterator[Stream]:
    known = [stream for stream in streams if rows.has(stream)]
    reach = min(map(rows.reach, known), default=0)
    yield from (stream for stream in known if rows.reach(stream) == reach)
