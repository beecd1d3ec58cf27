"""How far a score moves when its row is scored alone: what rounding does in a batch."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ice_eval._seeding import rng_for
from ice_eval.models import Labels, Model
from ice_eval.results.schema import LedgerRow

_ROWS = 8


def noise_guard(model: Model, labels: Labels, rows: Sequence[LedgerRow], *, seed: int) -> dict[str, Any] | None:
    """Score a sample of rows again, each alone, and compare.

    Returns:
        The number of rows, and the largest difference of a log-score and of a probability; None without a finite row.
    """
    finite = [row for row in rows if np.isfinite(row.scores).all()]
    if not finite:
        return None
    chosen = rng_for(seed, "noise-guard").permutation(len(finite))[:_ROWS]
    batched = np.array([finite[index].scores for index in chosen])
    shared = _common([finite[index].input_ids for index in chosen])
    alone = model.again([finite[index].input for index in chosen], labels, prefix=shared)
    return {
        "rows": len(chosen),
        "log_score": float(np.abs(alone - batched).max()),
        "probability": float(np.abs(np.exp(alone) - np.exp(batched)).max()),
    }


def _common(rows: Sequence[Sequence[int]]) -> int:
    """How many ids all rows begin with."""
    columns = zip(*rows, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))
