"""Statistics of win rates: numpy and scipy only, no idea what a language model is."""

from ice_eval.stats._groups import Groups
from ice_eval.stats.agreement import Agreement, Crossing, agreement
from ice_eval.stats.bootstrap import (
    Interval,
    Method,
    difference_interval,
    difference_interval_from_means,
    interval_from_means,
    mean_interval,
    resampled_means,
)
from ice_eval.stats.fdr import NonnullShare, SignificantRate, adjusted, nonnull_share, significant, significant_rate
from ice_eval.stats.randomization import (
    CHANCE,
    Comparison,
    Draws,
    MeanTest,
    compare,
    effect_size,
    lower_pvalue,
    mean_t_test,
    mean_test,
    member_win_rates,
    upper_pvalue,
)
from ice_eval.stats.sequential import STOP_AFTER, SequentialComparison, compare_sequentially
from ice_eval.stats.verdict import Taxonomy, detectable_win_rate, effect_word, excludes_chance, taxonomy, verdict

__all__ = [
    "Agreement",
    "CHANCE",
    "Comparison",
    "Crossing",
    "Draws",
    "Groups",
    "Interval",
    "MeanTest",
    "Method",
    "NonnullShare",
    "STOP_AFTER",
    "SequentialComparison",
    "SignificantRate",
    "Taxonomy",
    "adjusted",
    "agreement",
    "compare",
    "compare_sequentially",
    "detectable_win_rate",
    "difference_interval",
    "difference_interval_from_means",
    "effect_size",
    "effect_word",
    "excludes_chance",
    "interval_from_means",
    "lower_pvalue",
    "mean_interval",
    "mean_t_test",
    "mean_test",
    "member_win_rates",
    "nonnull_share",
    "resampled_means",
    "significant",
    "significant_rate",
    "taxonomy",
    "upper_pvalue",
    "verdict",
]
