"""What operators agree on, from outcomes whose answers are known by hand."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr
from sklearn.metrics import cohen_kappa_score
from tests.made_records import settings, summary_line

from ice_eval import stats
from ice_eval.records import Span
from ice_eval.results import Configuration, InputRow
from ice_eval.results import agreements as sources
from ice_eval.results.agreements import N_NAMED, kappas
from ice_eval.results.examples import Examples
from ice_eval.results.outcomes import Outcomes
from ice_eval.results.summary import summarise
from ice_eval.stats import all_member_win_rates

CONFIG = settings(model="by-hand", task="letters", m=100)
WORDS = ["anti-faithful", "near-random", "weakly faithful", "faithful"]


def agreements(several, config):
    return sources.agreements(several, config)


def robustness(several, config):
    return list(sources.robustness(several, config))


def outcomes(rates, *, m=100, halves=None, groups=None, effect_sizes=None):
    """An outcome per win rate; None stands for an example that failed."""
    n = len(rates)
    sound = np.array([rate is not None for rate in rates])
    known = np.array([rate for rate in rates if rate is not None], dtype=np.float64)
    first, second = (known, known) if halves is None else np.asarray(halves)[sound].T
    same = {"m": m, "exact": 0, "tie_rate": 0, "p_value": 1, "p_lower": 1, "effect": 0.1, "score": 0.5}
    of_all = {"predicted": 1, "target": 1, "gold": 1, "n_units": 10, "score_full": 0.9, "score_empty": 0.1}
    shared = {name: np.full(n, value, dtype=np.float64) for name, value in of_all.items()}
    numbers = {
        **{name: np.full(len(known), value, dtype=np.float64) for name, value in same.items()},
        "win_rate": known,
        "win_rate_strict": known,
        "effect_size": known if effect_sizes is None else np.array(effect_sizes),
        "first_half": first,
        "second_half": second,
        **{name: np.full(len(known), np.nan) for name in ("m_effective", "n_fills", "effect_size_random")},
    }
    members = np.full(len(known), 101)
    # Of each rationale and 100 random sets that all differ.
    scores = np.concatenate([100 * known[:, None], np.broadcast_to(np.arange(100.0), (len(known), 100))], axis=1)
    families = all_member_win_rates(scores, members)
    errors = {index: "a score is not finite" for index in np.flatnonzero(~sound).tolist()}
    examples = examples_of(n, None if groups is None else tuple(groups))
    return Outcomes.of(examples, sound, numbers, families, members, errors, [(0, 1)] * len(known), shared)


@cache
def examples_of(n, groups):
    spans = tuple(Span("text", unit, unit + 1) for unit in range(10))
    same = {"spans": spans, "target": 1, "gold": 1}
    rows = [
        InputRow(f"e{index}", {"text": "abcdefghij"}, **same, group=None if groups is None else groups[index])
        for index in range(n)
    ]
    return Examples.of(rows)


def grouped(by_operator, *, attribution="mine", null="size", **more):
    cells = {operator: Configuration(attribution, operator, "sufficiency", 0.2, null) for operator in by_operator}
    return {cell: outcomes(by_operator[operator], **more) for operator, cell in cells.items()}


def around(mean, n=40, spread=0.05, seed=0):
    """Win rates with just this mean."""
    noise = np.random.default_rng(seed).normal(0, spread, n)
    return (mean + noise - noise.mean()).tolist()


def test_examples_on_opposite_sides_of_chance_disagree_and_the_widest_gap_comes_first():
    # With 100 sets a win rate is told from one half from 0.5 ± 0.098 on.
    first = [0.61, 0.90, 0.59, 0.30, 0.61, 0.50, 0.95, 0.40]
    second = [0.39, 0.10, 0.39, 0.80, 0.45, 0.00, 0.99, 0.61]
    [found] = agreements(grouped({"delete": first, "infill": second}), CONFIG)
    assert found.disagree == ("e1", "e3", "e0", "e7")
    assert found.disagree_rate == 4 / 8
    assert found.operators == ("delete", "infill") and found.n == 8
    assert found.gap == pytest.approx(np.mean(first) - np.mean(second))


def test_fewer_sets_disagree_less_surely():
    rates = {"delete": [0.7, 0.95], "infill": [0.3, 0.05]}
    for m, expected in ((10, ("e1",)), (40, ("e1", "e0"))):
        [found] = agreements(grouped(rates, m=m), CONFIG)
        assert found.disagree == expected


def test_no_more_examples_are_named_than_fit_and_all_are_counted():
    first, second = ([value + 0.001 * i for i in range(30)] for value in (0.7, 0.1))
    [found] = agreements(grouped({"delete": first, "infill": second}), CONFIG)
    assert len(found.disagree) == N_NAMED == 20
    assert found.disagree_rate == 1.0


def test_examples_that_failed_under_one_operator_are_left_out_of_both():
    rates = {"delete": [0.9, None, 0.9, 0.8], "infill": [0.1, 0.1, None, 0.7]}
    [found] = agreements(grouped(rates), CONFIG)
    assert (found.n, found.disagree) == (2, ("e0",))
    assert found.gap == pytest.approx((0.8 + 0.1) / 2)


def test_three_operators_have_three_pairs_and_one_word():
    rates = {"delete": around(0.8), "infill": around(0.7, seed=1), "mask-unk": around(0.3, seed=2)}
    found = list(agreements(grouped(rates), CONFIG))
    assert [line.operators for line in found] == [
        ("delete", "infill"),
        ("delete", "mask-unk"),
        ("infill", "mask-unk"),
    ]
    assert [line.crosses_threshold for line in found] == ["no", "yes", "yes"]
    [word] = robustness(grouped(rates), CONFIG)
    assert word.operators == ("delete", "infill", "mask-unk")
    assert (word.word, word.sides) == ("operator-dependent", ("above", "above", "below"))
    assert word.spread == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("means", "word", "sides"),
    [
        ((0.8, 0.7), "robust", ("above", "above")),
        ((0.3, 0.4), "weak under all operators", ("below", "below")),
        ((0.8, 0.3), "operator-dependent", ("above", "below")),
        ((0.8, 0.55), "inconclusive", ("above", "unclear")),
        ((0.55, 0.55), "inconclusive", ("unclear", "unclear")),
        ((0.8, 0.3, 0.55), "operator-dependent", ("above", "below", "unclear")),
        ((0.8, 0.7, 0.55), "inconclusive", ("above", "above", "unclear")),
    ],
)
def test_the_word_on_all_operators_follows_from_their_sides(means, word, sides):
    rates = {f"operator-{i}": around(mean, seed=i) for i, mean in enumerate(means)}
    [found] = robustness(grouped(rates), CONFIG)
    assert (found.word, found.sides) == (word, sides)
    assert found.spread == pytest.approx(max(means) - min(means))


def test_one_operator_agrees_with_nothing():
    one = grouped({"delete": around(0.7)})
    assert list(agreements(one, CONFIG)) == [] and list(robustness(one, CONFIG)) == []
    summary = summarise(one, CONFIG)
    assert (summary.agreement, summary.robustness, summary.kappa) == ((), (), ())


def test_operators_that_share_no_example_have_a_record_without_numbers():
    none = grouped({"delete": [0.9, None], "infill": [None, 0.9]})
    [pair], [word] = agreements(none, CONFIG), robustness(none, CONFIG)
    assert pair.n == word.n == 0
    assert all(
        getattr(pair, name) is None
        for name in ("gap", "gap_ci", "rank_correlation_ceiling", "disagree_rate", "disagree")
    )
    assert word.word is word.spread is word.sides is None


def test_the_average_over_operators_is_no_operator():
    several = grouped({"delete": around(0.7), "infill": around(0.6), "all": around(0.9)})
    assert [line.operators for line in agreements(several, CONFIG)] == [("delete", "infill")]
    assert [line.operators for line in robustness(several, CONFIG)] == [("delete", "infill")]
    assert [line.operators for line in summarise(several, CONFIG).kappa] == [("delete", "infill")]


def test_attributions_and_nulls_have_records_of_their_own():
    several = grouped({"delete": around(0.7), "infill": around(0.65)})
    several |= grouped({"delete": around(0.7), "infill": around(0.2)}, null="position")
    several |= grouped({"delete": around(0.2), "infill": around(0.2)}, attribution="other")
    found = [(line.attribution, line.null, line.word) for line in robustness(several, CONFIG)]
    assert found == [
        ("mine", "size", "robust"),
        ("mine", "position", "operator-dependent"),
        ("other", "size", "weak under all operators"),
    ]
    assert len(list(agreements(several, CONFIG))) == 3


def test_the_ceiling_is_one_where_the_null_adds_no_noise_and_follows_from_its_halves():
    rates = {"delete": around(0.7), "infill": around(0.6, seed=1)}
    [sure] = agreements(grouped(rates), CONFIG)
    assert sure.rank_correlation_ceiling == pytest.approx(1.0)
    rng = np.random.default_rng(5)
    cells = grouped(rates)
    reliabilities = []
    for cell, found in cells.items():
        halves = found.column("win_rate")[:, None] + rng.normal(0, 0.05, (40, 2))
        r = spearmanr(*halves.T).statistic
        reliabilities.append(2 * r / (1 + r))
        cells[cell] = outcomes(rates[cell.operator], halves=halves)
    [noisy] = agreements(cells, CONFIG)
    assert 0.2 < noisy.rank_correlation_ceiling < 0.9
    assert noisy.rank_correlation_ceiling == pytest.approx(math.prod(reliabilities) ** 0.5)
    assert noisy.rank_correlation == sure.rank_correlation


def lines(words, **more):
    """Lines of a summary, one for each (operator, attribution), by their words."""
    return [
        summary_line(attribution=f"a{i}", operator=operator, taxonomy=word, **more)
        for operator, several in words.items()
        for i, word in enumerate(several)
    ]


def test_kappa_is_cohens_with_linear_weights_over_configurations():
    rng = np.random.default_rng(3)
    first, second = ([WORDS[i] for i in rng.integers(0, 4, 30)] for _ in range(2))
    second[:15] = first[:15]
    [found] = kappas([lines({"delete": first, "infill": second})])
    numbers = [[WORDS.index(word) for word in words] for words in (first, second)]
    assert found.kappa == pytest.approx(cohen_kappa_score(*numbers, weights="linear"))
    assert (found.operators, found.n_configurations) == (("delete", "infill"), 30)


def test_kappa_by_hand():
    same, swapped = WORDS * 2, [WORDS[0], WORDS[1], WORDS[3], WORDS[2]] * 2
    three = kappas([lines({"delete": same, "infill": same, "mask-unk": swapped})])
    assert [(line.operators, line.kappa) for line in three] == [
        (("delete", "infill"), 1.0),
        # One step apart in half of the configurations; by chance 1.25 steps apart on average.
        (("delete", "mask-unk"), pytest.approx(1 - 0.5 / 1.25)),
        (("infill", "mask-unk"), pytest.approx(1 - 0.5 / 1.25)),
    ]


def test_kappa_is_over_the_configurations_that_both_have():
    found = lines({"delete": WORDS, "infill": WORDS[:2]}) + lines({"all": WORDS}) + lines({"infill": [None]}, k=0.3)
    [pair] = kappas([found])
    assert (pair.n_configurations, pair.kappa) == (2, 1.0)


def test_kappa_without_a_second_word_is_null():
    [pair] = kappas([lines({"delete": WORDS[:1] * 3, "infill": WORDS[:1] * 3})])
    assert (pair.n_configurations, pair.kappa) == (3, None)


def test_p_values_of_a_run_are_adjusted_together():
    several = {}
    for i, mean in enumerate((0.5, 0.52, 0.55, 0.6)):
        rates = {"delete": around(mean, spread=0.1, seed=i), "infill": around(mean - 0.01, spread=0.1, seed=i + 9)}
        several |= grouped(rates, attribution=f"a{i}")
    several |= grouped({"delete": [None] * 40, "infill": [None] * 40}, attribution="failed")
    found = summarise(several, replace(CONFIG, adaptive="examples")).configurations
    tested = [line for line in found if line.attribution != "failed"]
    p_values = [line.p_value for line in tested]
    assert len({round(p, 6) for p in p_values}) > 4
    adjusted = [line.p_adjusted for line in tested]
    # Operators of one attribution swap the same sets; different attributions are combined as if independent.
    assert all(p <= joint + 2e-4 for p, joint in zip(p_values, adjusted, strict=True))
    assert all(joint <= holm + 0.01 for joint, holm in zip(adjusted, stats.adjusted(np.array(p_values)), strict=True))
    assert sorted(adjusted) == [adjusted[place] for place in np.argsort(p_values, kind="stable")]
    assert [line.p_adjusted for line in found if line.attribution == "failed"] == [None, None]


# --- examples that share a passage --------------------------------------------------------------------------------


def test_examples_of_one_group_count_as_one_observation():
    rng = np.random.default_rng(8)
    sizes = [1, 2, 3, 6] * 8
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    level = np.repeat(rng.uniform(0.3, 0.9, len(sizes)), sizes)
    rates = np.clip(level + rng.normal(0, 0.03, len(groups)), 0, 1).tolist()
    cell = Configuration("mine", "delete", "sufficiency", 0.2)
    config = replace(CONFIG, adaptive="examples")
    [alone] = summarise({cell: outcomes(rates)}, config).configurations
    [shared] = summarise({cell: outcomes(rates, groups=groups)}, config).configurations
    assert shared.win_rate == alone.win_rate
    assert shared.win_rate_ci == stats.mean_interval(np.array(rates), groups=groups)
    widths = [line.win_rate_ci[1] - line.win_rate_ci[0] for line in (alone, shared)]
    assert widths[1] > 1.5 * widths[0]
    assert shared.p_value > alone.p_value
    assert shared.detectable_win_rate > alone.detectable_win_rate
    assert "grouped" in shared.flags
    assert "grouped" not in alone.flags


def test_groups_of_one_change_nothing():
    cell = Configuration("mine", "delete", "sufficiency", 0.2)
    rates, config = around(0.6, n=30), replace(CONFIG, adaptive="examples")
    own = outcomes(rates, groups=[f"g{i}" for i in range(30)])
    assert summarise({cell: own}, config) == summarise({cell: outcomes(rates)}, config)


def test_an_example_without_a_group_stands_for_itself():
    cell = Configuration("mine", "delete", "sufficiency", 0.2)
    rates, config = around(0.6, n=30), replace(CONFIG, adaptive="examples")
    some = [f"g{i // 2}" if i < 10 else None for i in range(30)]
    named = [f"g{i // 2}" if i < 10 else f"own{i}" for i in range(30)]
    assert summarise({cell: outcomes(rates, groups=some)}, config) == summarise(
        {cell: outcomes(rates, groups=named)}, config
    )


def test_gaps_between_operators_allow_for_groups_too():
    groups = [f"g{i // 5}" for i in range(100)]
    level = np.repeat(np.random.default_rng(2).normal(0, 0.2, 20), 5)
    rates = {"delete": (0.5 + level / 2).tolist(), "infill": (0.5 - level / 2).tolist()}
    [alone], [shared] = (agreements(grouped(rates, groups=each), CONFIG) for each in (None, groups))
    widths = [line.gap_ci[1] - line.gap_ci[0] for line in (alone, shared)]
    assert widths[1] > 1.7 * widths[0]


# --- attributions head to head ------------------------------------------------------------------------------------


def ranked(rates):
    """Rank attributions with these win rates under one operator."""
    several = {}
    for name, values in rates.items():
        several |= grouped({"delete": values}, attribution=name)
    return list(sources.rankings(several, CONFIG))


def test_attributions_are_ranked_where_their_paired_differences_leave_no_doubt():
    rates = {"b": around(0.6, n=80), "a": around(0.8, n=80, seed=1), "c": around(0.59, n=80, seed=2)}
    [line] = ranked(rates)
    assert (str(line), line.operator) == ("a > b, c", "delete")
    assert [pair.attributions for pair in line.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    p_values = []
    for pair in line.pairs:
        first, second = (np.array(rates[name]) for name in pair.attributions)
        expected = stats.paired_difference(second, first, level=1 - 0.05 / 3)
        assert (pair.n, pair.difference) == (80, pytest.approx(first.mean() - second.mean()))
        assert pair.difference_ci == pytest.approx(expected.interval)
        p_values.append(expected.p_value)
    assert [pair.p_adjusted for pair in line.pairs] == pytest.approx(stats.adjusted(np.array(p_values)).tolist())


def test_a_ranking_is_divided_only_where_all_before_are_ahead_of_all_after():
    rates = {"a": around(0.66, n=100), "b": around(0.62, n=100, seed=1), "c": around(0.58, n=100, seed=2)}
    noise = np.random.default_rng(3).normal(0, 0.12, (3, 100))
    noise -= noise.mean(axis=1, keepdims=True)
    rates = {name: (np.array(each) + own).tolist() for (name, each), own in zip(rates.items(), noise, strict=True)}
    [line] = ranked(rates)
    ahead = {pair.attributions: pair.difference_ci.low > 0 for pair in line.pairs}
    assert ahead == {("a", "b"): False, ("a", "c"): True, ("b", "c"): False}
    assert str(line) == "a, b, c"


def test_only_common_examples_are_compared_and_one_attribution_is_not_ranked():
    rates = {"a": [None, *around(0.8, n=39)], "b": [*around(0.5, n=39), None], "failed": [None] * 40}
    [line] = ranked(rates)
    assert [(pair.attributions, pair.n) for pair in line.pairs] == [(("a", "b"), 38)]
    assert ranked({"a": around(0.7), "failed": [None] * 40}) == []


def test_equal_attributions_are_seldom_ranked():
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(200):
        [line] = ranked({name: rng.beta(1.5, 1.0, 60).tolist() for name in "abc"})
        wrong += any(pair.difference_ci.low > 0 or pair.difference_ci.high < 0 for pair in line.pairs)
    assert binomtest(wrong, 200, 0.05, alternative="greater").pvalue > 0.001
