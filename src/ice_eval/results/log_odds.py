"""What log-scores of labels say of one of them: its log-odds, its probability, its place between empty and full."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ice_eval.results.schema import LedgerRow

WEAK_SIGNAL = 0.05
"""Below this size of `s(x) - s(∅)` a ratio to it says nothing."""


def log_odds(scores: NDArray[np.float64], target: int | None) -> NDArray[np.float64]:
    """`z_y - logsumexp(z_others)` of every row of (rows, labels): the order of the probability, without its saturation.

    NaN where no target is explained.
    """
    if target is None:
        return np.full(len(scores), np.nan)
    others = np.delete(scores, target, axis=1)
    top = others.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # scores that are not finite give NaN, which the caller reports
        rest = top[:, 0] + np.log(np.exp(others - top).sum(axis=1))
        result: NDArray[np.float64] = scores[:, target] - rest
    return result


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the target from its log-odds, without overflow."""
    with np.errstate(invalid="ignore"):
        result: NDArray[np.float64] = np.exp(-np.logaddexp(0.0, -log_odds))
    return result


def logit(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of a probability; of one that is 0 or 1 to the last bit, infinite."""
    with np.errstate(divide="ignore"):
        result: NDArray[np.float64] = np.log(probability) - np.log1p(-probability)
    return result


def clipped_nsr(probability: NDArray[np.float64], full: float, empty: float) -> NDArray[np.float64]:
    """`(s - s(∅)) / (s(x) - s(∅))` as the released package has it: within [-2, 2], and 0 where the signal is weak."""
    if abs(full - empty) < WEAK_SIGNAL:
        return np.zeros_like(probability)
    clipped: NDArray[np.float64] = np.clip((probability - empty) / (full - empty), -2.0, 2.0)
    return clipped


def with_prior_removed(rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Log-scores less those of the empty input: contextual calibration (Zhao et al., 2021)."""
    prior = next((row.scores for row in rows if row.key.kind == "empty"), None)
    if prior is None:
        return list(rows)
    return [row._replace(scores=tuple(np.subtract(row.scores, prior).tolist())) for row in rows]
