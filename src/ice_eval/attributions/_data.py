"""What the data say beside their texts, for attributions that look at no model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ice_eval.operators import Blacklist
from ice_eval.records import Span


@dataclass(frozen=True)
class DataView:
    """What a lens may tell of the data; empty where no attribution of the run asks."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """How often units occur, as `nulls.unit_counts` counts them."""
    lexicon: Blacklist | None = None
    """Which units give a label away: label words, the task's lexicon, tokens that gold labels use differently."""
    human: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    """Example id -> the characters that a person marked as decisive."""
