"""The figures that the paper states, recomputed from its tables by the code that analyses any grid."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ice_eval.analysis.grid import (
    Cell,
    OperatorDependence,
    Pair,
    WinRateSpread,
    anti_faithful,
    eraser_agreement,
    operator_dependence,
    paired,
    spreads,
)
from ice_eval.analysis.paper.tables import (
    ablation_cells,
    english_cells,
    k_cells,
    multilingual_cells,
    paper_table,
    prompt_cells,
    read_json,
    referred,
)
from ice_eval.stats import correlation_pvalue, detectable_correlation, step_reasoning_capacity, taxonomy

_ERASER_CONFIGURATIONS, _ERASER_DISAGREEMENTS, _ERASER_POSITIVE = 120, 53, 49
"""Counts that the paper gives without the configurations behind them."""
_DRAWS, _VOCABULARY = 4, 50_000
"""Of the contamination audit."""
_FULL, _EMPTY = 0.78, 0.50
"""Scores of the worked example's full and empty input."""
_POWER_N = 400
_KNOWN_FAITHFUL = {("Llama-3.1-8B", "esnli", "gradient"), ("Qwen2.5-7B", "imdb", "attention")}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A figure that the paper states, beside the value that its tables give."""

    id: str
    where: str
    says: str
    """The figure, in our words."""
    stated: float
    relation: Literal["equal", "above", "below"]
    """Whether the figure is said to be this, as rounded in the paper, or to lie above or below it."""
    recomputed: float
    agrees: bool
    note: str


@dataclass(frozen=True, kw_only=True)
class Discrepancy:
    """Something that the paper says in two ways."""

    note: str
    values: tuple[str, ...]
    """The cells that differ, as printed, where it is about cells."""
    references: tuple[str, ...]
    """Where they are: `table.column:field=value,…`."""


def headline() -> dict[str, Any]:
    """Return the paper's headline figures as one flat record: shares as fractions, gaps in percentage points."""
    overall, short = dependence(), dependence(text_length="short")
    deleted = _under("delete")
    return {
        "crossings": len(overall.crossings),
        "attention_configurations": len(overall.pairs),
        "anti_faithful_delete": len(anti_faithful(deleted)),
        "delete_configurations": len(deleted),
        "delete_exceeds_short_text": round(_defined(short.first_exceeds), 3),
        "median_gap_short_pp": _points(short.median_gap),
        "mean_gap_short_pp": _points(short.mean_gap),
        "max_gap_pp": _max_gap(),
    }


def claims() -> list[Claim]:
    """Return every figure of `claims.json`, recomputed."""
    return [_claim(entry) for entry in read_json("claims.json")]


def _claim(entry: Mapping[str, Any]) -> Claim:
    stated, relation = entry["stated"], entry.get("relation", "equal")
    value = round(RECOMPUTED[entry["id"]](), 6)  # without the noise of binary fractions in differences of decimals
    agrees = {
        "equal": abs(value - stated) <= 0.5 * 10 ** -entry.get("decimals", 0),
        "above": value > stated,
        "below": value < stated,
    }
    return Claim(
        **{name: entry[name] for name in ("id", "where", "says", "stated")},
        relation=relation,
        recomputed=value,
        agrees=agrees[relation],
        note=entry.get("note", ""),
    )


def discrepancies() -> list[Discrepancy]:
    """Return where the paper contradicts itself: cells of two tables, and claims that its tables do not support."""
    between = [
        Discrepancy(
            note=entry["note"],
            references=tuple(entry["cells"]),
            values=tuple(referred(reference, {}) for reference in entry["cells"]),
        )
        for entry in read_json("discrepancies.json")
    ]
    unsupported = [
        Discrepancy(
            note=f"{claim.where}: {claim.says}. {claim.note}",
            references=(),
            values=(f"{claim.stated:g}", f"{claim.recomputed:g}"),
        )
        for claim in claims()
        if not claim.agrees
    ]
    return between + unsupported


def step_capacities() -> list[tuple[str, str, float]]:
    """Return model, unit and SRC of every row of necessity and sufficiency; the paper prints the two factors only."""
    return [
        (row["model"], row["unit"], step_reasoning_capacity(float(row["necessity"]), float(row["sufficiency"])))
        for row in paper_table("steps_and_tokens").rows
    ]


def dependence(*, attribution: str = "attention", text_length: str | None = None) -> OperatorDependence:
    """Compare the operators over the English results of an attribution, over all texts or those of one length."""
    return operator_dependence(
        cell for cell in english_cells() if cell.attribution == attribution and text_length in (None, cell.text_length)
    )


# --- parts of recomputed figures ----------------------------------------------------------------------------------


def _under(operator: str) -> list[Cell]:
    return [cell for cell in english_cells() if cell.operator == operator]


def _defined(value: float | None) -> float:
    assert value is not None, "the published grid is not empty"
    return value


def _points(value: float | None) -> float:
    """Return percentage points, to two decimals."""
    return round(100 * _defined(value), 2)


def _max_gap() -> float:
    widest = dependence().widest
    return _points(None if widest is None else abs(widest.gap))


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def _column(table: str, column: str) -> list[float]:
    return [float(row[column]) for row in paper_table(table).rows]


def _smallest_positive_gap() -> float:
    gaps = np.subtract(_column("operator_comparison", "delete"), _column("operator_comparison", "infill"))
    return float(gaps[gaps > 0].min())


def _methods(cells: Iterable[Cell]) -> list[Pair]:
    return paired(cells, over="attribution", first="attention", second="gradient")


def _attention_wins(task: str, *operators: str) -> list[bool]:
    cells = [cell for cell in english_cells() if cell.task == task and cell.operator in operators]
    return [pair.gap > 0 for pair in _methods(cells)]


def _llama_near_random() -> int:
    cells = [cell for cell in english_cells() if (cell.model, cell.task) == ("Llama-3.1-8B", "sst2")]
    return sum(taxonomy(cell.win_rate) == "near-random" for cell in cells)


def _gradient_rise(model: str, task: str) -> float:
    [pair] = [p for p in dependence(attribution="gradient").pairs if (p.first.model, p.first.task) == (model, task)]
    return -100 * pair.gap


def _known_faithful() -> OperatorDependence:
    return operator_dependence(
        cell for cell in english_cells() if (cell.model, cell.task, cell.attribution) in _KNOWN_FAITHFUL
    )


def _language_rates(task: str) -> list[float]:
    return [100 * cell.win_rate for cell in multilingual_cells() if (cell.task, cell.operator) == (task, "delete")]


def _multilingual_rates() -> list[float]:
    return [100 * cell.win_rate for cell in multilingual_cells() if cell.attribution == "attention"]


def _mask_ratio(attribution: str) -> float:
    """Return the smallest ratio of the win rate under deletion to that under a mask."""
    cells = {cell.operator: cell.win_rate for cell in ablation_cells() if cell.attribution == attribution}
    return min(cells["delete"] / rate for operator, rate in cells.items() if operator != "delete")


def _k_spread(model: str, task: str, attribution: str) -> WinRateSpread:
    chosen = [c for c in k_cells() if (c.model, c.task, c.attribution) == (model, task, attribution)]
    [spread] = spreads(chosen, over="k")
    return spread


def _prompt_gap(task: str) -> float:
    return 100 * max(abs(pair.gap) for pair in _methods(cell for cell in prompt_cells() if cell.task == task))


def _confidence_p() -> float:
    confidence, attention = _column("prompts", "confidence"), _column("prompts", "attention")
    return correlation_pvalue(float(np.corrcoef(confidence, attention)[0, 1]), len(confidence))


def _tuned_less_base() -> float:
    """Return the mean win rate of attention on sentiment under deletion, of tuned models less that of base models."""
    tuned = {row["model"]: row["type"] != "base" for row in paper_table("models").rows}
    cells = [c for c in _under("delete") if c.attribution == "attention" and c.task in ("sst2", "imdb")]
    means = [np.mean([cell.win_rate for cell in cells if tuned[cell.model] is kind]) for kind in (True, False)]
    return float(100 * (means[0] - means[1]))


def _p_values_that_follow() -> int:
    """Count the printed p-values that some r, rounding to the printed one, gives."""
    found = 0
    for row in paper_table("plausibility").rows:
        r, p, n = abs(float(row["r"])), float(row["p"]), int(row["n"])
        low, high = sorted(correlation_pvalue(r + step, n) for step in (-0.0005, 0.0005))
        found += low - 0.005 <= p <= high + 0.005
    return found


def _largest_correlated_model() -> float:
    """Return billions of parameters."""
    sizes = {row["model"]: float(row["size"].removesuffix("B")) for row in paper_table("models").rows}
    return max(sizes[row["model"]] for row in paper_table("plausibility").rows)


def _contamination(task: str) -> float:
    """Return the chance of at least one surviving token in the draws, in percent."""
    [row] = paper_table("contamination").where(task=task)
    return 100 * (1 - (1 - float(row["surviving"]) / _VOCABULARY) ** _DRAWS)


def _worked_nsr(operator: str) -> float:
    [row] = paper_table("worked_example").where(operator=operator)
    return (float(row["score"]) - _EMPTY) / (_FULL - _EMPTY)


def _worked_words() -> int:
    rows = paper_table("worked_example").rows
    return sum(taxonomy(float(row["win_rate"]) / 100) == row["word"] for row in rows)


def _intervals_around() -> int:
    rows = paper_table("intervals").rows
    return sum(float(row["low"]) <= float(row["win_rate"]) <= float(row["high"]) for row in rows)


def _step_gap(model: str) -> float:
    by_unit = {row["unit"]: float(row["necessity"]) for row in paper_table("steps_and_tokens").where(model=model)}
    return by_unit["step"] - by_unit["token"]


RECOMPUTED: Mapping[str, Callable[[], float]] = {
    "attention_configurations": lambda: len(dependence().pairs),
    "crossings": lambda: len(dependence().crossings),
    "crossings_percent": lambda: 100 * len(dependence().crossings) / len(dependence().pairs),
    "max_gap_pp": _max_gap,
    "delete_exceeds_percent": lambda: 100 * _defined(dependence(text_length="short").first_exceeds),
    "median_gap_short_pp": lambda: 100 * _defined(dependence(text_length="short").median_gap),
    "mean_gap_short_pp": lambda: 100 * _defined(dependence(text_length="short").mean_gap),
    "long_text_reversed": lambda: 1 - _defined(dependence(text_length="long").first_exceeds),
    "largest_sst2_gap_pp": lambda: 100 * max(p.gap for p in dependence().pairs if p.first.task == "sst2"),
    "comparison_smallest_gap_pp": _smallest_positive_gap,
    "delete_configurations": lambda: len(_under("delete")),
    "anti_faithful_delete": lambda: len(anti_faithful(_under("delete"))),
    "anti_faithful_gradient_share": lambda: _share(
        [cell.attribution == "gradient" for cell in anti_faithful(_under("delete"))]
    ),
    "attention_wins_sst2": lambda: sum(_attention_wins("sst2", "delete", "infill")),
    "attention_wins_esnli_delete": lambda: _share(_attention_wins("esnli", "delete")),
    "llama32_esnli_gradient_rise_pp": lambda: _gradient_rise("Llama-3.2-3B", "esnli"),
    "gradient_wins_ag_news_delete": lambda: _attention_wins("ag_news", "delete").count(False),
    "highest_delete": lambda: 100 * max(cell.win_rate for cell in _under("delete")),
    "highest_infill": lambda: 100 * max(cell.win_rate for cell in _under("infill")),
    "llama31_sst2_near_random": _llama_near_random,
    "known_faithful_lowest": lambda: (
        100 * min(min(pair.first.win_rate, pair.second.win_rate) for pair in _known_faithful().pairs)
    ),
    "known_faithful_gap_pp": lambda: 100 * max(abs(gap) for gap in _known_faithful().gaps),
    "multilingual_lowest": lambda: min(_multilingual_rates()),
    "multilingual_highest": lambda: max(_multilingual_rates()),
    "german_lowest_delete": lambda: min(_language_rates("german")),
    "german_highest_delete": lambda: max(_language_rates("german")),
    "chinese_lowest_delete": lambda: min(_language_rates("chinese")),
    "chinese_highest_delete": lambda: max(_language_rates("chinese")),
    "mask_ratio_attention": lambda: _mask_ratio("attention"),
    "mask_ratio_gradient": lambda: _mask_ratio("gradient"),
    "k_german_gradient_best": lambda: float(_k_spread("GPT-2", "german", "gradient").highest.k or 0),
    "k_german_attention_increases": lambda: _k_spread("GPT-2", "german", "attention").increases,
    "prompt_gap_imdb_pp": lambda: _prompt_gap("imdb"),
    "prompt_gap_sst2_pp": lambda: _prompt_gap("sst2"),
    "prompt_anti_faithful": lambda: len(anti_faithful(prompt_cells())),
    "prompt_confidence_p": _confidence_p,
    "instruct_less_base_sentiment_pp": _tuned_less_base,
    "plausibility_largest_r": lambda: max(abs(r) for r in _column("plausibility", "r")),
    "plausibility_smallest_p": lambda: min(_column("plausibility", "p")),
    "plausibility_p_from_r": _p_values_that_follow,
    "plausibility_detectable_r": lambda: detectable_correlation(_POWER_N),
    "plausibility_largest_model": _largest_correlated_model,
    "eraser_disagreement_percent": lambda: 100 * _ERASER_DISAGREEMENTS / _ERASER_CONFIGURATIONS,
    "eraser_positive_percent": lambda: 100 * _ERASER_POSITIVE / _ERASER_DISAGREEMENTS,
    "eraser_printed_disagreements": lambda: (
        eraser_agreement(_column("eraser", "raw"), _column("eraser", "win_rate")).disagreements
    ),
    "contamination_sst2_percent": lambda: _contamination("sst2"),
    "contamination_ag_news_percent": lambda: _contamination("ag_news"),
    "contamination_esnli_percent": lambda: _contamination("esnli"),
    "worked_nsr_delete": lambda: _worked_nsr("delete"),
    "worked_nsr_infill": lambda: _worked_nsr("infill"),
    "worked_words": _worked_words,
    "intervals_around_win_rate": _intervals_around,
    "instruction_model_src": lambda: max(
        float(row["src"]) for row in paper_table("frontier").where(training="instruction")
    ),
    "step_gap_deepseek": lambda: _step_gap("DeepSeek-R1-7B"),
}
"""By the id of a claim."""
