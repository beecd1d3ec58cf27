"""How far a score moves when its row is scored alone: what rounding does in a batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ice_eval._seeding import rng_for
from ice_eval.models import Labels, Model
from ice_eval.results.schema import LedgerRow

_ROWS = 16


def noise_guard(model: Model, labels: Labels, rows: Sequence[LedgerRow], *, seed: int) -> dict[str, Any] | None:
    """Score a sample of rows again, each alone and without a shared prefix, and compare.

    Returns:
        The number of rows, and the largest difference of a log-score and of a probability; None without a finite row.
    """
    finite = [row for row in rows if np.isfinite(row.scores).all()]
    if not finite:
        return None
    chosen = rng_for(seed, "noise-guard").permutation(len(finite))[:_ROWS]
    batched = np.array([finite[index].scores for index in chosen])
    alone = np.concatenate([model.log_scores([finite[index].input], labels) for index in chosen])
    return {
        "rows": len(chosen),
        "log_score": float(np.abs(alone - batched).max()),
        "probability": float(np.abs(np.exp(alone) - np.exp(batched)).max()),
    }
