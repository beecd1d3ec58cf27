"""Words for a win rate, and those that its interval supports."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF, Groups, Values, finite_vector, grouping_of, is_constant
from ice_eval.stats.bootstrap import Interval
from ice_eval.stats.randomization import CHANCE

Taxonomy = Literal["anti-faithful", "near-random", "weakly faithful", "faithful"]
TAXONOMY: tuple[Taxonomy, ...] = get_args(Taxonomy)
"""From worst to best."""

WEAKLY_FAITHFUL = 0.55
"""Win rates from here on are at least weakly faithful."""
FAITHFUL = 0.60
"""Win rates above this are faithful."""

Reason = Literal[
    "not distinguishable from random",
    "too few examples",
    "all win rates are equal",
    "all groups have the same win rate",
]
_REASONS: tuple[Reason, ...] = get_args(Reason)
NOT_DISTINGUISHABLE, TOO_FEW, ALL_EQUAL, GROUPS_EQUAL = _REASONS
"""Reasons why a verdict has no words."""

_TEST_LEVEL = 0.05
DETECTABLE_ERRORS = 2.80
"""Standard errors from one half that are detected: 1.96 + 0.84, two-sided level 5 %, power 80 %."""
_EFFECTS = ((0.8, "large"), (0.5, "medium"), (0.2, "small"))  # Cohen's (1988) words for a distance of at least


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The range of words that an interval and a test support for a mean win rate, or the reason why there is none."""

    lowest: Taxonomy | None = None
    """Word at the lower end of the interval; None without words."""
    highest: Taxonomy | None = None
    """Word at the upper end of the interval; None without words."""
    excludes_chance: bool = False
    """True if one half is outside the interval."""
    reason: Reason | None = None
    """Reason why there are no words."""

    @property
    def word(self) -> Taxonomy | None:
        """The only word that the interval covers; None where it covers several or the verdict has none."""
        return self.lowest if self.lowest == self.highest else None

    @property
    def words(self) -> tuple[Taxonomy, ...]:
        """All words that the interval covers, from worst to best."""
        if self.lowest is None or self.highest is None:
            return ()
        return TAXONOMY[TAXONOMY.index(self.lowest) : TAXONOMY.index(self.highest) + 1]

    @property
    def is_undetermined(self) -> bool:
        """True if the data support no statement at all, not even that the win rate may be chance."""
        return self.reason is not None and self.reason != NOT_DISTINGUISHABLE

    def __str__(self) -> str:
        if self.reason == NOT_DISTINGUISHABLE:
            return NOT_DISTINGUISHABLE
        return range_text(self.lowest, self.highest, self.reason)


def range_text(lowest: str | None, highest: str | None, reason: str | None) -> str:
    """Return one word, a range of words, or `undetermined` with its reason."""
    if lowest is None or highest is None:
        return f"undetermined ({reason})"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def taxonomy(win_rate: float) -> Taxonomy:
    """Return the paper's word for a win rate.

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


def verdict(
    win_rate: float, interval: Interval | None, *, p_value: float | None = None, without: Reason = TOO_FEW
) -> Verdict:
    """Return the verdict on a mean win rate, given its interval and the test of one half.

    One word only if the whole interval is in that word's band, else the range of words that it covers. An interval that
    covers one half gives no direction and is never called anti-faithful. Nor is one that the test does not support: if
    most win rates are equal and a few are far off, as when most sets tie, a bootstrap of few examples is too narrow and
    would call one random explanation in five anti-faithful; the test holds its level. `without` is the reason to give
    without an interval, unless all win rates are one half (`reason_without_interval`).
    """
    if interval is None:
        # Without an interval all win rates (or group means) are equal, so the mean shows if each is one half.
        return Verdict(reason=NOT_DISTINGUISHABLE if abs(win_rate - CHANCE) <= ROUND_OFF else without)
    outside = excludes_chance(interval)
    if not outside or (p_value is not None and p_value > _TEST_LEVEL + ROUND_OFF):
        return Verdict(excludes_chance=outside, reason=NOT_DISTINGUISHABLE)
    return Verdict(lowest=taxonomy(interval.low), highest=taxonomy(interval.high), excludes_chance=outside)


def reason_without_interval(win_rates: Values, *, groups: Groups = None) -> Reason:
    """Return the reason why a mean of win rates has no bootstrap interval: no resample differs from the data."""
    if grouping_of(groups, n=win_rates.size).n < 2:
        return TOO_FEW
    return ALL_EQUAL if is_constant(win_rates) else GROUPS_EQUAL


def effect_word(effect_size: float) -> str:
    """Return Cohen's word for an effect size: negligible below 0.2, small below 0.5, medium below 0.8, else large.

    A negative one reads, for instance, "large negative"; a negligible one has no sign. An effect that round-off has
    moved off a limit counts as the limit.
    """
    if math.isnan(effect_size):
        raise DataError("an effect size is a number, got nan; one that is undefined has no word")
    word = next((word for limit, word in _EFFECTS if reaches(abs(effect_size), limit)), "negligible")
    return word if effect_size > 0 or word == "negligible" else f"{word} negative"


def excludes_chance(interval: Interval | None) -> bool:
    """Return True if one half is outside the interval; False for an undefined interval."""
    return interval is not None and not (reaches(CHANCE, interval.low) and reaches(interval.high, CHANCE))


def detectable_win_rate(win_rates: Values, *, groups: Groups = None) -> float | None:
    """Return the smallest mean win rate that a data set of this size and spread detects with power 80 %.

    `1/2 + 2.80 * SE`: two-sided level 5 %. Above 1 means that no rationale can be distinguished from random sets. None
    without spread: a single example or group, or equal win rates. With groups, SE is cluster-robust.
    """
    rates = finite_vector(win_rates, what="win rate")
    grouping = grouping_of(groups, n=rates.size)
    if grouping.n < 2 or is_constant(rates):
        return None
    if grouping.order is None:
        return CHANCE + DETECTABLE_ERRORS * float(rates.std(ddof=1)) / math.sqrt(rates.size)
    return CHANCE + DETECTABLE_ERRORS * float(grouping.standard_errors((rates - rates.mean())[None])[0])


def reaches(rate: float, limit: float) -> bool:
    """Return True if `rate` is at least `limit`; both are fractions of 1, so round-off is measured against 1."""
    return rate >= limit - ROUND_OFF
