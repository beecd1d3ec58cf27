"""Tables and pages from run folders; never from models."""

from ice_eval.report.adaptation import adaptation_notes, adaptation_table
from ice_eval.report.bench import grid_plan_notes, grid_plan_table, grid_runs_table, grid_table, grid_table_note
from ice_eval.report.chains import ChainVerdict, chain_verdict, cot_notes, cot_tables
from ice_eval.report.differences import difference_notes, difference_tables
from ice_eval.report.formats import FORMATS, formatted
from ice_eval.report.gate import failures, words_of
from ice_eval.report.html import write_html
from ice_eval.report.infill_audit import audit_notes, audit_tables
from ice_eval.report.measures import (
    Measured,
    answer_notes,
    answer_tables,
    found_as_dict,
    measure_notes,
    measure_tables,
    measured,
)
from ice_eval.report.notebook import ShownExample, summary_html
from ice_eval.report.overview import notes, tables
from ice_eval.report.paper import (
    beside_notes,
    beside_table,
    claims_table,
    discrepancies_table,
    paper_index,
    paper_layout,
)
from ice_eval.report.plans import plan_notes, plan_table
from ice_eval.report.summaries import agreement_table, cost_table, robustness_table, summary_table
from ice_eval.report.tables import Table

__all__ = [
    "FORMATS",
    "ChainVerdict",
    "Measured",
    "ShownExample",
    "Table",
    "adaptation_notes",
    "adaptation_table",
    "agreement_table",
    "answer_notes",
    "answer_tables",
    "audit_notes",
    "audit_tables",
    "beside_notes",
    "beside_table",
    "chain_verdict",
    "claims_table",
    "cost_table",
    "cot_notes",
    "cot_tables",
    "difference_notes",
    "difference_tables",
    "discrepancies_table",
    "failures",
    "formatted",
    "found_as_dict",
    "grid_plan_notes",
    "grid_plan_table",
    "grid_runs_table",
    "grid_table",
    "grid_table_note",
    "measure_notes",
    "measure_tables",
    "measured",
    "notes",
    "paper_index",
    "paper_layout",
    "plan_notes",
    "plan_table",
    "robustness_table",
    "summary_html",
    "summary_table",
    "tables",
    "words_of",
    "write_html",
]
