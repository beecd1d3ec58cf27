"""Tables and pages from run folders; never from models."""

from ice_eval.report.chains import ChainVerdict, chain_verdict
from ice_eval.report.gate import failures, words_of
from ice_eval.report.page import ShownExample, summary_html, write_grid, write_html
from ice_eval.report.sentences import adaptation_notes, difference_notes, notes, plan_notes
from ice_eval.report.tables import (
    FORMATS,
    adaptation_table,
    agreement_table,
    cost_table,
    difference_tables,
    formatted,
    plan_table,
    robustness_table,
    summary_table,
    tables,
)
from ice_eval.table import Table

__all__ = [
    "FORMATS", "ChainVerdict", "ShownExample", "Table", "adaptation_notes", "adaptation_table", "agreement_table",
    "chain_verdict", "cost_table", "difference_notes", "difference_tables", "failures", "formatted", "notes",
    "plan_notes", "plan_table", "robustness_table", "summary_html", "summary_table", "tables", "words_of", "write_grid",
    "write_html",
]  # fmt: skip
