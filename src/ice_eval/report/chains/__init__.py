"""What step-level runs say of chains of thought: tables, sentences, and single chains step by step."""

from ice_eval.report.chains._content import headlines, numbered
from ice_eval.report.chains.differences import chain_difference_table
from ice_eval.report.chains.effects import ALWAYS, REPLIES, ChainView, chain_view, is_chain
from ice_eval.report.chains.lines import chain_lines, operator_of
from ice_eval.report.chains.notes import cot_notes
from ice_eval.report.chains.record import chain_record
from ice_eval.report.chains.tables import capacity_table, cot_tables
from ice_eval.report.chains.verdict import ChainVerdict, chain_verdict

__all__ = [
    "ALWAYS",
    "REPLIES",
    "ChainVerdict",
    "ChainView",
    "capacity_table",
    "chain_difference_table",
    "chain_lines",
    "chain_record",
    "chain_verdict",
    "chain_view",
    "cot_notes",
    "cot_tables",
    "headlines",
    "is_chain",
    "numbered",
    "operator_of",
]
