"""The pool of infill: units of other examples, without those that give the label away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.records import Encoded, Fills, Ids

POOL_EXAMPLES = 2_000
"""The pool is filled from this many first examples of the data, evaluated or not."""
_MIN_PIECE = 4
"""Pieces and derived forms count from this many characters on: 'no' must not block 'know', nor 'neg' 'neglect'."""


@dataclass(frozen=True)
class Blacklist:
    """What infill must not write: words by their text, tokens by their ids."""

    words: frozenset[str]
    """Label words, casefolded; their pieces and derived forms are blocked too."""
    lexicon: frozenset[str]
    """The task's own list of label-indicative words, casefolded; blocked as whole units."""
    tokens: frozenset[int]
    """Tokens whose use differs between the gold labels."""

    def blocks(self, text: str, ids: Iterable[int]) -> bool:
        """Whether a unit must not be used as a fill."""
        folded = text.strip().casefold()
        return (
            folded in self.lexicon
            or any(_form_of(folded, word) for word in self.words)
            or not self.tokens.isdisjoint(ids)
        )


def _form_of(text: str, word: str) -> bool:
    """Whether `text` is `word`, a form derived from it ('positively') or a sub-word piece of it ('posit', 'ative')."""
    derived = len(word) >= _MIN_PIECE and word in text
    piece = len(text) >= _MIN_PIECE and (word.startswith(text) or word.endswith(text))
    return text == word or derived or piece


@dataclass(frozen=True)
class PooledUnits:
    """The units that one example gives to the pool."""

    example_id: str
    gold: int | None
    units: tuple[tuple[tuple[int, ...], str], ...]
    """Token ids and characters of each unit."""

    @classmethod
    def of(cls, item: Encoded, gold: int | None) -> "PooledUnits":
        """What an encoded example gives to the pool."""
        ids, end, units = item.content_ids().tolist(), 0, []
        for length, text in zip(item.unit_lengths().tolist(), item.texts, strict=True):
            units.append((tuple(ids[end : end + length]), text))
            end += length
        return cls(item.example_id, gold, tuple(units))


class DrawnFills(NamedTuple):
    """A replacement for every unit of an example."""

    ids: Fills
    texts: tuple[str, ...]
    """The characters of each replacement."""


class _Bucket:
    """The pooled units of one length, example after example."""

    def __init__(self) -> None:
        self.ids: list[tuple[int, ...]] = []
        self.texts: list[str] = []
        self._table: Ids | None = None

    @property
    def table(self) -> Ids:
        """(units, length): the ids of all units."""
        if self._table is None or len(self._table) != len(self.ids):
            self._table = np.array(self.ids, dtype=np.int64)
        return self._table


class FillPool:
    """Units of other examples, bucketed by token count, drawn in constant time.

    In a bucket the units of one example stand together, so leaving an example out is one subtraction:

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
        self.blacklist = blacklist
        self.knows_labels = len({entry.gold for entry in pool if entry.gold is not None}) > 1
        """Whether gold labels told which tokens give a label away."""
        self._buckets: dict[int, _Bucket] = {}
        self._own: dict[tuple[int, str], tuple[int, int]] = {}
        self._blocked: dict[tuple[tuple[int, ...], str], bool] = {}
        for entry in pool:
            self._add(entry)
        if not self._buckets:
            raise DataError("infill found no unit that may be written: every unit of the data is on the blacklist.")
        if len({example_id for _, example_id in self._own}) < 2:
            raise DataError("infill draws from other examples, and only one example has units that may be written.")

    def _add(self, entry: PooledUnits) -> None:
        for ids, text in entry.units:
            if (ids, text) not in self._blocked:
                self._blocked[ids, text] = self.blacklist.blocks(text, ids)
            if self._blocked[ids, text]:
                continue
            bucket = self._buckets.setdefault(len(ids), _Bucket())
            start, stop = self._own.get((len(ids), entry.example_id), (len(bucket.ids), len(bucket.ids)))
            bucket.ids.append(ids)
            bucket.texts.append(text)
            self._own[len(ids), entry.example_id] = (start, stop + 1)

    def can_fill(self, item: Encoded) -> bool:
        """Return whether other examples have units to fill every unit of this one with."""
        lengths = set(item.unit_lengths().tolist())
        return all(self._sizes(length, item.example_id) is not None for length in lengths)

    def draw(self, item: Encoded, rng: np.random.Generator) -> DrawnFills:
        """Draw one replacement for every unit of `item`, from the other examples."""
        # One uniform number per token is enough for any composition, and keeps the stream independent of the pool.
        lengths = item.unit_lengths()
        numbers, starts = rng.random(int(lengths.sum())), np.cumsum(lengths) - lengths
        ids, texts = np.zeros(len(numbers), dtype=np.int64), [""] * len(lengths)
        for length in np.unique(lengths).tolist():
            sizes = self._sizes(length, item.example_id)
            if sizes is None:
                raise DataError(
                    f"infill found no unit of other examples for example '{item.example_id}': its data are too few."
                )
            units, done = np.flatnonzero(lengths == length), 0
            for number, size in enumerate(sizes):  # one piece, or shorter ones joined, longest first
                bucket = self._buckets[size]
                picked = self._places(size, item.example_id, numbers[starts[units] + number])
                ids[starts[units][:, None] + np.arange(done, done + size)] = bucket.table[picked]
                for unit, place in zip(units.tolist(), picked.tolist(), strict=True):
                    texts[unit] += bucket.texts[place]
                done += size
        return DrawnFills(ids, tuple(texts))

    def tokens(self, count: int, rng: np.random.Generator) -> Ids:
        """Draw units of one token each, of any example."""
        if 1 not in self._buckets:
            raise DataError("infill found no unit of one token in the data.")
        table = self._buckets[1].table[:, 0]
        return table[rng.integers(len(table), size=count)]

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
        return (len(self._buckets[size].ids) if size in self._buckets else 0) - (stop - start)

    def _places(self, size: int, example_id: str, numbers: NDArray[np.float64]) -> Ids:
        """Return where in a bucket uniform numbers point to, the example's own units left out."""
        start, stop = self._own.get((size, example_id), (0, 0))
        places = (numbers * self._available(size, example_id)).astype(np.int64)
        return places + np.where(places >= start, stop - start, 0)
