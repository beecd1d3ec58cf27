"""Attributions that a user brings along, as numbers or as a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ice_eval.attributions._base import Attribution, Lens
from ice_eval.errors import DataError
from ice_eval.records import Encoded, PerUnit


@dataclass(frozen=True, kw_only=True)
class Computed(Attribution):
    """A function from an encoded example (its `texts` are the units) to a number per unit."""

    brought: ClassVar[bool] = True
    function: Callable[[Encoded], ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        return [np.asarray(self.function(item), dtype=np.float64) for item in batch]


@dataclass(frozen=True, kw_only=True)
class Given(Attribution):
    """Numbers per unit for every example, by example id."""

    brought: ClassVar[bool] = True
    values: Mapping[str, ArrayLike]

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        missing = [item.example_id for item in batch if item.example_id not in self.values]
        if missing:
            raise DataError(f"the attribution '{lens.name}' has no values for example '{missing[0]}'.")
        return [np.asarray(self.values[item.example_id], dtype=np.float64) for item in batch]
