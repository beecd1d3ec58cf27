"""Numbers in whatever another tool keeps them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError


def numbers(values: Any) -> NDArray[np.float64]:
    """An array from an array, a list, or a tensor on any device.

    Raises:
        DataError: These are no numbers.
    """
    if hasattr(values, "detach"):  # a tensor, perhaps in bfloat16, which NumPy does not know
        values = values.detach().cpu().double().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as exc:
        shown = " ".join(repr(values).split())
        raise DataError(f"numbers are expected, not {shown:.80} ({exc}).") from exc
