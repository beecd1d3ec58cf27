"""Sets that take as many units from each part of a text."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ice_eval.nulls._base import Key, SetClass
from ice_eval.rationales import Units


@dataclass(frozen=True)
class Strata(SetClass):
    """All sets that take the same number of units from each stratum."""

    strata: tuple[Units, ...]
    """The units of each: together all units of the example, each once."""
    taken: tuple[int, ...]
    """How many units of each stratum are in a set."""

    @classmethod
    def of(cls, stratum_of: Sequence[int], rationale: Units) -> "Strata":
        """The class of a rationale, given the stratum of each unit."""
        strata: dict[int, list[int]] = {stratum: [] for stratum in sorted(set(stratum_of))}
        for unit, stratum in enumerate(stratum_of):
            strata[stratum].append(unit)
        inside = set(rationale)
        return cls(tuple(map(tuple, strata.values())), tuple(len(inside & set(units)) for units in strata.values()))

    @property
    def key(self) -> Key:
        """Units in each stratum and in a set: `(8, 2)` for two of eight, `(4, 2, 4, 0)` for two of the first four."""
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
