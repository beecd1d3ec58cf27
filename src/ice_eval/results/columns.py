"""Outcomes as columns of numbers."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ice_eval.results.comparisons import Outcome

Groups = Sequence[Hashable] | None
"""The group of each example; None where no two share one."""


def column(used: Sequence[Outcome], name: str) -> NDArray[np.float64]:
    """One number of every outcome."""
    return np.array([getattr(outcome, name) for outcome in used], dtype=np.float64)


def groups_of(used: Sequence[Outcome]) -> Groups:
    """Which examples share a passage; one without a group stands for itself."""
    labels = [(outcome.group, outcome.example_id if outcome.group is None else "") for outcome in used]
    return labels if len(set(labels)) < len(labels) else None
