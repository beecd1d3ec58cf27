"""Tables and pages from run folders; never from models."""

from ice_eval.report.chains import ChainVerdict, chain_verdict
from ice_eval.report.comparison import (
    adaptation_notes,
    adaptation_table,
    difference_notes,
    difference_tables,
    write_comparison,
)
from ice_eval.report.conclusion import conclude, conclusion_table
from ice_eval.report.data import DATA_FORMATS, DataTable, data_of, data_table, data_text, difference_data, write_data
from ice_eval.report.gate import failures, losses, words_of
from ice_eval.report.page import ShownExample, summary_html, write_grid, write_html
from ice_eval.report.provenance import write_audit
from ice_eval.report.sentences import notes, plan_notes
from ice_eval.report.tables import (
    FORMATS,
    agreement_table,
    cost_table,
    in_paper_columns,
    plan_table,
    robustness_table,
    summary_table,
    tables,
)
from ice_eval.table import Table

__all__ = [
    "DATA_FORMATS", "FORMATS", "ChainVerdict", "DataTable", "ShownExample", "Table", "adaptation_notes",
    "adaptation_table", "agreement_table", "chain_verdict", "conclude", "conclusion_table", "cost_table", "data_of",
    "data_table", "data_text", "difference_data", "difference_notes", "difference_tables", "failures",
    "in_paper_columns", "losses", "notes", "plan_notes", "plan_table", "robustness_table", "summary_html",
    "summary_table", "tables", "words_of", "write_audit", "write_comparison", "write_data", "write_grid",
    "write_html",
]  # fmt: skip
