"""Final answers: read from what a model wrote, compared, or found unreadable. One file per kind."""

from ice_eval.cot.answers._base import Answer, Kind, Reading, Unreadable
from ice_eval.cot.answers.label import Label
from ice_eval.cot.answers.number import Number
from ice_eval.cot.answers.option import Option

__all__ = ["Answer", "Kind", "Label", "Number", "Option", "Reading", "Unreadable"]
