"""Tables and pages from run folders; never from models."""

from ice_eval.report.html import summary_html, write_html
from ice_eval.report.tables import FORMATS, Table, agreement_table, formatted, notes, summary_table

__all__ = ["FORMATS", "Table", "agreement_table", "formatted", "notes", "summary_html", "summary_table", "write_html"]
