"""Measures of finished runs beside the win rate."""

from ice_eval.analysis._base import Found, Measure, Measured, Missing, Part, measure, measured, measures
from ice_eval.table import Column, naming

__all__ = ["Column", "Found", "Measure", "Measured", "Missing", "Part", "measure", "measured", "measures", "naming"]
