"""What is explained: where words and tokens of others lie in a text (`alignment`), and chains of thought (`chain`)."""

from ice_eval.subjects.alignment import (
    Form,
    Placed,
    Shares,
    Spans,
    align,
    are_plausible,
    folded,
    normalised,
    occurrences,
    place,
    side_by_side,
)

__all__ = [
    "Form", "Placed", "Shares", "Spans", "align", "are_plausible", "folded", "normalised", "occurrences", "place",
    "side_by_side",
]  # fmt: skip
