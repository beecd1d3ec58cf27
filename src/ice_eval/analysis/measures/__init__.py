"""Measures of finished runs beside the win rate, one file each."""

from ice_eval.analysis.measures._base import Column, Found, Measure, Missing, Part, measure, measures, naming

__all__ = ["Column", "Found", "Measure", "Missing", "Part", "measure", "measures", "naming"]
