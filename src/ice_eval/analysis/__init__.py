"""Analyses of tasks, explanations, finished runs, grids of runs and published tables."""

from ice_eval.analysis.checks import ExplanationCheck, TaskCheck, check_explanations, check_task
from ice_eval.analysis.grid import (
    Cell,
    GridLine,
    GridResults,
    GridRun,
    anti_faithful,
    cells_of,
    eraser_agreement,
    grid_results,
    operator_dependence,
    spreads,
)
from ice_eval.analysis.infill_audit import AuditedUnit, FillAudit, InfillAudit, audit_fills, audit_infill, giveaways

__all__ = [
    "AuditedUnit", "Cell", "ExplanationCheck", "FillAudit", "GridLine", "GridResults", "GridRun", "InfillAudit",
    "TaskCheck", "anti_faithful", "audit_fills", "audit_infill", "cells_of", "check_explanations", "check_task",
    "eraser_agreement", "giveaways", "grid_results", "operator_dependence", "spreads",
]  # fmt: skip
