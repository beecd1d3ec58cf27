"""What log-scores of labels say of one of them: its log-odds, its probability, its place between empty and full."""

import numpy as np
from numpy.typing import NDArray

from ice_eval.records import Ids, LogScores

WEAK_SIGNAL = 0.05
"""Below this size of `s(x) - s(∅)` a ratio to it says nothing."""

Values = NDArray[np.float64]


def log_odds(scores: LogScores, target: Ids | int) -> Values:
    """Return `z_y - logsumexp(z_others)` of every row: the order of the probability, without its saturation.

    Args:
        scores: (rows, labels).
        target: The label of every row, or one for all; rows of a negative one have none, and are NaN.
    """
    labels = np.broadcast_to(np.asarray(target, dtype=np.int64), len(scores))
    rows, chosen = np.arange(len(scores)), np.maximum(labels, 0)
    others = scores.copy()
    others[rows, chosen] = -np.inf
    top = others.max(axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):  # scores that are not finite give NaN, the caller reports them
        rest = top + np.log(np.exp(others - top[:, None]).sum(axis=1))
        result: Values = np.where(labels >= 0, scores[rows, chosen] - rest, np.nan)
    return result


def sigmoid(log_odds: Values) -> Values:
    """Return the probability of the target from its log-odds, without overflow."""
    with np.errstate(invalid="ignore"):
        result: Values = np.exp(-np.logaddexp(0.0, -log_odds))
    return result


def logit(probability: Values) -> Values:
    """Return the log-odds of a probability; infinite for one that is 0 or 1 to the last bit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Values = np.log(probability) - np.log1p(-probability)
    return result


def clipped_nsr(probability: Values, full: Values, empty: Values) -> Values:
    """Return `(s - s(∅)) / (s(x) - s(∅))` as the released package has it: within [-2, 2], and 0 for a weak signal.

    Args:
        probability: (examples, rows).
        full: (examples,): that of the full input.
        empty: (examples,): that of the empty one.
    """
    signal = (full - empty)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip((probability - empty[:, None]) / signal, -2.0, 2.0)
    return np.where(np.abs(signal) < WEAK_SIGNAL, np.where(np.isnan(probability), np.nan, 0.0), ratio)
