"""Inputs that are explained: alignment of words and tokens with a text, and chains of thought."""

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
    word_places,
)

__all__ = [
    "Form", "Placed", "Shares", "Spans", "align", "are_plausible", "folded", "normalised", "occurrences", "place",
    "side_by_side", "word_places",
]  # fmt: skip
