"""Step-level reasoning capacity: dependence of an answer on the steps of its chain of thought."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Rng, Values, is_constant, rates_vector
from ice_eval.stats.bootstrap import bca_shares, resampled_means
from ice_eval.stats.intervals import Interval, mean_interval
from ice_eval.stats.verdict import reaches

Reasoning = Literal["decorative", "scaffolding", "genuine"]
REASONING: tuple[Reasoning, ...] = get_args(Reasoning)
"""From lowest to highest capacity."""

REFERENCE_SHARE = 0.2
"""Share of steps at which the capacity is defined and classified."""
ReasoningReason = Literal["too few examples", "the whole chain gives another answer, too", "the replies reasoned anew"]
NOISE_ONLY: ReasoningReason = "the whole chain gives another answer, too"
"""Reason for no words if the noise floor is 1: no removal can change more."""
REASONED_ANEW: ReasoningReason = "the replies reasoned anew"
"""Reason for no words if replies were thought about anew: they need not rest on the steps that they were given."""
SCAFFOLDING = 0.15
"""Capacities from here on are at least scaffolding."""
GENUINE = 0.4
"""Capacities above this are genuine."""
_TAILS = np.array([0.025, 0.975])


def step_reasoning_capacity(necessity: float, sufficiency: float) -> float:
    """Return `Nec * (1 - Suf)`: high where removing steps changes the answer and a few steps alone do not give it.

    Necessity is the share of random removals of steps that change the answer, sufficiency the share of random retained
    subsets of the same size that keep it.
    """
    if not (0 <= necessity <= 1 and 0 <= sufficiency <= 1):  # NaN fails this too
        raise DataError(f"necessity and sufficiency lie in [0, 1], got {necessity} and {sufficiency}")
    return necessity * (1 - sufficiency)


def adjusted_capacity(necessity: float, sufficiency: float, floor: float) -> float | None:
    """Return the capacity beyond the noise floor F, at which the answer changes although nothing was removed.

    `max(0, (Nec - F) / (1 - F)) * max(0, 1 - Suf / (1 - F))`; None at F = 1, where nothing differs from noise.
    """
    step_reasoning_capacity(necessity, sufficiency)
    if not 0 <= floor <= 1:
        raise DataError(f"a noise floor lies in [0, 1], got {floor}")
    return None if reaches(floor, 1) else float(_adjusted(np.array([[necessity, sufficiency, floor]]))[0])


@dataclass(frozen=True)
class Capacity:
    """Capacity of a set of problems; intervals are None if undefined, as for a single problem."""

    src: float
    """`mean(Nec) * (1 - mean(Suf))`."""
    src_ci: Interval | None
    product: float
    """Mean of the products of single problems."""
    adjusted: float | None
    """Capacity beyond the noise floor; None if answers always change."""
    adjusted_ci: Interval | None


def capacity(necessity: Values, sufficiency: Values, floor: Values, *, rng: Rng, n_resamples: int = 9999) -> Capacity:
    """Return the capacity of a set of problems, with 95 % BCa intervals over problems.

    A column that is the same for every problem has no spread to resample. It enters each end of the intervals at its
    own limit (`mean_interval`) that widens them, so twenty problems without a change do not prove a capacity of
    0. `floor` is the rate at which the repeated full chain gives another answer, one per problem.
    """
    columns = [rates_vector(values, what="rate") for values in (necessity, sufficiency, floor)]
    if len({values.size for values in columns}) > 1:
        raise DataError(f"need one rate of each kind per problem, got {[values.size for values in columns]}")
    sample = np.stack(columns, axis=1)
    means = resampled_means(sample, rng=rng, n_resamples=n_resamples)
    estimate = sample.mean(axis=0)
    noise_only = reaches(float(estimate[2]), 1)
    return Capacity(
        src=float(_plain(estimate[None])[0]),
        src_ci=_interval(sample, means, _plain),
        product=float(_plain(sample).mean()),
        adjusted=None if noise_only else float(_adjusted(estimate[None])[0]),
        adjusted_ci=None if noise_only else _interval(sample, means, _adjusted),
    )


def reasoning_word(capacity: float) -> Reasoning:
    """Return the paper's word for a capacity: decorative [0, .15), scaffolding [.15, .4], genuine (.4, 1].

    Raises:
        DataError: If `capacity` is not in [0, 1].
    """
    if not 0 <= capacity <= 1:
        raise DataError(f"a step-level reasoning capacity lies in [0, 1], got {capacity}")
    if not reaches(capacity, SCAFFOLDING):
        return "decorative"
    return "scaffolding" if reaches(GENUINE, capacity) else "genuine"


@dataclass(frozen=True, kw_only=True)
class ReasoningVerdict:
    """The words that the interval of a capacity covers, or the reason why there are none."""

    lowest: Reasoning | None = None
    highest: Reasoning | None = None
    reason: ReasoningReason | None = None
    """Reason why there are no words."""

    @property
    def words(self) -> tuple[Reasoning, ...]:
        """All words that the interval covers, from lowest to highest capacity."""
        if self.lowest is None or self.highest is None:
            return ()
        return REASONING[REASONING.index(self.lowest) : REASONING.index(self.highest) + 1]

    def __str__(self) -> str:
        if self.lowest is None or self.highest is None:
            return f"undetermined ({self.reason})"
        return self.lowest if self.lowest == self.highest else f"{self.lowest} to {self.highest}"


def reasoning_verdict(interval: Interval | None) -> ReasoningVerdict:
    """Return one word if the whole interval is in its band, else the range of words that it covers."""
    if interval is None:
        return ReasoningVerdict(reason="too few examples")
    return ReasoningVerdict(lowest=reasoning_word(interval.low), highest=reasoning_word(interval.high))


def _plain(means: Values) -> Values:
    """Return the capacities of (rows, 3) means of necessity, sufficiency and noise floor."""
    result: Values = means[:, 0] * (1 - means[:, 1])
    return result


def _adjusted(means: Values) -> Values:
    """Return the same beyond the noise floor; 0 where that is 1."""
    necessity, sufficiency, floor = means.T
    steady = np.maximum(1 - floor, ROUND_OFF)
    result: Values = np.clip((necessity - floor) / steady, 0, 1) * np.clip(1 - sufficiency / steady, 0, 1)
    return result


def _interval(sample: Values, means: Values, statistic: Callable[[Values], Values]) -> Interval | None:
    """Return BCa limits, with columns without spread at those of their own limits that move an end outwards.

    Both statistics rise with necessity alone. If no resample differs (few problems, each clipped at 0), the data do not
    show the error of the statistic, and all columns are put at their limits.
    """
    if len(sample) < 2:
        return None
    limits = [mean_interval(column) for column in sample.T]
    ends = []
    for end in (0, 1):
        for fixed in ([is_constant(column) for column in sample.T], [True] * len(limits)):
            own_sample, own_means = sample.copy(), means.copy()
            for column, limit in enumerate(limits):
                if fixed[column]:
                    own_sample[:, column] = own_means[:, column] = limit[end if column == 0 else 1 - end]
            if not is_constant(statistic(own_means)):
                break
        ends.append(float(_limits(own_sample, own_means, statistic)[end]))
    return Interval(*ends)


def _limits(sample: Values, means: Values, statistic: Callable[[Values], Values]) -> Values:
    """Return BCa limits of a function of means; plain percentiles where it is flat, as where it is cut off at 0."""
    resampled, estimate = statistic(means), float(statistic(sample.mean(axis=0)[None])[0])
    jackknife = statistic((sample.sum(axis=0) - sample) / (len(sample) - 1))
    deviations = jackknife.mean() - jackknife
    is_flat = float((deviations**2).sum()) <= ROUND_OFF
    shares = _TAILS if is_flat else bca_shares(estimate, resampled, deviations, tails=_TAILS)
    limits: Values = np.quantile(resampled, shares)
    return limits
