"""Methods that `ice_eval.stats` used before, for many data sets at once; `calibration.py` compares with them."""

import math
import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Values = NDArray[np.float64]  # (data sets, examples) unless stated otherwise
Ranks = NDArray[np.int64]  # (data sets,)
Rng = np.random.Generator

LEVEL, TAIL = 0.05, 0.025
M = 50
"""Random sets per example."""
UNIFORM = np.arange(M + 1) / M
"""Win rates of all sets of an example without ties."""
_SLACK = 1e-12
_SHARED = 200  # data sets that share their resamples, which leaves each of them a valid bootstrap

ANTI, NONE, BETTER, WEAK, FAITHFUL = range(5)
"""Ranks of verdicts. The old range "near-random to ..." counts as better than random."""


def rng_of(*key: object) -> Rng:
    """Return the generator of a simulation."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


@dataclass(frozen=True)
class Before:
    """BCa intervals of many data sets; NaN where there was none: equal values but 0 and 1."""

    low: Values
    high: Values

    def sides(self, truth: float) -> Ranks:
        """Return 1 where the interval is above the truth, -1 where below, else 0."""
        return (self.low > truth + _SLACK).astype(np.int64) - (self.high < truth - _SLACK)


def bca(samples: Values, rng: Rng, *, counts: NDArray[np.int64] | None = None, n_resamples: int = 499) -> Before:
    """Return the old intervals of (data sets, examples); with `counts`, of sums of groups of these sizes."""
    size, n = samples.shape[1], np.ones(samples.shape[1]) if counts is None else counts
    limits = []
    for start in range(0, len(samples), _SHARED):
        rows = samples[start : start + _SHARED]
        drawn = rng.multinomial(size, np.full(size, 1 / size), size=n_resamples).astype(np.float64)
        limits.append(_bca_limits(rows, np.sort(rows @ drawn.T / (drawn @ n), axis=1), n))
    low, high = np.concatenate(limits, axis=1)
    return Before(low, high)


def _bca_limits(rows: Values, means: Values, counts: Values) -> Values:
    """Return (2, data sets) limits from sorted resampled means; see Efron & Tibshirani (1993), eq. 14.9 to 14.15."""
    estimate, total = rows.sum(axis=1, keepdims=True) / counts.sum(), rows.sum(axis=1, keepdims=True)
    left_out = (total - rows) / (counts.sum() - counts)
    deviations = left_out.mean(axis=1, keepdims=True) - left_out
    below, above = means < estimate - _SLACK, means > estimate + _SLACK
    share = 0.5 + (below.sum(axis=1) - above.sum(axis=1)) / (2 * means.shape[1])
    margin = 0.5 / means.shape[1]
    bias = ndtri(np.clip(share, margin, 1 - margin))
    squares = (deviations**2).sum(axis=1)
    acceleration = (deviations**3).sum(axis=1) / np.where(squares > 0, 6 * squares**1.5, 1.0)
    limits = []
    for tail in (TAIL, 1 - TAIL):
        shifted = bias + ndtri(tail)
        places = ndtr(bias + shifted / (1 - acceleration * shifted)) * (means.shape[1] - 1)
        lower = np.floor(places).astype(np.int64)
        upper, each = np.minimum(lower + 1, means.shape[1] - 1), np.arange(len(rows))
        limits.append(means[each, lower] + (places - lower) * (means[each, upper] - means[each, lower]))
    rates, exact = rows / counts, TAIL ** (1 / rows.shape[1])
    equal = np.ptp(rates, axis=1) <= _SLACK
    limits[0][equal] = np.where(rates[equal, 0] >= 1, exact, np.where(rates[equal, 0] <= 0, 0.0, np.nan))
    limits[1][equal] = np.where(rates[equal, 0] >= 1, 1.0, np.where(rates[equal, 0] <= 0, 1 - exact, np.nan))
    return np.stack(limits)


@cache
def _null_sizes(family: bytes, n: int) -> Values:
    """Return sorted sizes of the randomization statistic of n examples whose sets have these win rates."""
    rates = np.frombuffer(family)
    rng = rng_of("null", n, family)
    return np.sort(np.concatenate([studentized(rng.choice(rates, (1000, n))) for _ in range(10)]))


def studentized(samples: Values) -> Values:
    mean, error = samples.mean(axis=1) - 0.5, samples.std(axis=1, ddof=1) / math.sqrt(samples.shape[1])
    return np.abs(np.divide(mean, error, out=np.where(np.abs(mean) > _SLACK, np.inf, 0.0), where=error > _SLACK))


def randomization_pvalues(samples: Values, family: Values = UNIFORM) -> Values:
    """Return p-values of `stats.mean_test` with 10,000 draws, which all data sets share."""
    null = _null_sizes(family.tobytes(), samples.shape[1])
    n_extreme = len(null) - np.searchsorted(null, studentized(samples) * (1 - _SLACK), side="left")
    p_values: Values = (1 + n_extreme) / (len(null) + 1)
    return p_values


def old_ranks(intervals: Before, p_values: Values) -> Ranks:
    """Return the ranks of the old verdicts: a word only if the interval excludes one half and the test rejects it."""
    low = intervals.low + _SLACK
    upward = np.select([low > 0.6 + 2 * _SLACK, low >= 0.55, low > 0.5 + 2 * _SLACK], [FAITHFUL, WEAK, BETTER], NONE)
    words = np.where(intervals.high < 0.5 - _SLACK, ANTI, upward)
    return np.where(p_values <= LEVEL + _SLACK, words, NONE)


def signflip_pvalues(samples: Values, rng: Rng) -> Values:
    """Return p-values of the old test of a mean difference."""
    found = []
    # Few examples have few possible p-values: 1/16 is the smallest of five, and must not be read as 1/20.
    n_draws = 9999 if samples.shape[1] <= 20 else 499
    for start in range(0, len(samples), _SHARED):
        rows = samples[start : start + _SHARED]
        signs = 2.0 * rng.integers(0, 2, size=(n_draws, samples.shape[1])) - 1.0
        extreme = np.abs(rows @ signs.T) >= np.abs(rows.sum(axis=1, keepdims=True)) - _SLACK
        found.append((1 + extreme.sum(axis=1)) / (n_draws + 1))
    return np.concatenate(found)
