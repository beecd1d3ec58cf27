"""The figures stated in the paper, recomputed from its tables by the code that analyses any grid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from ice_eval.analysis import grid
from ice_eval.analysis.grid import Cell, operator_dependence
from ice_eval.analysis.paper import tables
from ice_eval.analysis.paper.tables import paper_table
from ice_eval.stats import correlation_pvalue, detectable_correlation, step_reasoning_capacity, taxonomy

_ERASER_CONFIGURATIONS, _ERASER_DISAGREEMENTS, _ERASER_POSITIVE = 120, 53, 49
"""Counts that the paper gives without the configurations behind them."""
_DRAWS, _VOCABULARY = 4, 50_000
_FULL, _EMPTY = 0.78, 0.50
"""Scores of the worked example's full and empty input."""
_POWER_N = 400
_ATTRIBUTIONS = ("gradient", "attention")


@dataclass(frozen=True, kw_only=True)
class StatedFigure:
    """A figure that the paper states, beside the value from its tables."""

    id: str
    where: str
    says: str
    stated: float
    relation: Literal["equal", "above", "below"]
    """Relation of the figure to this number, which is rounded as in the paper."""
    recomputed: float
    agrees: bool
    note: str


@dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """A contradiction in the paper."""

    note: str
    values: tuple[str, ...]
    """The cells that differ, as printed, if it is about cells."""
    references: tuple[str, ...]
    """References to them: `table.column:field=value,…`."""


def headline() -> dict[str, Any]:
    """Return the paper's headline figures as one flat record: shares as fractions, gaps in percentage points."""
    found = recomputed()
    counts = ("crossings", "attention_configurations", "anti_faithful_delete", "delete_configurations")
    gaps = ("median_gap_short_pp", "mean_gap_short_pp", "max_gap_pp")
    return {
        **{name: found[name] for name in counts},
        "delete_exceeds_short_text": round(found["delete_exceeds_percent"] / 100, 3),
        **{name: round(found[name], 2) for name in gaps},
    }


def claims() -> list[StatedFigure]:
    """Return every figure of `claims.json`, recomputed."""
    found = []
    for entry in tables.read_json("claims.json"):
        given = {"relation": "equal", "note": "", **entry}
        stated, within = given["stated"], 0.5 * 10 ** -given.pop("decimals", 0)
        value = round(recomputed()[given["id"]], 6)  # without the noise of binary fractions in differences of decimals
        agrees = {"equal": abs(value - stated) <= within, "above": value > stated, "below": value < stated}
        found.append(StatedFigure(**given, recomputed=value, agrees=agrees[given["relation"]]))
    return found


def discrepancies() -> list[Discrepancy]:
    """Return contradictions of the paper: cells of two tables, and claims that its tables do not support."""
    found = []
    for entry in tables.read_json("discrepancies.json"):
        values = tuple(tables.referred(reference, {}) for reference in entry["cells"])
        found.append(Discrepancy(note=entry["note"], references=tuple(entry["cells"]), values=values))
    for claim in (claim for claim in claims() if not claim.agrees):
        note, values = f"{claim.where}: {claim.says}. {claim.note}", (f"{claim.stated:g}", f"{claim.recomputed:g}")
        found.append(Discrepancy(note=note, references=(), values=values))
    return found


def step_capacities() -> list[tuple[str, str, float]]:
    """Return model, unit and SRC of every row of necessity and sufficiency; the paper prints the two factors only."""
    return [
        (row["model"], row["unit"], step_reasoning_capacity(float(row["necessity"]), float(row["sufficiency"])))
        for row in paper_table("steps_and_tokens").rows
    ]


def dependence(*, attribution: str = "attention", text_length: str | None = None) -> grid.OperatorDependence:
    """Compare the operators over the English results of an attribution, over all texts or those of one length."""
    where = {"attribution": attribution} | ({} if text_length is None else {"text_length": text_length})
    return operator_dependence(_english(**where))


@cache
def recomputed() -> Mapping[str, float]:
    return {**_operators(), **_methods(), **_languages_and_masks(), **_choices(), **_plausibility(), **_other_tables()}


def _chosen(cells: Iterable[Cell], **where: str) -> list[Cell]:
    return [cell for cell in cells if all(getattr(cell, name) == value for name, value in where.items())]


def _english(**where: str) -> list[Cell]:
    return _chosen(tables.english_cells(), **where)


def _percent(cells: Iterable[Cell], **where: str) -> list[float]:
    return [100 * cell.win_rate for cell in _chosen(cells, **where)]


def _column(table: str, column: str) -> list[float]:
    return [float(row[column]) for row in paper_table(table).rows]


def _operators() -> dict[str, float]:
    overall, short, long = dependence(), dependence(text_length="short"), dependence(text_length="long")
    deleted, infilled = _english(operator="delete"), _english(operator="infill")
    worse = grid.anti_faithful(deleted)
    compared = np.subtract(_column("operator_comparison", "delete"), _column("operator_comparison", "infill"))
    llama = _english(model="Llama-3.2-3B", task="esnli", attribution="gradient")
    known_gradient = _english(model="Llama-3.1-8B", task="esnli", attribution="gradient")
    known = operator_dependence(known_gradient + _english(model="Qwen2.5-7B", task="imdb", attribution="attention"))
    near_random = [taxonomy(cell.win_rate) for cell in _english(model="Llama-3.1-8B", task="sst2")]
    return {
        "attention_configurations": len(overall.pairs),
        "crossings": len(overall.crossings),
        "crossings_percent": 100 * len(overall.crossings) / len(overall.pairs),
        "max_gap_pp": 100 * max(abs(gap) for gap in overall.gaps),
        "delete_exceeds_percent": 100 * (short.first_exceeds or 0),
        "median_gap_short_pp": 100 * (short.median_gap or 0),
        "mean_gap_short_pp": 100 * (short.mean_gap or 0),
        "long_text_reversed": 1 - (long.first_exceeds or 0),
        "largest_sst2_gap_pp": 100 * max(pair.gap for pair in overall.pairs if pair.first.task == "sst2"),
        "comparison_smallest_gap_pp": float(compared[compared > 0].min()),
        "delete_configurations": len(deleted),
        "anti_faithful_delete": len(worse),
        "anti_faithful_gradient_share": len(_chosen(worse, attribution="gradient")) / len(worse),
        "llama32_esnli_gradient_rise_pp": -100 * operator_dependence(llama).gaps[0],
        "highest_delete": max(_percent(deleted)),
        "highest_infill": max(_percent(infilled)),
        "llama31_sst2_near_random": near_random.count("near-random"),
        "known_faithful_lowest": min(100 * cell.win_rate for p in known.pairs for cell in (p.first, p.second)),
        "known_faithful_gap_pp": 100 * max(abs(gap) for gap in known.gaps),
    }


def _wins(cells: Iterable[Cell]) -> list[float]:
    return [pair.gap for pair in grid.paired(cells, over="attribution", first="attention", second="gradient")]


def _methods() -> dict[str, float]:
    gaps = {task: _wins(_english(task=task, operator="delete")) for task in ("esnli", "ag_news")}
    tuned = {row["model"]: row["type"] != "base" for row in paper_table("models").rows}
    attention = _english(operator="delete", attribution="attention")
    sentiment = [cell for cell in attention if cell.task in ("sst2", "imdb")]
    means = [np.mean([cell.win_rate for cell in sentiment if tuned[cell.model] is kind]) for kind in (True, False)]
    return {
        "attention_wins_sst2": sum(gap > 0 for gap in _wins(_english(task="sst2"))),
        "attention_wins_esnli_delete": float(np.mean([gap > 0 for gap in gaps["esnli"]])),
        "gradient_wins_ag_news_delete": sum(gap <= 0 for gap in gaps["ag_news"]),
        "instruct_less_base_sentiment_pp": float(100 * (means[0] - means[1])),
    }


def _languages_and_masks() -> dict[str, float]:
    every = _percent(tables.multilingual_cells(), attribution="attention")
    found = {"multilingual_lowest": min(every), "multilingual_highest": max(every)}
    for task in ("german", "chinese"):
        rates = _percent(tables.multilingual_cells(), task=task, operator="delete")
        found |= {f"{task}_lowest_delete": min(rates), f"{task}_highest_delete": max(rates)}
    for name in _ATTRIBUTIONS:
        cells = {cell.operator: cell.win_rate for cell in _chosen(tables.cells("operator_ablation"), attribution=name)}
        ratios = [cells["delete"] / rate for operator, rate in cells.items() if operator != "delete"]
        found[f"mask_ratio_{name}"] = min(ratios)
    return found


def _choices() -> dict[str, float]:
    german = _chosen(tables.cells("k_sweep"), model="GPT-2", task="german")
    [gradient], [attention] = (grid.spreads(_chosen(german, attribution=name), over="k") for name in _ATTRIBUTIONS)
    gaps = {task: _wins(_chosen(tables.prompt_cells(), task=task)) for task in ("imdb", "sst2")}
    r = float(np.corrcoef(_column("prompts", "confidence"), _column("prompts", "attention"))[0, 1])
    return {
        "k_german_gradient_best": float(gradient.highest.k or 0),
        "k_german_attention_increases": attention.increases,
        "prompt_gap_imdb_pp": 100 * max(map(abs, gaps["imdb"])),
        "prompt_gap_sst2_pp": 100 * max(map(abs, gaps["sst2"])),
        "prompt_anti_faithful": len(grid.anti_faithful(tables.prompt_cells())),
        "prompt_confidence_p": correlation_pvalue(r, len(paper_table("prompts").rows)),
    }


def _plausibility() -> dict[str, float]:
    rows = paper_table("plausibility").rows
    sizes = {row["model"]: float(row["size"].removesuffix("B")) for row in paper_table("models").rows}
    following = 0  # printed p-values that some r, rounding to the printed one, gives
    for row in rows:
        r, p, n = abs(float(row["r"])), float(row["p"]), int(row["n"])
        low, high = sorted(correlation_pvalue(r + step, n) for step in (-0.0005, 0.0005))
        following += low - 0.005 <= p <= high + 0.005
    return {
        "plausibility_largest_r": max(map(abs, _column("plausibility", "r"))),
        "plausibility_smallest_p": min(_column("plausibility", "p")),
        "plausibility_p_from_r": following,
        "plausibility_detectable_r": detectable_correlation(_POWER_N),
        "plausibility_largest_model": max(sizes[row["model"]] for row in rows),
    }


def _other_tables() -> dict[str, float]:
    eraser = grid.eraser_agreement(_column("eraser", "raw"), _column("eraser", "win_rate"))
    examples, intervals = paper_table("worked_example").rows, paper_table("intervals").rows
    deepseek = paper_table("steps_and_tokens").where(model="DeepSeek-R1-7B")
    necessity = {row["unit"]: float(row["necessity"]) for row in deepseek}
    around = [float(row["low"]) <= float(row["win_rate"]) <= float(row["high"]) for row in intervals]
    found = {
        "eraser_disagreement_percent": 100 * _ERASER_DISAGREEMENTS / _ERASER_CONFIGURATIONS,
        "eraser_positive_percent": 100 * _ERASER_POSITIVE / _ERASER_DISAGREEMENTS,
        "eraser_printed_disagreements": eraser.disagreements,
        "worked_words": sum(taxonomy(float(row["win_rate"]) / 100) == row["word"] for row in examples),
        "intervals_around_win_rate": sum(around),
        "instruction_model_src": max(float(r["src"]) for r in paper_table("frontier").where(training="instruction")),
        "step_gap_deepseek": necessity["step"] - necessity["token"],
    }
    for row in paper_table("contamination").rows:  # chance of at least one surviving token in the draws
        rate = 1 - (1 - float(row["surviving"]) / _VOCABULARY) ** _DRAWS
        found[f"contamination_{row['task']}_percent"] = 100 * rate
    for row in examples:
        found[f"worked_nsr_{row['operator']}"] = (float(row["score"]) - _EMPTY) / (_FULL - _EMPTY)
    return found
