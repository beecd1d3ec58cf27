"""From an attribution to its top-k set, and the random sets it is compared with."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval._seeding import rng_for
from ice_eval.errors import DataError
from ice_eval.records import PerUnit

Units = tuple[int, ...]  # unit indices, ascending
Share = float | Literal["dynamic"]
"""How large a rationale is: a share of the units, or as many as the attribution has peaks."""

DYNAMIC: Literal["dynamic"] = "dynamic"
ERASER_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Sizes of rationale that ERASER averages over."""

_ENUMERATE = 10_000
"""Up to this many sets are listed and shuffled; beyond, sets are drawn and repeats are skipped."""


def set_size(n_units: int, k: float) -> int:
    """How many units the top `k` share of `n_units` holds: `max(1, floor(k * n))`, never all of several."""
    # 0.3 * 10 is 2.9999999999999996 in floating point: a whole number must not be floored to the one below.
    return max(1, min(math.floor(k * n_units + 1e-9), n_units - 1))


def rationale_size(attribution: ArrayLike, k: Share | None, *, magnitude: bool = False) -> int:
    """How many units a rationale holds: the top `k` share, one for each peak, or without k all with a positive number.

    Args:
        attribution: A number per unit.
        k: The share, `"dynamic"`, or None.
        magnitude: Whether units rank by the size of their number, whatever its sign.
    """
    values = np.asarray(attribution, dtype=np.float64)
    if k is None:
        return len(positive(values))
    if k == DYNAMIC:
        return n_peaks(np.abs(values) if magnitude else values)
    return set_size(values.size, k)


def n_peaks(attribution: PerUnit) -> int:
    """How many units stand out from their neighbours, at least one (Kamp et al., 2023).

    A peak is higher than the unit before it and the unit after it (the first and the last unit have one neighbour), and
    not below the mean of all. Neighbours with the same number are one peak together.
    """
    if attribution.size < 2:
        return attribution.size
    heights = attribution[np.append(True, np.diff(attribution) != 0)]
    steps = np.diff(heights)
    is_peak = np.append(True, steps > 0) & np.append(steps < 0, True)
    return max(1, int(np.count_nonzero(is_peak & (heights >= attribution.mean()))))


def positive(attribution: PerUnit) -> Units:
    """The units with a positive number: the rationale of an attribution that has a size of its own."""
    return tuple(int(unit) for unit in np.flatnonzero(attribution > 0))


def n_sets(n_units: int, size: int) -> int:
    """How many sets of that size there are."""
    return math.comb(n_units, size)


def top_k(attribution: PerUnit, size: int, *, rng: np.random.Generator) -> Units:
    """The `size` units with the largest attribution; ties at the boundary are broken by `rng`, never by position."""
    if not np.isfinite(attribution).all():
        raise DataError("the attribution holds values that are not finite")
    if not 1 <= size <= attribution.size:
        raise DataError(f"a rationale of {size} units was asked for, and the text has {attribution.size}")
    order = np.lexsort((rng.random(attribution.size), -attribution))
    return tuple(sorted(int(unit) for unit in order[:size]))


def random_sets(n_units: int, size: int, count: int, *, seed: int, example_id: str) -> list[Units]:
    """The first `count` sets of the one random order that belongs to (example, size), all if there are fewer.

    The order is fixed before any rationale is seen and depends on nothing else: a larger `count` only makes it longer.
    """
    rng = rng_for(seed, example_id, "random-sets", size)
    return list(itertools.islice(_order(n_units, size, rng), count))


def independent_sets(n_units: int, size: int, count: int, *, seed: int, example_id: str, kind: str) -> list[Units]:
    """`count` sets drawn one by one, for rows of one kind: they may repeat, and a rationale may be among them."""
    rng = rng_for(seed, example_id, "independent-sets", kind, size)
    return [_drawn(n_units, size, rng) for _ in range(count)]


def in_random_order(
    count: int,
    every: Callable[[], Iterable[Units]],
    draw: Callable[[np.random.Generator], Units],
    *,
    rng: np.random.Generator,
) -> Iterator[Units]:
    """Each of `count` different sets once, in a random order.

    Args:
        count: How many sets there are.
        every: Lists them; called only where they are few.
        draw: Gives one of them at random, all equally likely.
        rng: Where the order comes from.
    """
    if count <= _ENUMERATE:
        listed = list(every())
        for index in rng.permutation(len(listed)):
            yield listed[index]
        return
    seen: set[Units] = set()
    while len(seen) < count:
        units = draw(rng)
        if units not in seen:
            seen.add(units)
            yield units


def _order(n_units: int, size: int, rng: np.random.Generator) -> Iterator[Units]:
    return in_random_order(
        n_sets(n_units, size),
        every=lambda: itertools.combinations(range(n_units), size),
        draw=lambda rng: _drawn(n_units, size, rng),
        rng=rng,
    )


def _drawn(n_units: int, size: int, rng: np.random.Generator) -> Units:
    return tuple(sorted(int(u) for u in rng.choice(n_units, size, replace=False)))


def null_of(rationale: Units, sets: list[Units], m: int) -> list[int]:
    """Indices of the first `m` sets that differ from the rationale: its null.

    `sets` are the first m + 1 of the order, or all there are; then this is every other set and the test is exact.
    """
    return [index for index, units in enumerate(sets) if units != rationale][:m]


def keep_mask(units: Units, n_units: int) -> NDArray[np.bool_]:
    """The row that keeps just these units."""
    mask = np.zeros(n_units, dtype=bool)
    mask[list(units)] = True
    return mask
