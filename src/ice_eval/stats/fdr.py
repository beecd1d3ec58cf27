"""Multiple testing: false-discovery rates, adjusted p-values, and Storey's share of non-null examples."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, false_discovery_control

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Mask, Values, finite_vector

_LAMBDA = 0.5  # p-values above it are taken to be null ones
_CONFIDENCE = 0.95


class SignificantRate(NamedTuple):
    """Share of examples that Benjamini-Hochberg rejects."""

    rate: float | None
    """None if the number of random sets made a rejection impossible, so that 0 would mislead."""
    reason: str | None
    """Reason why `rate` is None."""
    floor_share: float
    """Share of examples that must reach the smallest possible p-value before any is rejected."""


class NonnullShare(NamedTuple):
    """Estimated share of examples whose rationale beats random sets."""

    share: float
    low: float
    """One-sided 95 % lower bound."""


def significant(p_values: Values, *, alpha: float = 0.10) -> Mask:
    """Return a mask of the p-values that Benjamini-Hochberg rejects at false-discovery rate `alpha`."""
    if not 0 < alpha < 1:
        raise DataError(f"a false-discovery rate lies between 0 and 1, got {alpha}; 0.10 is usual")
    # p-values of a permutation test are on a grid that can meet alpha exactly.
    return np.asarray(adjusted_fdr(p_values) <= alpha * (1 + ROUND_OFF))


def adjusted(p_values: Values) -> Values:
    """Return p-values of several tests, adjusted for their number by Holm (1979).

    An adjusted value of at most `alpha` is a rejection, and the probability of any false one is at most `alpha`, under
    any dependence. `step_down` is sharper where the draws of the tests are known.
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    result: Values = np.empty_like(p)
    result[order] = np.minimum(raised, 1.0)
    return result


def adjusted_fdr(p_values: Values) -> Values:
    """Return p-values of several tests, adjusted for their number by Benjamini & Hochberg (1995).

    An adjusted value of at most `alpha` is a rejection, and of all rejections a share of at most `alpha` is expected to
    be false, if the tests are independent or positively dependent.
    """
    return np.asarray(false_discovery_control(_checked(p_values)), dtype=np.float64)


def adjusted_known(p_values: Sequence[float | None], *, fdr: bool = False) -> list[float | None]:
    """Return p-values by `adjusted` or, with `fdr`, by `adjusted_fdr`; a None is not counted and remains None."""
    known, adjust = [value for value in p_values if value is not None], adjusted_fdr if fdr else adjusted
    found = iter(adjust(np.array(known)).tolist() if known else ())
    return [None if value is None else next(found) for value in p_values]


def significant_rate(p_values: Values, *, floor: float, alpha: float = 0.10) -> SignificantRate:
    """Return the share of rejected examples, or the reason why none could be rejected.

    No p-value is smaller than `floor`, 1 / (M + 1). Benjamini-Hochberg rejects j of N examples only if their p-values
    are at most `alpha * j / N`, so fewer than a share `floor / alpha` of examples is never rejected, however strong
    their signal. Examples with fewer sets have a higher floor; the share needed is then larger than the one reported.
    Test each tail as a separate family.
    """
    if not 0 < floor <= 1:
        raise DataError(f"the smallest possible p-value lies in (0, 1], got {floor}; pass 1 / (M + 1)")
    rejected = significant(p_values, alpha=alpha)
    floor_share = floor / alpha
    if rejected.any():
        return SignificantRate(float(rejected.mean()), None, floor_share)
    if floor_share * rejected.size <= 1 + ROUND_OFF:  # a single example at the floor would have been rejected
        return SignificantRate(0.0, None, floor_share)
    return SignificantRate(None, _reason(floor=floor, alpha=alpha), floor_share)


def nonnull_share(p_values: Values, n_values: NDArray[np.int64]) -> NonnullShare:
    """Return Storey's estimate of the share of non-null examples, with lambda = 1/2, for discrete p-values of one tail.

    Under the null, p-value i is uniform on `1/n_i, 2/n_i, ..., 1` (`n_values`, n_i = M_i + 1), and exceeds 1/2 with a
    known probability, which is not 1/2 if n_i is odd. The null share is the observed count above 1/2 over the count
    expected if all were null. The bound uses the Clopper-Pearson upper limit of the observed count. Ties make null
    p-values larger, and both numbers smaller.
    """
    p = _checked(p_values)
    n = np.asarray(n_values)
    if n.shape != p.shape:
        raise DataError(f"need one number of possible values per p-value, got {n.size} for {p.size} p-values")
    if n.min() < 2:
        raise DataError(f"a p-value takes at least two values, got n_values as small as {n.min()}; skip such examples")
    expected = float(((n - n // 2) / n).sum())
    n_above = int(np.count_nonzero(p > _LAMBDA))
    limit = binomtest(n_above, p.size, alternative="less").proportion_ci(_CONFIDENCE, method="exact").high
    return NonnullShare(_complement(n_above / expected), _complement(float(limit) * p.size / expected))


def _complement(null_share: float) -> float:
    return 1 - min(max(null_share, 0.0), 1.0)


def _reason(*, floor: float, alpha: float) -> str:
    share = f"{100 * floor / alpha:.1f} %"
    if floor > alpha * (1 + ROUND_OFF):
        needed = math.ceil(1 / alpha - ROUND_OFF) - 1
        return (
            f"the smallest possible p-value, {floor:.4g}, is above alpha = {alpha:g}: {share} of the examples would "
            f"have to reach it, so nothing can be rejected; at least {needed} random sets are needed"
        )
    return (
        f"the smallest possible p-value is {floor:.4g}, so at alpha = {alpha:g} nothing is rejected unless {share} of "
        "the examples reach it; more random sets lower that share"
    )


def _checked(p_values: Values) -> Values:
    p = finite_vector(p_values, what="p-value")
    if p.min() <= 0 or p.max() > 1:
        raise DataError(f"p-values lie in (0, 1], got values from {p.min()} to {p.max()}")
    return p
