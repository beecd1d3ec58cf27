"""Examples that belong together: groups are drawn whole, and standard errors are those of group sums."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.stats._values import Values

Groups = Sequence[Hashable] | NDArray[Any]
"""One label per example. Examples with the same label may depend on each other in any way; groups must not."""


@dataclass(frozen=True)
class Grouping:
    """Which examples belong together."""

    counts: NDArray[np.int64]
    """Number of examples of each group, (G,)."""
    order: NDArray[np.int64] | None
    """The examples group by group; None where each is a group of its own, and nothing changes."""

    @property
    def n(self) -> int:
        """Number of groups, G."""
        return self.counts.size

    def sums(self, values: Values) -> Values:
        """Sum of each group along the last axis, (..., N) -> (..., G)."""
        if self.order is None:
            return values
        totals: Values = np.add.reduceat(values[..., self.order], np.cumsum(self.counts) - self.counts, axis=-1)
        return totals

    def means(self, values: Values) -> Values:
        """Mean of each group along the last axis, (..., N) -> (..., G)."""
        return values if self.order is None else self.sums(values) / self.counts

    def standard_errors(self, deviations: Values) -> Values:
        """Standard error of the mean of each row, given its deviations from it, (b, N) -> (b,).

        It is 0 where there is a single group.

        With groups it is the cluster-robust one, `sqrt(G / (G - 1) * sum_g (sum of deviations in g)^2) / N`.
        """
        n = deviations.shape[-1]
        sums = self.sums(deviations)
        squares = np.einsum("bn,bn->b", sums, sums)
        if self.order is None:
            errors: Values = np.sqrt(squares / max(n - 1, 1) / n)
        else:
            errors = np.sqrt(squares * self.n / max(self.n - 1, 1)) / n
        return errors


def grouping_of(groups: Groups | None, *, n: int) -> Grouping:
    """Groups of `n` examples, in the order in which their labels first appear.

    Raises:
        DataError: If there is not one label per example, or one is None or NaN.
    """
    if groups is None:
        return _alone(n)
    labels: list[Any] = list(groups)
    if len(labels) != n:
        raise DataError(f"need one group label per example, got {len(labels)} for {n} examples")
    n_missing = sum(label is None or label != label for label in labels)
    if n_missing:
        raise DataError(
            f"need a group label for every example, got {n_missing} of {n} that are None or NaN; "
            "give an example that belongs to no group a label of its own"
        )
    seen: dict[Hashable, int] = {}
    numbers = np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)
    if len(seen) == n:
        return _alone(n)
    return Grouping(np.bincount(numbers), np.argsort(numbers, kind="stable"))


def _alone(n: int) -> Grouping:
    return Grouping(np.ones(n, dtype=np.int64), None)
