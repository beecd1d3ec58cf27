"""The interface of nulls: (encoded example, rationale) -> the sets that are similar to the rationale.

A rationale that is a run of adjacent units may beat scattered sets just for that. A matched null compares it with sets
that are runs too: where it still wins, it wins by *which* units it contains.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import ClassVar, TypeVar

import numpy as np

from ice_eval._registry import Registry
from ice_eval.rationales import Units, in_random_order
from ice_eval.records import Encoded
from ice_eval.seeding import rng_for

Key = tuple["int | Key", ...]  # identifies a class; JSON can write it
_Class = TypeVar("_Class", bound="type[Null]")


class SetClass(ABC):
    """All sets of units that a rationale is matched with, itself included."""

    @property
    @abstractmethod
    def key(self) -> Key:
        """Return the trait that all sets share: rationales of one example have equal keys if and only if one class."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of sets."""

    @abstractmethod
    def every(self) -> Iterator[Units]:
        """Yield each set once, in an order that depends only on the class."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Units:
        """Return one of the sets, all equally likely."""


@dataclass(frozen=True, kw_only=True)
class Null(ABC):
    """A partition of the sets of units of an example into classes.

    A class depends on the units alone, never on attributions or scores: then a random rationale ranks uniformly among
    the sets of its class, whatever the model does.
    """

    name: ClassVar[str]
    needs_counts: ClassVar[bool] = False
    """True if `class_of` reads the counts of units in the data."""

    @abstractmethod
    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> SetClass:
        """Return the sets that a rationale is compared with; `counts` are those of `unit_counts`."""


SIZE = "size"
"""Name of the null of all sets of equal size, as in the paper: all attributions share it."""
nulls: Registry[type[Null]] = Registry("null", "ice_eval.nulls")


def null(name: str) -> Callable[[_Class], _Class]:
    """Register a null class under `name`."""

    def register(cls: _Class) -> _Class:
        cls.name = name
        nulls.add(name, cls)
        return cls

    return register


def matched_sets(
    null: str | Null, item: Encoded, rationale: Units, count: int, *, seed: int, counts: Mapping[str, int]
) -> list[Units]:
    """Return the first `count` sets of the random order of the rationale's class that differ from it, all if fewer.

    The order depends on seed, example, null and class alone: rationales of one class share it, whatever attribution
    they come from, and a larger `count` only makes it longer.
    """
    chosen = nulls.get(null)() if isinstance(null, str) else null
    alike = chosen.class_of(item, rationale, counts=counts)
    rng = rng_for(seed, item.example_id, "matched-sets", chosen.name, json.dumps(alike.key))
    order = in_random_order(alike.count, alike.every, alike.draw, rng=rng)
    return list(islice((units for units in order if units != rationale), count))


def unit_counts(texts: Iterable[Sequence[str]]) -> dict[str, int]:
    """Count units in the data, given the units' texts of each example; case and spaces are ignored."""
    return dict(Counter(text.casefold().strip() for units in texts for text in units))


def counts_of(units: Sequence[str], counts: Mapping[str, int]) -> list[int]:
    """Look up the counts of some units, as `unit_counts` returns them."""
    return [counts.get(text.casefold().strip(), 0) for text in units]


def adjacent_units(item: Encoded) -> list[range]:
    """Split the units of an example where a field ends: units of two fields are never adjacent."""
    # A prompt may show a field twice: then the second one begins a range of its own.
    pairs = enumerate(pairwise(item.spans), start=1)
    ends = [unit for unit, (one, next_) in pairs if next_.field != one.field or next_.start < one.end]
    return [range(start, end) for start, end in pairwise([0, *ends, item.n_units])] if item.n_units else []
