"""Subjects: how the units of an input relate to its text."""

from ice_eval.subjects.alignment import Placed, Shares, Spans, align, are_plausible, folded, place, side_by_side

__all__ = ["Placed", "Shares", "Spans", "align", "are_plausible", "folded", "place", "side_by_side"]
