"""Questions about tasks, explanations, finished runs and published tables."""

from ice_eval.analysis.eraser import EraserAgreement, eraser_agreement
from ice_eval.analysis.explanations import ExplanationCheck, check_explanations
from ice_eval.analysis.fill_audit import ContaminationEffect, FillAudit, FillCounts, audit_fills
from ice_eval.analysis.grid import POSITIVE_EVIDENCE, Cell, Pair, cells_of, grouped, paired
from ice_eval.analysis.infill_audit import InfillAudit, Judged, audit_infill, giveaways
from ice_eval.analysis.operator_dependence import OperatorDependence, anti_faithful, operator_dependence
from ice_eval.analysis.pieces import Piece
from ice_eval.analysis.sensitivity import Spread, spreads
from ice_eval.analysis.task_check import LabelLine, Segment, TaskCheck, check_task

__all__ = [
    "POSITIVE_EVIDENCE",
    "Cell",
    "ContaminationEffect",
    "EraserAgreement",
    "ExplanationCheck",
    "FillAudit",
    "FillCounts",
    "InfillAudit",
    "Judged",
    "LabelLine",
    "OperatorDependence",
    "Pair",
    "Piece",
    "Segment",
    "Spread",
    "TaskCheck",
    "anti_faithful",
    "audit_fills",
    "audit_infill",
    "cells_of",
    "check_explanations",
    "check_task",
    "eraser_agreement",
    "giveaways",
    "grouped",
    "operator_dependence",
    "paired",
    "spreads",
]
