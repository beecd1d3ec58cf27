"""Readers of other tools' explanations, aligned with our units. One file per format or family."""

from ice_eval.interop._align import Aligned, align, per_unit
from ice_eval.interop._base import (
    Explanation,
    Format,
    TextPart,
    explanation_format,
    formats,
    numbers,
    of_examples,
    one_text,
    placed,
    read,
)

__all__ = [
    "Aligned", "Explanation", "Format", "TextPart", "align", "explanation_format", "formats", "numbers", "of_examples",
    "one_text", "per_unit", "placed", "read",
]  # fmt: skip
