"""Distributions of values over single examples: shares in bins, expected ones by chance, quantiles."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def shares(values: Values, n_bins: int) -> Values:
    """Return the share of values in [0, 1] in every bin; a limit belongs to the bin below, 0 to the first."""
    places = np.clip(np.ceil(values * n_bins - 1e-9).astype(int) - 1, 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins) / max(values.size, 1)


def shares_by_chance(n_sets: Values, n_bins: int) -> Values:
    """Return expected shares of p-values if all m + 1 ranks are equally likely, averaged over examples."""
    sizes, counts = np.unique(n_sets.astype(int), return_counts=True)
    expected = [count * shares(np.arange(1, m + 2) / (m + 1), n_bins) for m, count in zip(sizes, counts, strict=True)]
    mean: Values = np.sum(expected, axis=0) / counts.sum()
    return mean


def quantiles(values: Values, levels: Sequence[float]) -> list[float] | list[None]:
    """Return quantiles at some levels; None each where there are no values."""
    if not values.size:
        return [None] * len(levels)
    found: list[float] = np.quantile(values, list(levels)).tolist()
    return found
