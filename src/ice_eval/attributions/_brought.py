"""Attributions that a user brings along, as numbers or as a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ice_eval.attributions._base import Attribution, Lens, one_per_unit
from ice_eval.errors import DataError
from ice_eval.records import Encoded, PerUnit


@dataclass(frozen=True, kw_only=True)
class Computed(Attribution):
    """A function from an encoded example (its `texts` are the units) to a number per unit."""

    brought: ClassVar[bool] = True
    function: Callable[[Encoded], ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [_numbers(lens.name, item, self.function(item)) for item in batch]


@dataclass(frozen=True, kw_only=True)
class Given(Attribution):
    """Numbers per unit for every example, by example id."""

    brought: ClassVar[bool] = True
    values: Mapping[str, ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [self.of(lens.name, item) for item in batch]

    def of(self, name: str, item: Encoded) -> PerUnit:
        """The numbers of one example, checked.

        Raises:
            DataError: There are none, or not one per unit.
        """
        if item.example_id not in self.values:
            raise DataError(f"the attribution '{name}' has no values for example '{item.example_id}'.")
        return _numbers(name, item, self.values[item.example_id])


def _numbers(name: str, item: Encoded, given: ArrayLike) -> PerUnit:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError) as exc:
        raise DataError(f"the attribution '{name}' gave no numbers for example '{item.example_id}': {exc}.") from exc
    return one_per_unit(name, item, values)
