"""Statistics of win rates, with numpy and scipy only.

Conventions: `groups` is one label per example, or None if all examples are independent. `rng` is the source of all
draws. Functions raise `DataError` for input that is empty, not finite, out of range or of unequal lengths; those on
padded matrices (`compare_all` and others) do not check their input.
"""

from ice_eval.stats._values import Groups, resampled_means
from ice_eval.stats.agreement import (
    Crossing,
    Robustness,
    Side,
    agreement,
    ceiling,
    kappa,
    reliability,
    robustness,
    sides_differ,
)
from ice_eval.stats.correlation import Correlation, correlate, correlation_pvalue, detectable_correlation
from ice_eval.stats.fdr import adjusted, adjusted_fdr, adjusted_known, nonnull_share, significant, significant_rate
from ice_eval.stats.fills import FillNoise, effect_sizes_by_fill, fill_noise, member_win_rates_by_fill
from ice_eval.stats.intervals import (
    Difference,
    Interval,
    difference_limits,
    effective_number,
    mean_interval,
    mean_pvalue,
    paired_difference,
    percentile_interval,
    unbounded_interval,
    unpaired_difference,
)
from ice_eval.stats.planning import (
    Spread,
    cheapest_fills,
    cheapest_m,
    detectable,
    detectable_win_rate,
    m_for_width,
    n_for_detectable,
    n_for_width,
    spread_of,
    standard_error,
)
from ice_eval.stats.randomization import (
    CHANCE,
    Comparison,
    Comparisons,
    Families,
    Matrix,
    MeanTest,
    all_member_win_rates,
    compare,
    compare_all,
    effect_size,
    effect_sizes,
    lower_pvalue,
    mean_test,
    mean_tests,
    member_win_rates,
    null_means,
    step_down,
    upper_pvalue,
)
from ice_eval.stats.reasoning import (
    GENUINE,
    KNOWN,
    NEEDED,
    PATTERNS,
    REASONED_ANEW,
    REASONING,
    REFERENCE_SHARE,
    REPRODUCES,
    SCAFFOLDING,
    Capacity,
    Pattern,
    Reasoning,
    ReasoningVerdict,
    adjusted_capacity,
    capacity,
    noise_beyond_repeats,
    reasoning_verdict,
    reasoning_word,
    step_reasoning_capacity,
)
from ice_eval.stats.sequential import STOP_AFTER, compare_all_sequentially, compare_sequentially
from ice_eval.stats.verdict import (
    ANTI_FAITHFUL,
    FAITHFUL,
    NEAR_RANDOM,
    NOT_DISTINGUISHABLE,
    POSITIVE,
    RANDOM,
    TAXONOMY,
    UNDECIDABLE,
    UNDECIDABLE_TIES,
    WEAKLY_FAITHFUL,
    WORDS,
    Taxonomy,
    Verdict,
    Word,
    excludes_chance,
    is_settled,
    point_verdict,
    reaches,
    taxonomy,
    verdict,
)

__all__ = [
    "ANTI_FAITHFUL", "CHANCE", "Capacity", "Comparison", "Comparisons", "Correlation", "Crossing", "Difference",
    "FAITHFUL", "Families", "FillNoise", "GENUINE", "Groups", "Interval", "KNOWN", "Matrix", "MeanTest", "NEAR_RANDOM",
    "NEEDED", "NOT_DISTINGUISHABLE", "PATTERNS", "POSITIVE", "Pattern", "RANDOM", "REASONED_ANEW", "REASONING",
    "REFERENCE_SHARE", "REPRODUCES", "Reasoning", "ReasoningVerdict", "Robustness", "SCAFFOLDING", "STOP_AFTER", "Side",
    "Spread", "TAXONOMY", "Taxonomy", "UNDECIDABLE", "UNDECIDABLE_TIES", "Verdict", "WEAKLY_FAITHFUL", "WORDS", "Word",
    "adjusted", "adjusted_capacity", "adjusted_fdr", "adjusted_known", "agreement", "all_member_win_rates", "capacity",
    "ceiling", "cheapest_fills", "cheapest_m", "compare", "compare_all", "compare_all_sequentially",
    "compare_sequentially", "correlate", "correlation_pvalue", "detectable", "detectable_correlation",
    "detectable_win_rate", "difference_limits", "effect_size", "effect_sizes", "effect_sizes_by_fill",
    "effective_number", "excludes_chance", "fill_noise", "is_settled", "kappa", "lower_pvalue", "m_for_width",
    "mean_interval", "mean_pvalue", "mean_test", "mean_tests", "member_win_rates", "member_win_rates_by_fill",
    "n_for_detectable", "n_for_width", "noise_beyond_repeats", "nonnull_share", "null_means", "paired_difference",
    "percentile_interval", "point_verdict", "reaches", "reasoning_verdict", "reasoning_word", "reliability",
    "resampled_means", "robustness", "sides_differ", "significant", "significant_rate", "spread_of", "standard_error",
    "step_down", "step_reasoning_capacity", "taxonomy", "unbounded_interval", "unpaired_difference", "upper_pvalue",
    "verdict",
]  # fmt: skip
