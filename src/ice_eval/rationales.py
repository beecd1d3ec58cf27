"""Top-k sets of attributions, and the random sets that they are compared with."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval.choices import DYNAMIC as DYNAMIC
from ice_eval.choices import Share as Share
from ice_eval.errors import DataError
from ice_eval.records import KeepMask, KeepMasks, PerUnit
from ice_eval.seeding import rng_for

Units = tuple[int, ...]  # unit indices, ascending
ERASER_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Rationale sizes that ERASER averages over."""
ERASER_FILLS = 4
"""Largest number of fills of ERASER's rows: their probabilities are averaged over all of theirs."""

_ENUMERATE = 10_000
"""Up to this many sets are listed and shuffled; beyond, sets are drawn and repeats are skipped."""
_SPARE = 8
"""Extra sets drawn to replace repeats."""
_FLOYD, _LOW = 10_000, np.uint64(2**32 - 1)
"""Largest number of units for which `Generator.choice` always uses Floyd's algorithm; mask of the lower 32 bits."""


def set_size(n_units: int, k: float) -> int:
    """Return the number of units in the top `k` share: `max(1, floor(k * n))`, and less than n if n > 1."""
    # 0.3 * 10 is 2.9999999999999996 in floating point: a whole number must not be floored to the one below.
    return max(1, min(math.floor(k * n_units + 1e-9), n_units - 1))


def rationale_size(attribution: ArrayLike, k: Share | None, *, magnitude: bool = False) -> int:
    """Return the size of a rationale: the top `k` share, one per peak, or without k all with a positive number.

    With `magnitude`, units rank by absolute value.
    """
    values = np.asarray(attribution, dtype=np.float64)
    if k is None:
        return int(np.count_nonzero(positive(values)))
    if k == DYNAMIC:
        return n_peaks(np.abs(values) if magnitude else values)
    return set_size(values.size, k)


def n_peaks(attribution: PerUnit) -> int:
    """Return the number of peaks of an attribution, at least one (Kamp et al., 2023).

    A peak is higher than the unit before and the unit after it (the first and the last unit have one neighbour), and
    not below the mean. Equal neighbours are one peak together.
    """
    if attribution.size < 2:
        return attribution.size
    heights = attribution[np.append(True, np.diff(attribution) != 0)]
    steps = np.diff(heights)
    is_peak = np.append(True, steps > 0) & np.append(steps < 0, True)
    return max(1, int(np.count_nonzero(is_peak & (heights >= attribution.mean()))))


def positive(attribution: PerUnit) -> KeepMask:
    """Return the units with a positive number: the rationale of an attribution that sets its own size."""
    return np.greater(attribution, 0)


def n_sets(n_units: int, size: int) -> int:
    return math.comb(n_units, size)


def top_k(
    attribution: PerUnit,
    size: int,
    *,
    rng: np.random.Generator | Callable[[], np.random.Generator],
    parts: Callable[[], NDArray[np.int64]] | None = None,
) -> KeepMask:
    """Return the `size` units with the largest attribution; `rng` breaks ties at the boundary, never position.

    Of tied units, those of one part are taken together: `parts` returns the first unit of the part of each unit.
    Functions are called only for ties.
    """
    if not np.isfinite(attribution).all():
        raise DataError("the attribution holds values that are not finite")
    if not 1 <= size <= attribution.size:
        raise DataError(f"a rationale of {size} units was asked for, and the text has {attribution.size}")
    smallest = np.partition(attribution, attribution.size - size)[attribution.size - size]
    mask: KeepMask = np.greater_equal(attribution, smallest)
    if np.count_nonzero(mask) > size:
        rng = rng if isinstance(rng, np.random.Generator) else rng()
        drawn = rng.random(attribution.size)
        keys = (drawn,) if parts is None else (rng.random(attribution.size), drawn[parts()])
        mask = np.zeros(attribution.size, dtype=bool)
        mask[np.lexsort((*keys, -attribution))[:size]] = True
    return mask


def random_sets(n_units: int, size: int, count: int, *, seed: int, example_id: str) -> KeepMasks:
    """Return the first `count` sets of the random order of (example, size), or all if there are fewer.

    The order does not depend on any rationale: a larger `count` only extends it.
    """
    rng, every = rng_for(seed, example_id, "random-sets", size), n_sets(n_units, size)
    if every <= _ENUMERATE:
        return _all_sets(n_units, size)[rng.permutation(every)[:count]]
    found = np.zeros((0, n_units), dtype=bool)
    while len(found) < min(count, every):
        drawn = np.concatenate([found, _drawn(n_units, size, count + _SPARE, rng)])
        packed = np.packbits(drawn, axis=1)
        content, width = packed.tobytes(), packed.shape[1]
        first: dict[bytes, int] = {}
        for place in range(len(packed)):  # for some dozens of sets faster than a sort of rows
            first.setdefault(content[place * width : (place + 1) * width], place)
        found = drawn[list(first.values())]
    return found[:count]


def independent_sets(n_units: int, size: int, count: int, *, seed: int, example_id: str, attribution: str) -> KeepMasks:
    """Return sets drawn independently for one attribution: they may repeat and may equal its rationale."""
    rng = rng_for(seed, example_id, "independent-sets", f"random:{attribution}", size)
    return _drawn(n_units, size, count, rng)


def in_random_order(
    count: int,
    every: Callable[[], Iterable[Units]],
    draw: Callable[[np.random.Generator], Units],
    *,
    rng: np.random.Generator,
) -> Iterator[Units]:
    """Yield each of `count` distinct sets once, in a random order.

    `every` lists them and is called only if they are few; `draw` returns one of them, all equally likely.
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


@functools.lru_cache(maxsize=64)
def _all_sets(n_units: int, size: int) -> KeepMasks:
    """Return all sets of a size in lexicographic order."""
    chosen = np.array(list(itertools.combinations(range(n_units), size)), dtype=np.int64).reshape(-1, size)
    masks = np.zeros((len(chosen), n_units), dtype=bool)
    masks[np.arange(len(chosen))[:, None], chosen] = True
    masks.flags.writeable = False  # it is shared by all callers
    return masks


def _drawn(n_units: int, size: int, count: int, rng: np.random.Generator) -> KeepMasks:
    """Return the sets of `count` calls of `rng.choice(n_units, size, replace=False)`, computed at once.

    The random words are the same (Floyd's algorithm; Lemire's bounded numbers):

    ```text
    words of one set    u_1 … u_size           u_size+1 … u_2·size-1
    bound               n - size + 1 … n       size … 2
    what it picks       a unit                 the order of the units, which a set does not have
    ```
    """
    state = rng.bit_generator.state
    bounds = np.append(np.arange(n_units - size, n_units), np.arange(size - 1, 0, -1)).astype(np.uint64) + np.uint64(1)
    words = rng.integers(0, 2**32, size=(count, bounds.size), dtype=np.uint32)
    products = words * bounds
    masks = np.zeros((count, n_units), dtype=bool)
    # One word in 2**32 / bound is refused and drawn again: then the words do not line up with the sets any more.
    refused = (products & _LOW) < (np.uint64(2**32) - bounds) % bounds
    if n_units > _FLOYD or refused.any():
        rng.bit_generator.state = state
        for row in masks:
            row[rng.choice(n_units, size, replace=False)] = True
        return masks
    rows, picks = np.arange(count), (products[:, :size] >> np.uint64(32)).astype(np.int64)
    for place in range(size):
        taken = masks[rows, picks[:, place]]
        masks[rows, np.where(taken, n_units - size + place, picks[:, place])] = True
    return masks


def place_of(rationale: KeepMask, sets: KeepMasks) -> int | None:
    """Return the index of a rationale among sets; None if it is not one of them."""
    same = np.flatnonzero((sets == rationale).all(axis=1))
    return int(same[0]) if same.size else None


def null_of(rationale: KeepMask, sets: KeepMasks, m: int) -> NDArray[np.int64]:
    """Return the indices of the first `m` sets that differ from the rationale: its null.

    `sets` are the first m + 1 of the order, or all sets; then the null is every other set and the test is exact.
    """
    return np.flatnonzero((sets != rationale).any(axis=1))[:m]


def units_of(mask: KeepMask) -> Units:
    """Return the units of a set, ascending."""
    return tuple(np.flatnonzero(mask).tolist())


def keep_mask(units: Iterable[int], n_units: int) -> KeepMask:
    mask = np.zeros(n_units, dtype=bool)
    mask[list(units)] = True
    return mask
