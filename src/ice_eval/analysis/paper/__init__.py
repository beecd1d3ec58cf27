"""The published tables of the paper as data, and its derived figures computed again from them."""

from ice_eval.analysis.paper.recomputed import (
    Discrepancy,
    StatedFigure,
    claims,
    discrepancies,
    headline,
    step_capacities,
)
from ice_eval.analysis.paper.tables import (
    BesidePaper,
    PaperTable,
    beside_paper,
    english_cells,
    model_of,
    paper_table,
    paper_tables,
    prompt_cells,
    protocol_differences,
    published,
    task_of,
)

__all__ = [
    "BesidePaper", "Discrepancy", "PaperTable", "StatedFigure", "beside_paper", "claims", "discrepancies",
    "english_cells", "headline", "model_of", "paper_table", "paper_tables", "prompt_cells", "protocol_differences",
    "published", "step_capacities", "task_of",
]  # fmt: skip
