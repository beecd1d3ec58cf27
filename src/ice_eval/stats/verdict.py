"""Words for a mean win rate: `verdict`, by the printed interval, and `point_verdict`, by the win rate alone."""

from dataclasses import dataclass
from typing import Literal, get_args

from ice_eval.errors import DataError
from ice_eval.stats._values import ROUND_OFF
from ice_eval.stats.intervals import Interval
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
