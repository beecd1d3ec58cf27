"""Questions about tasks, explanations, finished runs and published tables."""

from ice_eval.analysis.eraser import EraserAgreement, eraser_agreement
from ice_eval.analysis.explanations import ExplanationCheck, check_explanations
from ice_eval.analysis.grid import POSITIVE_EVIDENCE, Cell, Pair, cells_of, grouped, paired
from ice_eval.analysis.operator_dependence import OperatorDependence, anti_faithful, operator_dependence
from ice_eval.analysis.sensitivity import Spread, spreads
from ice_eval.analysis.task_check import LabelLine, Segment, TaskCheck, check_task

__all__ = [
    "POSITIVE_EVIDENCE",
    "Cell",
    "EraserAgreement",
    "ExplanationCheck",
    "LabelLine",
    "OperatorDependence",
    "Pair",
    "Segment",
    "Spread",
    "TaskCheck",
    "anti_faithful",
    "cells_of",
    "check_explanations",
    "check_task",
    "eraser_agreement",
    "grouped",
    "operator_dependence",
    "paired",
    "spreads",
]
