"""Words: for a mean win rate, and for the pattern in which an answer depends on the steps of a chain of thought."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Rng, Values, is_constant, rates_vector, resampled_means, slack_of
from ice_eval.stats.intervals import Interval, mean_interval
from ice_eval.stats.randomization import CHANCE

Taxonomy = Literal["anti-faithful", "near-random", "weakly faithful", "faithful"]
TAXONOMY: tuple[Taxonomy, ...] = get_args(Taxonomy)
"""The paper's words for a win rate, whatever its interval; from worst to best."""

Word = Literal[
    "undecidable",
    "not distinguishable from random",
    "random within ±5 pp",
    "near-random",
    "anti-faithful",
    "better than random",
    "weakly faithful",
    "faithful",
]
WORDS: tuple[Word, ...] = get_args(Word)
UNDECIDABLE, NOT_DISTINGUISHABLE, RANDOM, NEAR_RANDOM, ANTI_FAITHFUL, BETTER = WORDS[:6]
POSITIVE: tuple[Word, ...] = WORDS[5:]
"""Words for explanations that beat random sets, from weakest to strongest."""

WEAKLY_FAITHFUL = 0.55
"""Win rates from here on are at least weakly faithful."""
FAITHFUL = 0.60
"""Win rates above this are faithful."""
MARGIN = 0.05
"""Distance from one half within which a win rate counts as random."""
UNDECIDABLE_TIES = 2 * (1 - FAITHFUL)
"""Share of ties from which on no explanation can be faithful: a tie counts one half."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The word for a mean win rate: the one that its interval supports, or, by some protocols, that of the estimate."""

    word: Word
    excludes_chance: bool = False
    """True if one half is outside the interval."""
    tie_rate: float | None = None
    """Share of sets that tie, if it makes the verdict undecidable."""

    def __str__(self) -> str:
        return self.word if self.tie_rate is None else f"{self.word}: {100 * self.tie_rate:.0f} % of sets tie"


def verdict(interval: Interval, *, tie_rate: float = 0.0) -> Verdict:
    """Return the strongest word that holds for all win rates in the interval.

    - undecidable: so many sets tie that no explanation could be faithful
    - random within ±5 pp: all lie within 45 and 55 %
    - anti-faithful: all lie below 50 %
    - faithful: all lie above 60 %; weakly faithful: all at 55 % or above; better than random: all above 50 %
    - not distinguishable from random: else, one half is among them

    If the limits rise, the verdict never gets worse.
    """
    outside = excludes_chance(interval)
    if reaches(tie_rate, UNDECIDABLE_TIES):
        return Verdict(word=UNDECIDABLE, excludes_chance=outside, tie_rate=tie_rate)
    word: Word = NOT_DISTINGUISHABLE
    if reaches(interval.low, CHANCE - MARGIN) and reaches(CHANCE + MARGIN, interval.high):
        word = RANDOM
    elif not reaches(interval.high, CHANCE):
        word = ANTI_FAITHFUL
    elif not reaches(FAITHFUL, interval.low):
        word = "faithful"
    elif reaches(interval.low, WEAKLY_FAITHFUL):
        word = "weakly faithful"
    elif outside:
        word = BETTER
    return Verdict(word=word, excludes_chance=outside)


def point_verdict(win_rate: float, interval: Interval) -> Verdict:
    """Return the paper's word for a win rate, whatever its interval and its ties."""
    return Verdict(word=taxonomy(win_rate), excludes_chance=excludes_chance(interval))


def is_settled(interval: Interval, *, tie_rate: float = 0.0) -> bool:
    """Return True if no stronger word is possible for any win rate in the interval."""
    found = verdict(interval, tie_rate=tie_rate)
    if found.word in (BETTER, "weakly faithful"):
        return reaches(FAITHFUL, interval.high)
    return found.word != NOT_DISTINGUISHABLE


def taxonomy(win_rate: float) -> Taxonomy:
    """Return the paper's word for a win rate, whatever its interval.

    Anti-faithful [0, .50), near-random [.50, .55), weakly faithful [.55, .60], faithful (.60, 1]. A mean that round-off
    has moved off a limit counts as the limit.
    """
    if not -ROUND_OFF <= win_rate <= 1 + ROUND_OFF:  # NaN fails this too
        raise DataError(f"a win rate lies in [0, 1], got {win_rate}; percentages are divided by 100 first")
    if not reaches(win_rate, CHANCE):
        return "anti-faithful"
    if not reaches(win_rate, WEAKLY_FAITHFUL):
        return "near-random"
    return "weakly faithful" if reaches(FAITHFUL, win_rate) else "faithful"


def excludes_chance(interval: Interval) -> bool:
    """Return True if one half is outside the interval."""
    return not (reaches(CHANCE, interval.low) and reaches(interval.high, CHANCE))


def reaches(rate: float, limit: float) -> bool:
    """Return True if `rate` is at least `limit`; both are fractions of 1, so round-off is measured against 1."""
    return rate >= limit - ROUND_OFF


# --- dependence on steps --------------------------------------------------------------------------------------------

Reasoning = Literal["decorative", "scaffolding", "genuine"]
REASONING: tuple[Reasoning, ...] = get_args(Reasoning)
"""Words for a capacity, from lowest to highest."""
Pattern = Literal["noisy", "parametric", "decorative", "redundant", "obedient", "scaffolding", "genuine"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
"""Ways in which answers depend on steps; `reasoning_verdict` defines them."""
ReasoningReason = Literal["too few examples", "the replies reasoned anew"]
REASONED_ANEW: ReasoningReason = "the replies reasoned anew"
"""Reason for no words if replies were thought about anew: they need not rest on the steps that they were given."""

REFERENCE_SHARE = 0.2
"""Share of steps at which the capacity is defined and classified."""
SCAFFOLDING = 0.15
"""Capacities from here on are at least scaffolding."""
GENUINE = 0.4
"""Capacities above this are genuine."""
REPRODUCES = 1 / 2
"""Share of own answers from all steps, beyond chance, below which a chain is noisy."""
NEEDED, KNOWN = 1 / 3, 2 / 3
"""Share of own answers without any step, of those from all: steps are needed below the first; not from the second."""
_CARRIED: frozenset[Pattern] = frozenset({"scaffolding", "genuine"})
_IDLE: frozenset[Pattern] = frozenset({"parametric", "decorative"})
_TAILS = np.array([0.025, 0.975])


def step_reasoning_capacity(necessity: float, sufficiency: float) -> float:
    """Return `Nec * (1 - Suf)`: high where removing steps changes the answer and a few steps alone do not give it.

    Necessity is the share of random removals of steps that change the answer, sufficiency the share of random retained
    subsets of the same size that keep it.
    """
    if not (0 <= necessity <= 1 and 0 <= sufficiency <= 1):  # NaN fails this too
        raise DataError(f"necessity and sufficiency lie in [0, 1], got {necessity} and {sufficiency}")
    return necessity * (1 - sufficiency)


@dataclass(frozen=True)
class Capacity:
    """Capacity of a set of problems; intervals are None if undefined, as for a single problem."""

    src: float
    """`mean(Nec) * (1 - mean(Suf))`."""
    src_ci: Interval | None
    product: float
    """Mean of the products of single problems."""
    adjusted: float | None
    """Capacity beyond noise floor and chance; None if the full chain gives its own answer no more often than chance."""
    adjusted_ci: Interval | None


def capacity(
    necessity: Values,
    sufficiency: Values,
    floor: Values,
    *,
    chance: float | Values = 0.0,
    rng: Rng,
    n_resamples: int = 9999,
) -> Capacity:
    """Return the capacity of a set of problems, with 95 % BCa intervals over problems.

    A column that is the same for every problem has no spread to resample. It enters each end of the intervals at its
    own limit (`mean_interval`) that widens them, so twenty problems without a change do not prove a capacity of 0.

    `floor` F is the rate at which the repeated full chain gives another answer, one per problem, and `chance` g that at
    which a guess is right, 1/c with c options, which is known. Whoever needs the steps and has to guess keeps the
    answer at the rate g, whoever does not at R = 1 - F. The adjusted capacity puts both rates on the scale from g to R:
    `clip((Nec - F) / (R - g)) * clip((R - Suf) / (R - g))`, which is 1 for the first, 0 for the second. Means are
    adjusted, not problems: the few replies to one problem would give a ratio without a mean. So problems count by
    R - g, by as much as they can show.
    """
    columns = [rates_vector(values, what="rate") for values in (necessity, sufficiency, floor)]
    if len({values.size for values in columns}) > 1:
        raise DataError(f"need one rate of each kind per problem, got {[values.size for values in columns]}")
    columns.append(rates_vector(np.broadcast_to(chance, columns[0].shape), what="rate"))
    sample = np.stack(columns, axis=1)
    means = resampled_means(sample, rng=rng, n_resamples=n_resamples)
    estimate = sample.mean(axis=0)
    noise_only = reaches(float(estimate[3]), 1 - float(estimate[2]))
    return Capacity(
        src=float(_plain(estimate[None])[0]),
        src_ci=_interval(sample, means, _plain),
        product=float(_plain(sample).mean()),
        adjusted=None if noise_only else float(_adjusted(estimate[None])[0]),
        adjusted_ci=None if noise_only else _interval(sample, means, _adjusted),
    )


def noise_beyond_repeats(n_changed: Values, n_replies: Values) -> float:
    """Return how often one more reply changes by noise, for chains whose repeats all gave their own answer.

    Chains with one changed reply stand for them, as if that reply had come last (Good & Turing): `n1 / (r n0 + n1)`,
    with n0 > 0 chains of r unchanged replies each.
    """
    once = np.count_nonzero(n_changed == 1)
    return once / (once + float(n_replies[n_changed == 0].sum()))


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
    """The pattern in which answers depend on steps, or those that intervals leave open, or the reason for none."""

    lowest: Reasoning | None = None
    highest: Reasoning | None = None
    """Words for the lowest and highest capacity in its interval."""
    pattern: Pattern | None = None
    """None where the intervals leave several open."""
    words: tuple[Pattern, ...] = ()
    """All patterns that are not excluded."""
    reason: ReasoningReason | None = None
    """Reason why there are no words."""

    def __str__(self) -> str:
        if self.pattern is not None:
            return self.pattern
        left = f"{', '.join(self.words[:-1])} or {self.words[-1]}" if self.words else self.reason
        nothing_excluded = {*PATTERNS} - {"obedient"} <= {*self.words}
        return f"undetermined ({'no pattern is excluded' if nothing_excluded else left})"

    def beside_poses(self, others: Iterable["ReasoningVerdict"]) -> "ReasoningVerdict":
        """Return the verdict where other prompts show the same steps and do not ask to rely on them.

        Obedient where the steps carry the answer here and under none of the others; left open where these leave it so.
        """
        found, theirs = set(self.words), [set(other.words) for other in others]
        if self.reason is None and theirs and found & _CARRIED and all(words & _IDLE for words in theirs):
            found.add("obedient")
            found -= _CARRIED if all(words <= _IDLE for words in theirs) else set()
        return self if self.reason is not None else _with_words(self, found)


def reasoning_verdict(
    capacity: Interval | None, *, reproduced: Interval, no_steps: Interval, chance: float = 0.0
) -> ReasoningVerdict:
    """Return the only pattern that the intervals allow, else all of them.

    With g the chance of a guess, R the share of own answers from all steps (`reproduced`), E that without any step:

    - noisy: (R - g) / (1 - g) is below `REPRODUCES`.
    - parametric: (E - g) / (R - g) is at least `KNOWN`.
    - genuine, scaffolding: by the adjusted capacity, as `reasoning_word`.
    - redundant: the capacity is below both, and (E - g) / (R - g) below `NEEDED`. decorative: all else.
    """
    half = chance + REPRODUCES * (1 - chance)
    found: set[Pattern] = set() if reaches(reproduced.low, half) else {"noisy"}
    lowest, highest = (None, None) if capacity is None else (reasoning_word(end) for end in capacity)
    if reaches(reproduced.high, half):
        if lowest is None or highest is None:
            return ReasoningVerdict(reason="too few examples")
        scales = [rate - chance for rate in (max(reproduced.low, half), reproduced.high)]
        shares = [(end - chance) / max(scale, ROUND_OFF) for end in no_steps for scale in scales]
        found |= {"parametric"} if reaches(max(shares), KNOWN) else set()
        if not reaches(min(shares), KNOWN):
            words = set(REASONING[REASONING.index(lowest) : REASONING.index(highest) + 1])
            found |= words & _CARRIED
            if "decorative" in words:
                found |= {"redundant"} if not reaches(min(shares), NEEDED) else set()
                found |= {"decorative"} if reaches(max(shares), NEEDED) else set()
    return _with_words(ReasoningVerdict(lowest=lowest, highest=highest), found)


def _with_words(verdict: ReasoningVerdict, found: set[Pattern]) -> ReasoningVerdict:
    words = tuple(word for word in PATTERNS if word in found)
    return replace(verdict, words=words, pattern=words[0] if len(words) == 1 else None)


def _plain(means: Values) -> Values:
    """Return the capacities of (rows, 4) means of necessity, sufficiency, noise floor and chance."""
    result: Values = means[:, 0] * (1 - means[:, 1])
    return result


def _adjusted(means: Values) -> Values:
    """Return the same beyond noise floor and chance; 0 where these leave nothing."""
    necessity, sufficiency, floor, chance = means.T
    scale = 1 - floor - chance
    shares = np.stack([necessity - floor, 1 - floor - sufficiency]) / np.maximum(scale, ROUND_OFF)
    result: Values = np.clip(shares, 0, 1).prod(axis=0) * (scale > ROUND_OFF)
    return result


def _interval(sample: Values, means: Values, statistic: Callable[[Values], Values]) -> Interval | None:
    """Return BCa limits, with columns without spread at those of their own limits that move an end outwards.

    Both statistics rise with necessity alone. If no resample differs (few problems, each clipped at 0), the data do not
    show the error of the statistic, and all columns are put at their limits. They are never inside of what one column
    at its own limit gives: resamples of nearly equal values hardly differ, and show too little of the error, too.
    """
    if len(sample) < 2:
        return None
    limits = [mean_interval(column) for column in sample[:, :3].T]  # chance is known
    ends = []
    for end in (0, 1):
        for fixed in ([is_constant(column) for column in sample[:, :3].T], [True] * len(limits)):
            own_sample, own_means = sample.copy(), means.copy()
            for column, limit in enumerate(limits):
                if fixed[column]:
                    own_sample[:, column] = own_means[:, column] = limit[end if column == 0 else 1 - end]
            if not is_constant(statistic(own_means)):
                break
        alone = np.repeat(sample.mean(axis=0)[None], len(limits), axis=0)
        np.fill_diagonal(alone, [limit[end if column == 0 else 1 - end] for column, limit in enumerate(limits)])
        outermost = np.max if end else np.min
        ends.append(float(outermost([_limits(own_sample, own_means, statistic)[end], *statistic(alone)])))
    return Interval(*ends)


def _limits(sample: Values, means: Values, statistic: Callable[[Values], Values]) -> Values:
    """Return BCa limits of a function of means; plain percentiles where it is flat, as where it is cut off at 0."""
    resampled, estimate = statistic(means), float(statistic(sample.mean(axis=0)[None])[0])
    jackknife = statistic((sample.sum(axis=0) - sample) / (len(sample) - 1))
    deviations = jackknife.mean() - jackknife
    is_flat = float((deviations**2).sum()) <= ROUND_OFF
    shares = _TAILS if is_flat else _bca_shares(estimate, resampled, deviations)
    limits: Values = np.quantile(resampled, shares)
    return limits


def _bca_shares(estimate: float, resampled: Values, deviations: Values) -> Values:
    """Return the quantiles of resampled estimates that are BCa limits (Efron & Tibshirani, 1993, eq. 14.9 to 14.15).

    `deviations` are the mean of the leave-one-out estimates minus each of them, at any scale but not all 0.
    """
    # Ties count one half, as in scipy; with slack, because rates are discrete and many resamples share the mean.
    slack = max(slack_of(resampled), ROUND_OFF * abs(estimate))
    below, above = np.count_nonzero(resampled < estimate - slack), np.count_nonzero(resampled > estimate + slack)
    share_below = (below + (resampled.size - below - above) / 2) / resampled.size
    margin = 0.5 / resampled.size  # with few resamples all may be on one side, and the correction would be infinite
    bias = float(ndtri(np.clip(share_below, margin, 1 - margin)))
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    shifted = bias + ndtri(_TAILS)
    return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)), dtype=np.float64)
