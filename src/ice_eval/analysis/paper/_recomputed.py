"""How each figure that the paper states follows from its tables."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ice_eval.analysis.eraser import eraser_agreement
from ice_eval.analysis.grid import Cell, Pair, paired
from ice_eval.analysis.operator_dependence import OperatorDependence, anti_faithful, operator_dependence
from ice_eval.analysis.paper._cells import ablation_cells, english_cells, k_cells, multilingual_cells, prompt_cells
from ice_eval.analysis.paper._tables import number, paper_table, percent
from ice_eval.analysis.sensitivity import Spread, spreads
from ice_eval.stats import correlation_pvalue, detectable_correlation, taxonomy

_ERASER_CONFIGURATIONS, _ERASER_DISAGREEMENTS, _ERASER_POSITIVE = 120, 53, 49
"""Counts that the paper gives without the configurations behind them."""
_DRAWS, _VOCABULARY = 4, 50_000
"""Of the contamination audit."""
_FULL, _EMPTY = 0.78, 0.50
"""Scores of the worked example's full and empty input."""
_POWER_N = 400


def dependence(*, attribution: str = "attention", text_length: str | None = None) -> OperatorDependence:
    """How far the English results of an attribution depend on the operator, over all texts or those of one length."""
    return operator_dependence(
        cell for cell in english_cells() if cell.attribution == attribution and text_length in (None, cell.text_length)
    )


def under(operator: str) -> list[Cell]:
    return [cell for cell in english_cells() if cell.operator == operator]


def defined(value: float | None) -> float:
    assert value is not None, "the published grid is not empty"
    return value


def points(value: float | None) -> float:
    """Percentage points, to two decimals."""
    return round(100 * defined(value), 2)


def max_gap() -> float:
    widest = dependence().widest
    return points(None if widest is None else abs(widest.gap))


def _long_text_reversed() -> float:
    return float(1 - defined(dependence(text_length="long").first_exceeds))


def _largest_sst2_gap() -> float:
    return 100 * max(pair.gap for pair in dependence().pairs if pair.first.task == "sst2")


def _comparison_smallest_gap() -> float:
    gaps = (number(row["delete"]) - number(row["infill"]) for row in paper_table("operator_comparison").rows)
    return min(gap for gap in gaps if gap > 0)


def _gradient_share() -> float:
    found = anti_faithful(under("delete"))
    return sum(cell.attribution == "gradient" for cell in found) / len(found)


def _methods(cells: Iterable[Cell]) -> list[Pair]:
    return paired(cells, over="attribution", first="attention", second="gradient")


def _attention_wins(task: str, *operators: str) -> list[bool]:
    cells = [cell for cell in english_cells() if cell.task == task and cell.operator in operators]
    return [pair.gap > 0 for pair in _methods(cells)]


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def _highest(operator: str) -> float:
    return 100 * max(cell.win_rate for cell in under(operator))


def _llama_near_random() -> int:
    cells = [cell for cell in english_cells() if (cell.model, cell.task) == ("Llama-3.1-8B", "sst2")]
    return sum(taxonomy(cell.win_rate) == "near-random" for cell in cells)


def _gradient_rise(model: str, task: str) -> float:
    [pair] = [p for p in dependence(attribution="gradient").pairs if (p.first.model, p.first.task) == (model, task)]
    return -100 * pair.gap


_KNOWN_FAITHFUL = {("Llama-3.1-8B", "esnli", "gradient"), ("Qwen2.5-7B", "imdb", "attention")}


def _known_faithful() -> OperatorDependence:
    return operator_dependence(
        cell for cell in english_cells() if (cell.model, cell.task, cell.attribution) in _KNOWN_FAITHFUL
    )


def _known_faithful_lowest() -> float:
    return 100 * min(min(pair.first.win_rate, pair.second.win_rate) for pair in _known_faithful().pairs)


def _language_rates(task: str, operator: str = "delete") -> list[float]:
    return [100 * c.win_rate for c in multilingual_cells() if (c.task, c.operator) == (task, operator)]


def _multilingual_rates() -> list[float]:
    return [100 * cell.win_rate for cell in multilingual_cells() if cell.attribution == "attention"]


def _mask_ratios(attribution: str) -> list[float]:
    cells = {cell.operator: cell.win_rate for cell in ablation_cells() if cell.attribution == attribution}
    return [cells["delete"] / rate for operator, rate in cells.items() if operator != "delete"]


def _k_spread(model: str, task: str, attribution: str) -> Spread:
    chosen = [c for c in k_cells() if (c.model, c.task, c.attribution) == (model, task, attribution)]
    [spread] = spreads(chosen, over="k")
    return spread


def _best_k(model: str, task: str, attribution: str) -> float:
    k = _k_spread(model, task, attribution).highest.k
    assert isinstance(k, float), "spreads over k are over shares"
    return k


def _prompt_gap(task: str) -> float:
    return 100 * max(abs(pair.gap) for pair in _methods(cell for cell in prompt_cells() if cell.task == task))


def _confidence_p() -> float:
    confidence, attention = _column("prompts", "confidence"), _column("prompts", "attention")
    return correlation_pvalue(float(np.corrcoef(confidence, attention)[0, 1]), len(confidence))


def _tuned_less_base() -> float:
    """Mean win rate of attention on sentiment under deletion, of instruction-tuned models less that of base models."""
    tuned = {row["model"]: row["type"] != "base" for row in paper_table("models").rows}
    cells = [c for c in under("delete") if c.attribution == "attention" and c.task in ("sst2", "imdb")]
    means = [np.mean([cell.win_rate for cell in cells if tuned[cell.model] is kind]) for kind in (True, False)]
    return float(100 * (means[0] - means[1]))


def _column(table: str, column: str) -> list[float]:
    return [number(row[column]) for row in paper_table(table).rows]


def _p_values_that_follow() -> int:
    """Printed p-values that some r, rounding to the printed one, gives."""
    rows = paper_table("plausibility").rows
    return sum(_p_follows(number(row["r"]), number(row["p"]), int(row["n"])) for row in rows)


def _p_follows(r: float, p: float, n: int) -> bool:
    low, high = sorted(correlation_pvalue(abs(r) + step, n) for step in (-0.0005, 0.0005))
    return low - 0.005 <= p <= high + 0.005


def _largest_correlated_model() -> float:
    """In billions of parameters."""
    sizes = {row["model"]: number(row["size"].removesuffix("B")) for row in paper_table("models").rows}
    return max(sizes[row["model"]] for row in paper_table("plausibility").rows)


def _eraser_disagreements() -> int:
    return eraser_agreement(_column("eraser", "raw"), _column("eraser", "win_rate")).disagreements


def _contamination(task: str) -> float:
    """Chance of at least one surviving token in the draws, in percent."""
    [row] = paper_table("contamination").where(task=task)
    return 100 * (1 - (1 - number(row["surviving"]) / _VOCABULARY) ** _DRAWS)


def _worked_nsr(operator: str) -> float:
    [row] = paper_table("worked_example").where(operator=operator)
    return (number(row["score"]) - _EMPTY) / (_FULL - _EMPTY)


def _worked_words() -> int:
    return sum(taxonomy(percent(row["win_rate"])) == row["word"] for row in paper_table("worked_example").rows)


def _intervals_around() -> int:
    rows = paper_table("intervals").rows
    return sum(number(row["low"]) <= number(row["win_rate"]) <= number(row["high"]) for row in rows)


def _instruction_model_src() -> float:
    return max(number(row["src"]) for row in paper_table("frontier").where(training="instruction"))


_DEEPSEEK = "DeepSeek-R1-7B"


def _step_gap() -> float:
    by_unit = {row["unit"]: number(row["necessity"]) for row in paper_table("steps_and_tokens").where(model=_DEEPSEEK)}
    return by_unit["step"] - by_unit["token"]


RECOMPUTED: dict[str, Callable[[], float]] = {
    "attention_configurations": lambda: len(dependence().pairs),
    "crossings": lambda: len(dependence().crossings),
    "crossings_percent": lambda: 100 * len(dependence().crossings) / len(dependence().pairs),
    "max_gap_pp": max_gap,
    "delete_exceeds_percent": lambda: 100 * defined(dependence(text_length="short").first_exceeds),
    "median_gap_short_pp": lambda: 100 * defined(dependence(text_length="short").median_gap),
    "mean_gap_short_pp": lambda: 100 * defined(dependence(text_length="short").mean_gap),
    "long_text_reversed": _long_text_reversed,
    "largest_sst2_gap_pp": _largest_sst2_gap,
    "comparison_smallest_gap_pp": _comparison_smallest_gap,
    "delete_configurations": lambda: len(under("delete")),
    "anti_faithful_delete": lambda: len(anti_faithful(under("delete"))),
    "anti_faithful_gradient_share": _gradient_share,
    "attention_wins_sst2": lambda: sum(_attention_wins("sst2", "delete", "infill")),
    "attention_wins_esnli_delete": lambda: _share(_attention_wins("esnli", "delete")),
    "llama32_esnli_gradient_rise_pp": lambda: _gradient_rise("Llama-3.2-3B", "esnli"),
    "gradient_wins_ag_news_delete": lambda: _attention_wins("ag_news", "delete").count(False),
    "highest_delete": lambda: _highest("delete"),
    "highest_infill": lambda: _highest("infill"),
    "llama31_sst2_near_random": _llama_near_random,
    "known_faithful_lowest": _known_faithful_lowest,
    "known_faithful_gap_pp": lambda: 100 * max(abs(gap) for gap in _known_faithful().gaps),
    "multilingual_lowest": lambda: min(_multilingual_rates()),
    "multilingual_highest": lambda: max(_multilingual_rates()),
    "german_lowest_delete": lambda: min(_language_rates("german")),
    "german_highest_delete": lambda: max(_language_rates("german")),
    "chinese_lowest_delete": lambda: min(_language_rates("chinese")),
    "chinese_highest_delete": lambda: max(_language_rates("chinese")),
    "mask_ratio_attention": lambda: min(_mask_ratios("attention")),
    "mask_ratio_gradient": lambda: min(_mask_ratios("gradient")),
    "k_german_gradient_best": lambda: _best_k("GPT-2", "german", "gradient"),
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
    "eraser_printed_disagreements": _eraser_disagreements,
    "contamination_sst2_percent": lambda: _contamination("sst2"),
    "contamination_ag_news_percent": lambda: _contamination("ag_news"),
    "contamination_esnli_percent": lambda: _contamination("esnli"),
    "worked_nsr_delete": lambda: _worked_nsr("delete"),
    "worked_nsr_infill": lambda: _worked_nsr("infill"),
    "worked_words": _worked_words,
    "intervals_around_win_rate": _intervals_around,
    "instruction_model_src": _instruction_model_src,
    "step_gap_deepseek": _step_gap,
}
"""By the id of a claim."""
