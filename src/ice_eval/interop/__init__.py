"""Explanations that other tools wrote, read and put into our units. One file per format."""

from ice_eval.interop._align import Aligned, align
from ice_eval.interop._checked import placed
from ice_eval.interop._formats import Format, explanation_format, formats, of_examples, read
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece

__all__ = [
    "Aligned",
    "Explanation",
    "Format",
    "Piece",
    "align",
    "explanation_format",
    "formats",
    "numbers",
    "of_examples",
    "placed",
    "read",
]
