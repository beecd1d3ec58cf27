"""The published tables of the paper as data, and its derived figures computed again from them."""

from ice_eval.analysis.paper._beside import BesidePaper, BesidePublished, beside_paper
from ice_eval.analysis.paper._cells import (
    UNSTATED,
    ablation_cells,
    english_cells,
    k_cells,
    multilingual_cells,
    prompt_cells,
)
from ice_eval.analysis.paper._figures import Claim, Discrepancy, claims, discrepancies, headline, step_capacities
from ice_eval.analysis.paper._published import model_of, protocol_differences, published, task_of
from ice_eval.analysis.paper._recomputed import dependence
from ice_eval.analysis.paper._tables import PaperTable, paper_table, paper_tables

__all__ = [
    "UNSTATED",
    "BesidePaper",
    "BesidePublished",
    "Claim",
    "Discrepancy",
    "PaperTable",
    "ablation_cells",
    "beside_paper",
    "claims",
    "dependence",
    "discrepancies",
    "english_cells",
    "headline",
    "k_cells",
    "model_of",
    "multilingual_cells",
    "paper_table",
    "paper_tables",
    "prompt_cells",
    "protocol_differences",
    "published",
    "step_capacities",
    "task_of",
]
