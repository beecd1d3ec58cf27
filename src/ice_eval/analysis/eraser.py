"""Where a raw ERASER score and a win rate against random sets lead to different verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.analysis.grid import POSITIVE_EVIDENCE
from ice_eval.errors import DataError
from ice_eval.stats import reaches

POSITIVE_RAW = 0.5
"""Comprehensiveness or sufficiency from which on a raw score is read as a good explanation."""


@dataclass(frozen=True)
class EraserAgreement:
    """The two verdicts on the same configurations."""

    agree: tuple[bool, ...]
    """Of each configuration."""
    eraser_only: int
    """Disagreements in which the raw score alone is positive."""

    @property
    def disagreements(self) -> int:
        return self.agree.count(False)


def eraser_agreement(
    raw: Sequence[float],
    win_rates: Sequence[float],
    *,
    raw_threshold: float = POSITIVE_RAW,
    threshold: float = POSITIVE_EVIDENCE,
) -> EraserAgreement:
    """Compare the verdict of a raw score with that of a win rate, each by its own threshold.

    Raises:
        DataError: If the two differ in length.
    """
    if len(raw) != len(win_rates):
        raise DataError(f"need a win rate for every raw score, got {len(raw)} scores and {len(win_rates)} win rates")
    verdicts = [
        (reaches(score, raw_threshold), reaches(rate, threshold)) for score, rate in zip(raw, win_rates, strict=True)
    ]
    return EraserAgreement(tuple(a == b for a, b in verdicts), sum(a and not b for a, b in verdicts))
