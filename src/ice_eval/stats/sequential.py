"""Besag and Clifford's sequential comparison: random sets are scored only until the answer is clear."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Counts, finite_vector, mid_rank
from ice_eval.stats.randomization import Comparison, Draws

STOP_AFTER = 10
"""Random sets at least as good (or as bad) that settle a tail, h."""


@dataclass(frozen=True)
class SequentialComparison(Comparison):
    """A rationale's score against as much of its null as it needed; `null` holds the draws that the rates are over."""

    n_upper: int
    """Draws that the upper tail looked at: its stopping draw, or all."""
    n_lower: int
    """Draws that the lower tail looked at."""
    n_used: int
    """Draws that were asked for: the larger of the two."""


class _Tail(NamedTuple):
    n: int  # draws looked at
    stopped: bool
    p_value: float


def compare_sequentially(
    observed: float, stream: Draws, *, whole: bool, h: int = STOP_AFTER
) -> SequentialComparison | None:
    """Place of `observed` among random sets that are scored one after the other, once that is settled.

    Each tail stops at the draw that is the h-th to do at least (at most) as well. Stopped at draw l, its p-value is
    `h / l`; at the end of the stream with g < h such draws it is `(g + 1) / (M + 1)`, as in `compare`. Both tails are
    valid at every h and M, with ties and with sets drawn without replacement too: `p <= h / l` says that `observed` is
    among the h best of itself and the first l - 1 draws (Besag & Clifford, 1991, "Sequential Monte Carlo p-values").

    The win rate is over the draws before the later of the two stops, *without* the stopping draw; over all draws where
    a tail ran to the end. Which draw is last is the choice of the rule: counted in, it pulls the win rate towards one
    half. Given the stop and what the last draw was, every order of the draws before it is equally likely, so their
    mean has the expectation of the first draw: it is unbiased (Girshick, Mosteller & Savage, 1946; Besag & Clifford,
    1991). The null of `effect_size` is the same draws. Draws after the stop never change a number.

    Args:
        observed: Score of the rationale.
        stream: Scores of the random sets so far, in their fixed order, the rationale's own left out.
        whole: Whether the stream has reached its end: M sets, or every other set there is.
        h: Draws at least as good (as bad) that stop a tail.

    Returns:
        The comparison, or None while a tail is undecided and more draws are needed.

    Raises:
        DataError: If `h` is below 2, the whole stream is empty, or a score that is looked at is NaN or infinite.
    """
    if h < 2:
        raise DataError(
            f"need at least 2 draws before a tail stops, got h={h}: the stopping draw itself is not counted"
        )
    if not np.isfinite(observed):
        raise DataError(f"need a finite observed score, got {observed}")
    draws = np.asarray(stream, dtype=np.float64)
    if draws.size == 0 and not whole:
        return None
    # Pair by pair: a slack that grew with the largest draw so far could undo a tie, or a stop, that is already settled.
    slack = ROUND_OFF * np.maximum(np.abs(draws), max(1.0, abs(observed)))
    at_least, at_most = draws >= observed - slack, draws <= observed + slack
    upper, lower = _tail(at_least, h=h), _tail(at_most, h=h)
    n_used = max(upper.n, lower.n)
    # What lies after the stop is not looked at: whether others asked for more must not matter.
    null = finite_vector(draws[:n_used], what="null score")
    both_stopped = upper.stopped and lower.stopped
    if not (both_stopped or whole):
        return None
    n_rated = n_used - 1 if both_stopped else n_used
    counts = _counts(at_least[:n_rated], at_most[:n_rated])
    return SequentialComparison(
        observed=float(observed),
        null=null[:n_rated],
        win_rate=mid_rank(counts),
        win_rate_strict=counts.below / n_rated,
        tie_rate=counts.tied / n_rated,
        p_value=upper.p_value,
        p_lower=lower.p_value,
        n_upper=upper.n,
        n_lower=lower.n,
        n_used=n_used,
    )


def _tail(hits: NDArray[np.bool_], *, h: int) -> _Tail:
    """Where the h-th hit is, or, if the draws are all there are, what all of them say."""
    n_hits = np.cumsum(hits)
    stop = int(np.searchsorted(n_hits, h)) + 1
    if stop <= hits.size:
        return _Tail(stop, True, h / stop)
    return _Tail(hits.size, False, (int(np.count_nonzero(hits)) + 1) / (hits.size + 1))


def _counts(at_least: NDArray[np.bool_], at_most: NDArray[np.bool_]) -> Counts:
    below, above = int(np.count_nonzero(~at_least)), int(np.count_nonzero(~at_most))
    return Counts(below, at_least.size - below - above, above)
