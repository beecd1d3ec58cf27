"""Log-odds, probability and normalised score of a label, from log-scores of all labels."""

import numpy as np
from numpy.typing import NDArray

from ice_eval.records import Ids, LogScores

WEAK_SIGNAL = 0.05
"""Signals `s(x) - s(∅)` below this size are too small to divide by."""

Values = NDArray[np.float64]


def log_odds(scores: LogScores, target: Ids | int) -> Values:
    """Return `z_y - logsumexp(z_others)` of every row: ordered as the probability, without its saturation.

    `scores` is (rows, labels); a negative target gives NaN.
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
    """Return the probability for log-odds, without overflow."""
    with np.errstate(invalid="ignore"):
        result: Values = np.exp(-np.logaddexp(0.0, -log_odds))
    return result


def logit(probability: Values) -> Values:
    """Return the log-odds of a probability; infinite at 0 and 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Values = np.log(probability) - np.log1p(-probability)
    return result


def clipped_nsr(probability: Values, full: Values, empty: Values) -> Values:
    """Return `(s - s(∅)) / (s(x) - s(∅))` as in the released package: clipped to [-2, 2], and 0 for a weak signal.

    `probability` is (examples, rows); `full` and `empty` are (examples,).
    """
    signal = (full - empty)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip((probability - empty[:, None]) / signal, -2.0, 2.0)
    return np.where(np.abs(signal) < WEAK_SIGNAL, np.where(np.isnan(probability), np.nan, 0.0), ratio)
