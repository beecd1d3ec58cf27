"""Besag and Clifford's sequential comparison: random sets are scored only until both tails are decided."""

from dataclasses import dataclass

import numpy as np

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Mask, finite_vector
from ice_eval.stats.randomization import Comparison, Comparisons, Counts, Draws, Matrix, comparisons_of, per_set

STOP_AFTER = 10
"""Number h of random sets at least as good (or as bad) that stops a tail."""


@dataclass(frozen=True)
class SequentialComparison(Comparison):
    """Comparison with as much of the null as was needed; `null` holds the draws behind the rates."""

    n_upper: int
    """Number of draws that the upper tail used, its stopping draw included."""
    n_lower: int
    """Number of draws that the lower tail used."""
    n_used: int
    """The larger of the two."""


def compare_sequentially(
    observed: float, stream: Draws, *, whole: bool, h: int = STOP_AFTER
) -> SequentialComparison | None:
    """Compare `observed` with random sets that are scored one after the other; None until both tails have stopped.

    Each tail stops at the draw that is the h-th (h >= 2) to do at least (at most) as well. Stopped at draw l, its
    p-value is `h / l`; at the end of the stream with g < h such draws it is `(g + 1) / (M + 1)`, as in `compare`. Both
    tails are valid at every h and M, with ties and with sets drawn without replacement too: `p <= h / l` means that
    `observed` is among the h best of itself and the first l - 1 draws (Besag & Clifford, 1991, "Sequential Monte Carlo
    p-values"). `whole` means that the stream has reached its end: M sets, or all other sets.

    The win rate is over the draws before the later of the two stops, *without* the stopping draw; over all draws if a
    tail ran to the end. The rule determines the last draw, so counting it would bias the win rate towards one half.
    Given the stop and the last draw, every order of the draws before it is equally likely, so their mean has the
    expectation of the first draw: it is unbiased (Girshick, Mosteller & Savage, 1946; Besag & Clifford, 1991). The null
    of `effect_size` is the same draws. Draws after the stop never change a number.
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
    found = compare_all_sequentially(np.array([observed]), draws[None], np.array([draws.size]), h=h)
    n_used, n_rated = int(found.n_used[0]), int(found.n_rated[0])
    # Draws after the stop are ignored: requests of other tests must not matter.
    null = finite_vector(draws[:n_used], what="null score")
    if not (found.stopped[0] or whole):
        return None
    return SequentialComparison(
        observed=float(observed),
        null=null[:n_rated],
        **{name: float(value[0]) for name, value in vars(found.rates).items()},
        n_upper=int(found.n_upper[0]),
        n_lower=int(found.n_lower[0]),
        n_used=n_used,
    )


@dataclass(frozen=True, eq=False)
class SequentialComparisons:
    """`SequentialComparison`s of many examples, as arrays of shape (examples,)."""

    rates: Comparisons
    stopped: Mask
    """True if both tails have stopped; otherwise the numbers are right only for a stream that has ended."""
    n_upper: Counts
    n_lower: Counts
    n_used: Counts
    n_rated: Counts
    """Number of draws behind the rates."""


def compare_all_sequentially(
    observed: Draws | Matrix, stream: Matrix, n: Counts, *, h: int = STOP_AFTER
) -> SequentialComparisons:
    """Compare many rationales with their streams of random sets; see `compare_sequentially` and `compare_all`."""
    # Pair by pair: a slack that grew with the largest draw so far could undo a tie, or a stop, that is already settled.
    scores = per_set(observed, stream)
    slack = ROUND_OFF * np.maximum(np.abs(stream), np.maximum(1.0, np.abs(scores)))
    at_least, at_most = stream >= scores - slack, stream <= scores + slack
    n_upper, upper_stopped, p_value = _tails(at_least, n, h=h)
    n_lower, lower_stopped, p_lower = _tails(at_most, n, h=h)
    n_used, stopped = np.maximum(n_upper, n_lower), upper_stopped & lower_stopped
    n_rated = np.where(stopped, n_used - 1, n_used)
    rated = np.arange(stream.shape[1]) < n_rated[:, None]
    below = np.count_nonzero(rated & ~at_least, axis=1)
    above = np.count_nonzero(rated & ~at_most, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # an empty stream has no rates
        rates = comparisons_of(below, above, n_rated, p_value=p_value, p_lower=p_lower)
    return SequentialComparisons(rates, stopped, n_upper, n_lower, n_used, n_rated)


def _tails(hits: Mask, n: Counts, *, h: int) -> tuple[Counts, Mask, Draws]:
    """Return the number of draws up to the h-th hit of each row, if there is one, and the p-value."""
    reached = np.cumsum(hits, axis=1) >= h
    stopped: Mask = np.any(reached, axis=1)
    stop = reached.argmax(axis=1) + 1 if hits.shape[1] else n
    p_value = np.where(stopped, h / np.maximum(stop, 1), (np.count_nonzero(hits, axis=1) + 1) / (n + 1))
    return np.where(stopped, stop, n), stopped, p_value
