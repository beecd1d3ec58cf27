"""Tables and pages from run folders; never from models."""

from ice_eval.report.analyses import (
    answer_notes,
    answer_tables,
    audit_notes,
    audit_tables,
    grid_plan_notes,
    grid_plan_table,
    grid_runs_table,
    grid_table,
    grid_table_note,
    measure_notes,
    measure_tables,
)
from ice_eval.report.chains import ChainVerdict, chain_verdict
from ice_eval.report.formats import FORMATS, formatted
from ice_eval.report.gate import failures, words_of
from ice_eval.report.page import ShownExample, summary_html, write_html
from ice_eval.report.paper import (
    beside_notes,
    beside_table,
    claims_table,
    discrepancies_table,
    paper_figures,
    paper_index,
    paper_layout,
)
from ice_eval.report.sentences import adaptation_notes, difference_notes, notes, plan_notes
from ice_eval.report.tables import (
    adaptation_table,
    agreement_table,
    cost_table,
    difference_tables,
    plan_table,
    robustness_table,
    summary_table,
    tables,
)
from ice_eval.table import Table

__all__ = [
    "FORMATS",
    "ChainVerdict",
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
    "difference_notes",
    "difference_tables",
    "discrepancies_table",
    "failures",
    "formatted",
    "grid_plan_notes",
    "grid_plan_table",
    "grid_runs_table",
    "grid_table",
    "grid_table_note",
    "measure_notes",
    "measure_tables",
    "notes",
    "paper_figures",
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
