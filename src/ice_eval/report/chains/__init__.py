"""Reports of step-level runs on chains of thought: tables, sentences, and single chains step by step."""

from ice_eval.report.chains.sentences import ChainVerdict, chain_verdict, cot_notes
from ice_eval.report.chains.tables import capacity_table, chain_difference_table, cot_tables, headlines, numbered
from ice_eval.report.chains.view import (
    ALWAYS,
    REPLIES,
    ChainView,
    chain_lines,
    chain_record,
    chain_view,
    is_chain,
    operator_of,
)

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
