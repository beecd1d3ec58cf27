"""What interpreto's explainers return."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.interop._formats import Format, explanation_format, is_from
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece


@explanation_format("interpreto")
class Interpreto(Format):
    """An `AttributionOutput`: elements, and a row of scores per class, or per generated token, which are summed."""

    def reads(self, source: object) -> bool:
        return is_from(source, "interpreto", "AttributionOutput")

    def explanations(self, source: Any) -> Iterator[Explanation]:
        if not isinstance(source.elements, list):
            raise DataError(
                "an AttributionOutput without texts for its elements; give a granularity of tokens or words."
            )
        rows = np.atleast_2d(numbers(source.attributions))
        pieces = tuple(Piece(str(element)) for element in source.elements)
        if "GENERATION" in str(source.model_task).upper():
            # A generated token says nothing about those after it: not a number.
            yield Explanation(np.nansum(rows, axis=0), pieces)
        elif len(rows) == 1:
            yield Explanation(rows[0], pieces)
        else:
            yield Explanation(rows[_in_order(source.targets)].T, pieces)


def _in_order(targets: Any) -> NDArray[np.int64]:
    """The rows in the order of their classes."""
    classes = numbers(targets).astype(np.int64).ravel()
    order: NDArray[np.int64] = np.argsort(classes)
    if classes[order].tolist() != list(range(len(classes))):
        raise DataError(
            f"an AttributionOutput of the classes {', '.join(map(str, classes))}; one class is expected, or all."
        )
    return order
