"""How far a score moves when its row is scored alone: the effect of rounding in a batch."""

from typing import Any

import numpy as np

from ice_eval.models import Labels, Model
from ice_eval.records import Inputs, Kind
from ice_eval.results.ledger import Ledger
from ice_eval.seeding import rng_for

_ROWS = 8


def noise_guard(model: Model, labels: Labels, ledger: Ledger, *, seed: int) -> dict[str, Any] | None:
    """Score a sample of rows again, each alone, and compare.

    Returns:
        The number of rows, and the largest difference of a log-score and of a probability; None without a finite row.
    """
    compared = ~np.isin(ledger.head["kind"], (Kind.PROBE, Kind.ERASER, Kind.LEAVE_ONE_OUT))
    finite = np.flatnonzero(np.isfinite(ledger.scores).all(axis=1) & compared)
    if not finite.size:
        return None
    chosen = finite[rng_for(seed, "noise-guard").permutation(len(finite))[:_ROWS]]
    batched, inputs = ledger.scores[chosen], ledger.inputs.take(chosen)
    alone = model.again(inputs, labels, prefix=_common(inputs))
    return {
        "rows": len(chosen),
        "log_score": float(np.abs(alone - batched).max()),
        "probability": float(np.abs(np.exp(alone) - np.exp(batched)).max()),
    }


def _common(inputs: Inputs) -> int:
    """Return how many ids all rows begin with."""
    shortest = int(inputs.lengths.min())
    heads = np.stack([inputs.row(row)[:shortest] for row in range(len(inputs))])
    differ = np.flatnonzero((heads != heads[:1]).any(axis=0))
    return int(differ[0]) if differ.size else shortest
