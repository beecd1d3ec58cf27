"""Nulls that match the number of units of a set in each stratum of a text: size, position, frequency."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ice_eval.errors import DataError
from ice_eval.nulls._base import Key, Null, SetClass, counts_of, null
from ice_eval.rationales import Units
from ice_eval.records import Encoded

_QUARTERS = 4
_UNSEEN = -1


@dataclass(frozen=True)
class Strata(SetClass):
    """All sets that take the same number of units from each stratum."""

    strata: tuple[Units, ...]
    """Units of each stratum: together all units of the example, each once."""
    taken: tuple[int, ...]
    """Number of units of each stratum in a set."""

    @classmethod
    def of(cls, stratum_of: Sequence[int], rationale: Units) -> "Strata":
        """Return the class of a rationale, given the stratum of each unit."""
        strata: dict[int, list[int]] = {stratum: [] for stratum in sorted(set(stratum_of))}
        for unit, stratum in enumerate(stratum_of):
            strata[stratum].append(unit)
        inside = set(rationale)
        return cls(tuple(map(tuple, strata.values())), tuple(len(inside & set(units)) for units in strata.values()))

    @property
    def key(self) -> Key:
        """Return the units in each stratum and in a set: `(8, 2)` is two of eight."""
        return tuple(number for units, taken in self._parts() for number in (len(units), taken))

    @property
    def count(self) -> int:
        return math.prod(math.comb(len(units), taken) for units, taken in self._parts())

    def every(self) -> Iterator[Units]:
        choices = [itertools.combinations(units, taken) for units, taken in self._parts()]
        for chosen in itertools.product(*choices):
            yield tuple(sorted(itertools.chain(*chosen)))

    def draw(self, rng: np.random.Generator) -> Units:
        units = (
            units[place] for units, taken in self._parts() for place in rng.permutation(len(units))[:taken].tolist()
        )
        return tuple(sorted(units))

    def _parts(self) -> Iterator[tuple[Units, int]]:
        return zip(self.strata, self.taken, strict=True)


@null("size")
@dataclass(frozen=True, kw_only=True)
class Size(Null):
    """All sets of as many units."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([0] * item.n_units, rationale)


@null("position")
@dataclass(frozen=True, kw_only=True)
class Position(Null):
    """Sets with as many units in each quarter of the text: unit `i` of `n` lies in quarter `4 * i // n`."""

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        return Strata.of([_QUARTERS * unit // item.n_units for unit in range(item.n_units)], rationale)


@null("frequency")
@dataclass(frozen=True, kw_only=True)
class Frequency(Null):
    """Sets with as many units that occur 1 to 3 times in the data, 4 to 15 times, 16 to 63 times and so on."""

    needs_counts: ClassVar[bool] = True

    def class_of(self, item: Encoded, rationale: Units, *, counts: Mapping[str, int]) -> Strata:
        if not counts:
            raise DataError("the null 'frequency' needs to know how often units occur in the data; give it counts.")
        # The whole part of log4 of a count, which floating point gets wrong; unseen units are a band below.
        bands = [(n.bit_length() - 1) // 2 if n else _UNSEEN for n in counts_of(item.texts, counts)]
        return Strata.of(bands, rationale)
