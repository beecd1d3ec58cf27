"""The pool of infill: units of other examples, without those that give the label away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.records import Encoded, Ids

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
        units = zip(item.unit_ids(), item.texts, strict=True)
        return cls(item.example_id, gold, tuple((tuple(ids.tolist()), text) for ids, text in units))


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
        self._buckets: dict[int, list[tuple[int, ...]]] = {}
        self._own: dict[tuple[int, str], tuple[int, int]] = {}
        for entry in pool:
            self._add(entry)
        if not self._buckets:
            raise DataError("infill found no unit that may be written: every unit of the data is on the blacklist.")
        if len({example_id for _, example_id in self._own}) < 2:
            raise DataError("infill draws from other examples, and only one example has units that may be written.")

    def _add(self, entry: PooledUnits) -> None:
        for ids, text in entry.units:
            if self.blacklist.blocks(text, ids):
                continue
            bucket = self._buckets.setdefault(len(ids), [])
            start, stop = self._own.get((len(ids), entry.example_id), (len(bucket), len(bucket)))
            bucket.append(ids)
            self._own[len(ids), entry.example_id] = (start, stop + 1)

    def can_fill(self, item: Encoded) -> bool:
        """Whether other examples have units to fill every unit of this one with."""
        lengths = set(np.bincount(item.unit_of[item.unit_of >= 0], minlength=item.n_units).tolist())
        return all(self._sizes(length, item.example_id) is not None for length in lengths)

    def draw(self, item: Encoded, rng: np.random.Generator) -> list[Ids]:
        """One replacement for every unit of `item`, from the other examples."""
        # One uniform number per token is enough for any composition, and keeps the stream independent of the pool.
        lengths = np.bincount(item.unit_of[item.unit_of >= 0], minlength=item.n_units)
        numbers = rng.random(int(lengths.sum()))
        ends = np.cumsum(lengths)
        return [
            self._fill(int(n), item.example_id, numbers[end - n : end]) for n, end in zip(lengths, ends, strict=True)
        ]

    def tokens(self, count: int, rng: np.random.Generator) -> Ids:
        """Units of one token each, of any example."""
        if 1 not in self._buckets:
            raise DataError("infill found no unit of one token in the data.")
        bucket = self._buckets[1]
        return np.array([bucket[int(i)][0] for i in rng.integers(len(bucket), size=count)], dtype=np.int64)

    def _fill(self, length: int, example_id: str, numbers: NDArray[np.float64]) -> Ids:
        """A pooled unit of `length` tokens, else shorter ones joined, longest first."""
        sizes = self._sizes(length, example_id)
        if sizes is None:
            raise DataError(f"infill found no unit of other examples for example '{example_id}': its data are too few.")
        found = [i for size, number in zip(sizes, numbers, strict=False) for i in self._pick(size, example_id, number)]
        return np.asarray(found, dtype=np.int64)

    def _sizes(self, length: int, example_id: str) -> list[int] | None:
        """Token counts of the pooled units that make up `length`, or None where there are none."""
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
        return len(self._buckets.get(size, ())) - (stop - start)

    def _pick(self, size: int, example_id: str, number: float) -> tuple[int, ...]:
        start, stop = self._own.get((size, example_id), (0, 0))
        place = int(number * self._available(size, example_id))
        return self._buckets[size][place + (stop - start) if place >= start else place]
