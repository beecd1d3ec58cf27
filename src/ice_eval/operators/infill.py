"""Retrieval infill: its operator, the pool of units that it draws from, and the units it must not write."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.operators._base import Operator, operator
from ice_eval.records import PROTECTED, Encoded, Fills, Ids, Inputs, KeepMasks, Unit

POOL_EXAMPLES = 2_000
"""Number of first examples of the data that fill the pool, evaluated or not."""
_MIN_PIECE = 4
"""Fewest characters of pieces and derived forms: 'no' must not block 'know', nor 'neg' 'neglect'."""
_MIN_COUNT = 5
"""Fewest occurrences of a label-indicative token."""
_Z_LIMIT = 1.96
"""Largest log-odds between labels, in standard errors, of a token that is not label-indicative."""


@operator("infill")
@dataclass(frozen=True, kw_only=True)
class Infill(Operator):
    """Retrieval infill: units that are not kept are overwritten by their fills.

    A fill has as many tokens as the unit it replaces, so the length is preserved.
    """

    units: ClassVar[tuple[Unit, ...]] = ("token", "word", "sentence", "passage")
    needs_fills = True

    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        replaced = item.ids.copy()
        # Units are numbered in the order of tokens, so their fills in order line up with the tokens of units.
        replaced[item.unit_of != PROTECTED] = fills
        return item.overwritten(item.tokens_kept(keep), replaced)


@dataclass(frozen=True)
class Blacklist:
    """Units that infill must not write: words by their text, tokens by their ids."""

    words: frozenset[str]
    """Label words, casefolded; their pieces and derived forms are blocked too."""
    lexicon: frozenset[str]
    """The task's own list of label-indicative words, casefolded; blocked as whole units."""
    tokens: frozenset[int]
    """Tokens whose use differs between the gold labels."""

    def blocks(self, text: str, ids: Iterable[int]) -> bool:
        """Return True if a unit must not be used as a fill."""
        folded = text.strip().casefold()
        return (
            folded in self.lexicon
            or any(_is_form_of(folded, word) for word in self.words)
            or not self.tokens.isdisjoint(ids)
        )


def _is_form_of(text: str, word: str) -> bool:
    """Return True if `text` is `word`, derived from it ('positively') or a sub-word piece of it ('posit', 'ative')."""
    derived = len(word) >= _MIN_PIECE and word in text
    piece = len(text) >= _MIN_PIECE and (word.startswith(text) or word.endswith(text))
    return text == word or derived or piece


PooledUnit = tuple[tuple[int, ...], str]
"""Token ids and characters of a unit."""


@dataclass(frozen=True)
class PooledUnits:
    """Units that one example adds to the pool."""

    example_id: str
    gold: int | None
    units: tuple[PooledUnit, ...]

    @classmethod
    def of(cls, item: Encoded, gold: int | None) -> "PooledUnits":
        units = zip(item.unit_ids(), item.texts, strict=True)
        return cls(item.example_id, gold, tuple((tuple(ids.tolist()), text) for ids, text in units))


class DrawnFills(NamedTuple):
    """A replacement for every unit of an example."""

    ids: Fills
    texts: tuple[str, ...]


class _Piece(NamedTuple):
    """One pooled unit of `size` tokens for each of some units of an example."""

    size: int
    units: list[int]
    numbers: Ids
    """(units,): indices of the random numbers."""
    tokens: Ids
    """(units, size): indices of the tokens, counted in units alone."""


class FillPool:
    """Units of other examples, bucketed by token count, drawn in constant time.

    In a bucket the units of one example are adjacent, so excluding an example is one subtraction:

    ```text
    bucket of 1-token units   [ex0 ex0 ex0 | ex1 ex1 | ex2 ex2 ex2 ex2]
    without ex1               draw from 0 … 6, and add 2 from position 3 on
    ```
    """

    def __init__(self, pool: Sequence[PooledUnits], *, blacklist: Blacklist) -> None:
        if len(pool) < 2:
            raise DataError(
                f"infill draws from other examples, and the data hold {len(pool)}; give at least 2 examples, "
                "or use --operators delete."
            )
        self.knows_labels = len({entry.gold for entry in pool if entry.gold is not None}) > 1
        """True if gold labels show which tokens reveal a label."""
        buckets: dict[int, list[PooledUnit]] = {}
        self._own: dict[tuple[int, str], tuple[int, int]] = {}
        """(length, example id) -> first index of the example's units in the bucket, and the one after the last."""
        blocked: dict[PooledUnit, bool] = {}
        for entry in pool:
            by_length: dict[int, list[PooledUnit]] = {}
            for unit in entry.units:
                if unit not in blocked:
                    blocked[unit] = blacklist.blocks(unit[1], unit[0])
                if not blocked[unit]:
                    by_length.setdefault(len(unit[0]), []).append(unit)
            for length, units in by_length.items():
                bucket = buckets.setdefault(length, [])
                start, stop = self._own.get((length, entry.example_id), (len(bucket), len(bucket)))
                self._own[length, entry.example_id] = (start, stop + len(units))
                bucket += units
        self._texts = {length: [text for _, text in bucket] for length, bucket in buckets.items()}
        self._tables = {length: np.array([ids for ids, _ in bucket]) for length, bucket in buckets.items()}
        """Length -> (units, length): the ids of all units."""
        self._last: tuple[Encoded | None, list[_Piece]] = None, []
        """The item that was drawn for last, with its pieces: an example has several fills."""
        if not buckets:
            raise DataError("infill found no unit that may be written: every unit of the data is on the blacklist.")
        if len({example_id for _, example_id in self._own}) < 2:
            raise DataError("infill draws from other examples, and only one example has units that may be written.")

    def can_fill(self, item: Encoded) -> bool:
        """Return True if other examples have units to fill every unit of this one with."""
        lengths = set(item.unit_lengths().tolist())
        return all(self._sizes(length, item.example_id) is not None for length in lengths)

    def draw(self, item: Encoded, rng: np.random.Generator, *, operator: str = "infill") -> DrawnFills:
        """Draw one replacement for every unit of `item`, from the other examples, whatever the operator."""
        last = self._last
        if last[0] is not item:
            last = self._last = item, list(self._pieces(item))
        # One uniform number per token is enough for any composition, and keeps the stream independent of the pool.
        numbers = rng.random(int(np.count_nonzero(item.unit_of != PROTECTED)))
        ids, texts = np.zeros(len(numbers), dtype=np.int64), [""] * item.n_units
        for piece in last[1]:
            start, stop = self._own.get((piece.size, item.example_id), (0, 0))
            picked = (numbers[piece.numbers] * self._available(piece.size, item.example_id)).astype(np.int64)
            picked += (picked >= start) * (stop - start)
            ids[piece.tokens] = self._tables[piece.size][picked]
            known = self._texts[piece.size]
            for unit, place in zip(piece.units, picked.tolist(), strict=True):
                texts[unit] += known[place]
        return DrawnFills(ids, tuple(texts))

    def _pieces(self, item: Encoded) -> Iterator[_Piece]:
        """Yield the pieces of all units: one for each unit, or shorter ones joined, longest first."""
        lengths = item.unit_lengths()
        starts = np.cumsum(lengths) - lengths
        for length in sorted(set(lengths.tolist())):
            sizes = self._sizes(length, item.example_id)
            if sizes is None:
                raise DataError(
                    f"infill found no unit of other examples for example '{item.example_id}': its data are too few."
                )
            units = (lengths == length).nonzero()[0]
            for number, size in enumerate(sizes):
                tokens = starts[units][:, None] + np.arange(sum(sizes[:number]), sum(sizes[: number + 1]))
                yield _Piece(size, units.tolist(), starts[units] + number, tokens)

    def tokens(self, count: int, rng: np.random.Generator) -> Ids:
        """Draw units of one token each, of any example."""
        if 1 not in self._tables:
            raise DataError("infill found no unit of one token in the data.")
        ids: Ids = self._tables[1][:, 0]
        return ids[rng.integers(len(ids), size=count)]

    def _sizes(self, length: int, example_id: str) -> list[int] | None:
        """Return the token counts of the pooled units that make up `length`, or None where there are none."""
        sizes: list[int] = []
        while sum(sizes) < length:
            left = length - sum(sizes)
            size = next((n for n in range(left, 0, -1) if self._available(n, example_id)), None)
            if size is None:
                return None
            sizes.append(size)
        return sizes

    def _available(self, size: int, example_id: str) -> int:
        start, stop = self._own.get((size, example_id), (0, 0))
        return len(self._texts.get(size, ())) - (stop - start)


class LongUnitPool:
    """Sentences or passages of other examples, cut to the length of the unit that they replace.

    No two long units have the same number of tokens, so that whole ones would seldom fit.
    """

    knows_labels = True

    def __init__(self, items: Sequence[tuple[str, Encoded]], decode: Callable[[Sequence[Ids]], list[str]]) -> None:
        """Take examples with the groups they belong to; examples of one group never fill each other."""
        self._decode, self._group = decode, {item.example_id: group for group, item in items}
        self._last: tuple[str | None, set[str], list[Ids]] = None, set(), []
        self._units: dict[str, list[tuple[str, Ids]]] = {}
        for group, item in items:
            self._units.setdefault(group, list(zip(item.texts, item.unit_ids(), strict=True)))
        if len(self._units) < 2:
            shared = f"infill writes parts of other texts, and all {len(items)} examples share one"
            raise DataError(f"{shared}; give a larger --n, or use --operators delete.")

    def can_fill(self, item: Encoded) -> bool:
        """Return True if another group has a unit that this example does not show."""
        return bool(self._of_others(item))

    def draw(self, item: Encoded, rng: np.random.Generator, *, operator: str = "infill") -> DrawnFills:
        """Draw a unit for every unit of an example, and join more where one is too short."""
        others, ids = self._of_others(item), list[Ids]()
        for length in item.unit_lengths().tolist():
            drawn: Ids = np.zeros(0, dtype=np.int64)
            while len(drawn) < length:
                drawn = np.concatenate([drawn, others[int(rng.integers(len(others)))]])
            ids.append(drawn[:length])
        return DrawnFills(np.concatenate(ids), tuple(self._decode(ids)))

    def _of_others(self, item: Encoded) -> list[Ids]:
        group, own = self._group.get(item.example_id), set(item.texts)
        if group is None or self._last[:2] != (group, own):  # examples of one group come one after the other
            every = (each for name, units in self._units.items() if name != group for each in units)
            self._last = group, own, [ids for text, ids in every if text not in own and len(ids)]
        return self._last[2]


@dataclass(frozen=True)
class TokenCounts:
    golds: Ids
    """(examples,)"""
    example_of: Ids
    """(tokens,): the example of each token."""
    type_of: Ids
    """(tokens,): the index of each in the vocabulary."""
    vocabulary: Ids

    @classmethod
    def of(cls, pool: Sequence[PooledUnits]) -> "TokenCounts":
        known = [(entry.gold, [i for ids, _ in entry.units for i in ids]) for entry in pool if entry.gold is not None]
        tokens = np.array([i for _, ids in known for i in ids], dtype=np.int64)
        vocabulary, type_of = np.unique(tokens, return_inverse=True)
        example_of = np.repeat(np.arange(len(known)), [len(ids) for _, ids in known])
        return cls(np.array([gold for gold, _ in known], dtype=np.int64), example_of, type_of, vocabulary)

    def indicative(
        self, golds: Ids | None = None, *, min_count: int = _MIN_COUNT, z_limit: float = _Z_LIMIT
    ) -> frozenset[int]:
        """Return the tokens that are used more, or less, under one label than under the others.

        The statistic is the smoothed log-odds of a token between a label and the rest over its standard error (Monroe
        et al., 2008, with a flat prior of one half). A token is indicative beyond `z_limit` if it occurs `min_count`
        times. `golds` replace the labels of the examples.
        """
        labels, label_of = np.unique(self.golds if golds is None else golds, return_inverse=True)
        if len(labels) < 2:
            return frozenset()
        cells = label_of[self.example_of] * len(self.vocabulary) + self.type_of
        counts = np.bincount(cells, minlength=len(labels) * len(self.vocabulary)).reshape(len(labels), -1)
        called = (counts.sum(axis=0) >= min_count) & (np.abs(_z(counts)) > z_limit).any(axis=0)
        return frozenset(int(i) for i in self.vocabulary[called])


def label_indicative(pool: Sequence[PooledUnits]) -> frozenset[int]:
    """Return the tokens that differ in use between the gold labels; see `TokenCounts.indicative`."""
    return TokenCounts.of(pool).indicative()


def _z(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log-odds over their standard errors, for a (labels, tokens) table of counts."""
    inside, rest = counts + 0.5, counts.sum(axis=0) - counts + 0.5
    inside_other, rest_other = inside.sum(axis=1, keepdims=True) - inside, rest.sum(axis=1, keepdims=True) - rest
    with np.errstate(divide="ignore", invalid="ignore"):  # the only token of the data differs from no other
        log_odds = np.log(inside / inside_other) - np.log(rest / rest_other)
    z: NDArray[np.float64] = log_odds / np.sqrt(1 / inside + 1 / rest)
    return z
