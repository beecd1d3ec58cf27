"""The test of one rationale, for any model and any modality."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ice_eval import stats
from ice_eval.errors import ConfigError, DataError
from ice_eval.rationales import keep_mask, null_of, random_sets


def randomization_test(
    score_masks: Callable[[NDArray[np.bool_]], ArrayLike],
    *,
    n_units: int,
    rationale: Sequence[int],
    m: int = 50,
    seed: int = 0,
) -> stats.Comparison:
    """Test one rationale of any model, in any modality.

    Args:
        score_masks: Takes a bool matrix of keep-masks (rows, units) and returns a score per row, larger for a better
            kept input.
        n_units: How many units (words, patches, frames, …) the input has.
        rationale: The units that the explanation names.
        m: Random sets to compare with; all sets, and an exact test, where there are no more than m + 1.
        seed: Defines the random sets.

    Returns:
        Win rate, p-values and the null they were computed from.

    Raises:
        DataError: The rationale is not a set of units, leaves no other set, or a score is not finite.
    """
    units = tuple(sorted(set(int(unit) for unit in rationale)))
    if len(units) != len(list(rationale)) or not units or units[0] < 0 or units[-1] >= n_units:
        raise DataError(f"the rationale {list(rationale)} is not a set of units 0 … {n_units - 1}.")
    if m < 1:
        raise ConfigError(f"m = {m}: at least 1 is needed.")
    sets = random_sets(n_units, len(units), m + 1, seed=seed, example_id="")
    chosen = keep_mask(units, n_units)
    null = sets[null_of(chosen, sets, m)]
    if not len(null):
        raise DataError(
            f"the rationale holds all {n_units} units, so there is no other set of its size to compare with."
        )
    masks = np.concatenate([chosen[None], null])
    scores = np.asarray(score_masks(masks), dtype=np.float64)
    if scores.shape != (len(masks),):
        raise DataError(
            f"score_masks returned shape {scores.shape} for {len(masks)} rows; one score per row is expected."
        )
    return stats.compare(float(scores[0]), scores[1:])
