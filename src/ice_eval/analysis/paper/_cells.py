"""The win rates of the published tables as cells of a grid, so that they are analysed as a user's runs are."""

from collections.abc import Sequence
from functools import cache
from typing import cast

from ice_eval.analysis.grid import Cell, TextLength
from ice_eval.analysis.paper._tables import PaperTable, Row, paper_table, percent

UNSTATED = "unstated"
"""The operator of a table that does not name one."""


@cache
def english_cells() -> Sequence[Cell]:
    """Seven models, four data sets, attention and gradient, deletion and infill."""
    return _cells(paper_table("english"))


@cache
def multilingual_cells() -> Sequence[Cell]:
    """Attention in six languages under both operators, and what is printed of gradient; without invalid outputs."""
    return (*_cells(paper_table("multilingual")), *_cells(paper_table("multilingual_gradient")))


@cache
def ablation_cells() -> Sequence[Cell]:
    """Deletion and masks, GPT-2 on 100 examples of SST-2."""
    return _cells(paper_table("operator_ablation"))


@cache
def k_cells() -> Sequence[Cell]:
    """Five sizes of rationales, GPT-2 and LFM2 in French and German; the operator is not stated."""
    return _cells(paper_table("k_sweep"))


@cache
def prompt_cells() -> Sequence[Cell]:
    """GPT-2 under several prompts; the operator is not stated."""
    table = paper_table("prompts")
    return tuple(
        _cell(table, {**row, "attribution": attribution, "win_rate": row[attribution]})
        for row in table.rows
        for attribution in ("attention", "gradient")
    )


def _cells(table: PaperTable) -> tuple[Cell, ...]:
    return tuple(_cell(table, row) for row in table.rows if row["win_rate"])


def _cell(table: PaperTable, row: Row) -> Cell:
    return Cell(
        model=row["model"],
        task=row["task"],
        attribution=row["attribution"],
        operator=row.get("operator", UNSTATED),
        win_rate=percent(row["win_rate"]),
        k=float(row["k"]) if "k" in row else cast(float, table.k),
        prompt=row.get("prompt", ""),
        text_length=_text_length(row["task"]),
        n=table.n,
    )


def _text_length(task: str) -> TextLength | None:
    [line] = paper_table("datasets").where(task=task)
    return cast(TextLength, line["text_length"]) if line["text_length"] else None
