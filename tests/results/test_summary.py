"""Every number of a configuration, against the definitions written out slowly."""

import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, spearmanr
from scipy.stats import t as student

from ice_eval import stats
from ice_eval.results import rescore
from ice_eval.results.json_files import as_json

SETS = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3), (1, 4), (1, 5)]

CONFIGURATION_KEYS = [
    "model", "task", "attribution", "operator", "direction", "k", "n", "n_skipped", "accuracy", "win_rate",
    "win_rate_ci", "win_rate_strict", "tie_rate", "p_value", "effect_size", "effect_size_median", "nsr", "nsr_median",
    "significant_rate", "significant_reason", "nonnull_share", "nonnull_share_low", "weak_signal_rate",
    "negative_signal_rate", "win_rate_nsr_order", "detectable_win_rate", "taxonomy", "verdict", "flags",
]  # fmt: skip
AGREEMENT_KEYS = [
    "model", "task", "attribution", "k", "direction", "operators", "gap", "gap_ci", "crosses_threshold",
    "same_taxonomy",
]  # fmt: skip


def refuse_constant(name):
    pytest.fail(f"the file holds {name}, which is not JSON")


def read(folder):
    """The summary as it stands in its file, and the outcomes of examples as JSON holds them."""
    summary = json.loads((folder.path / "summary.json").read_text(), parse_constant=refuse_constant)
    return summary, [json.loads(json.dumps(as_json(line), allow_nan=False)) for line in folder.examples()]


def draw(book, n, *, seed=0, m=9, lift=0, operators=("delete",)):
    """Examples with random probabilities, the rationale's `lift` steps higher, and those probabilities by operator."""
    rng = np.random.default_rng(seed)
    books, truth = [], []
    for index in range(n):
        full, empty = rng.uniform(0.05, 0.95, size=2).round(4).tolist()
        gold = int(rng.integers(2))
        one = book(f"e{index}", gold=gold, m=m).reference(full=full, empty=empty)
        known = {"full": full, "empty": empty, "gold": gold, "predicted": int(full > 0.5)}
        for operator in operators:
            # The grid makes some values tie.
            null = (rng.integers(1, 40, size=m) / 41).tolist()
            value = min(int(rng.integers(1, 40)) + lift, 40) / 41
            one.null(SETS[:m], null, operator=operator).rationale((2, 3), value, operator=operator)
            known[operator] = (value, null)
        books.append(one)
        truth.append(known)
    return books, truth


def rate(value, null):
    return sum(1.0 if value > v + 1e-12 else 0.5 if abs(value - v) <= 1e-12 else 0.0 for v in null) / len(null)


def upper(value, null):
    return (1 + sum(v >= value - 1e-12 for v in null)) / (len(null) + 1)


def taxonomy(mean):
    bands = ((0.5, "anti-faithful"), (0.55, "near-random"))
    word = next((name for limit, name in bands if mean < limit), None)
    return word or ("weakly faithful" if mean <= 0.60 else "faithful")


def one_line(hand_made_run, books, **config):
    summary = rescore(hand_made_run(books, **config))
    [line] = summary.configurations
    return line


def test_means_and_rates_follow_the_definitions(book, hand_made_run):
    books, truth = draw(book, 60, lift=4)
    line = one_line(hand_made_run, books)
    compared = [t["delete"] for t in truth]
    rates = [rate(*pair) for pair in compared]
    signals = [t["full"] - t["empty"] for t in truth]
    assert (line.n, line.n_skipped) == (60, 0)
    assert line.win_rate == pytest.approx(statistics.fmean(rates), abs=1e-12)
    strict = [sum(v > n + 1e-12 for n in null) / len(null) for v, null in compared]
    ties = [sum(abs(v - n) <= 1e-12 for n in null) / len(null) for v, null in compared]
    assert line.win_rate_strict == pytest.approx(statistics.fmean(strict), abs=1e-12)
    assert line.tie_rate == pytest.approx(statistics.fmean(ties), abs=1e-12)
    assert statistics.fmean(ties) > 0
    effects = [(v - statistics.fmean(null)) / statistics.pstdev(null) for v, null in compared]
    assert line.effect_size == pytest.approx(statistics.fmean(effects), rel=1e-9)
    assert line.effect_size_median == pytest.approx(statistics.median(effects), rel=1e-9)
    random = [(null[0] - statistics.fmean(null[1:])) / statistics.pstdev(null[1:]) for _, null in compared]
    assert line.effect_size_random == pytest.approx(statistics.median(random), rel=1e-9)
    assert line.accuracy == pytest.approx(statistics.fmean(t["predicted"] == t["gold"] for t in truth), abs=1e-12)
    assert line.weak_signal_rate == pytest.approx(statistics.fmean(abs(s) < 0.05 for s in signals), abs=1e-12)
    assert line.negative_signal_rate == pytest.approx(statistics.fmean(s < 0 for s in signals), abs=1e-12)
    assert 0 < line.weak_signal_rate < 1 and 0 < line.negative_signal_rate < 1
    flipped = [1 - r if s < 0 else r for r, s in zip(rates, signals, strict=True)]
    assert line.win_rate_nsr_order == pytest.approx(statistics.fmean(flipped), abs=1e-12)
    families = [[v, *null] for v, null in compared]
    members = [[rate(v, [*family[:i], *family[i + 1 :]]) for i, v in enumerate(family)] for family in families]
    random = math.sqrt(sum(statistics.fmean((r - 0.5) ** 2 for r in each) for each in members)) / 60
    errors = student.ppf(0.975, 60 * 0.5 / 3) + 0.84
    observed = statistics.stdev(rates) / math.sqrt(60)
    assert line.detectable_win_rate == pytest.approx(0.5 + errors * max(random, observed), rel=1e-12)
    assert line.taxonomy == taxonomy(statistics.fmean(rates))


def test_nsr_of_the_data_set_is_a_ratio_of_sums(book, hand_made_run):
    books, truth = draw(book, 30, seed=4)
    line = one_line(hand_made_run, books)
    gains = [t["delete"][0] - t["empty"] for t in truth]
    signals = [t["full"] - t["empty"] for t in truth]
    assert line.nsr == pytest.approx(sum(gains) / sum(signals), rel=1e-9)
    strong = [g / s for g, s in zip(gains, signals, strict=True) if abs(s) >= 0.05]
    assert len(strong) < 30
    assert line.nsr_median == pytest.approx(statistics.median(strong), rel=1e-9)


def test_nsr_is_null_where_all_signals_cancel(book, hand_made_run):
    books = [book(f"e{i}").reference(full=p, empty=1 - p) for i, p in enumerate((0.7, 0.3))]
    for one in books:
        one.null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.45)
    line = one_line(hand_made_run, books)
    assert line.nsr is None
    assert line.nsr_median is not None


@pytest.mark.parametrize("n", [20, 60])
def test_the_interval_is_that_of_the_mean_and_the_verdict_follows_it(book, hand_made_run, n):
    books, truth = draw(book, n, lift=14)
    line = one_line(hand_made_run, books)
    assert line.win_rate_ci == stats.mean_interval(np.array([rate(*t["delete"]) for t in truth]))
    assert line.verdict == stats.verdict(line.win_rate_ci)


def test_the_p_value_is_that_of_swapped_rationales(book, hand_made_run):
    books, truth = draw(book, 60, seed=3, lift=2)
    line = one_line(hand_made_run, books)
    families = []
    for t in truth:
        values = [t["delete"][0], *t["delete"][1]]
        families.append([rate(v, values[:i] + values[i + 1 :]) for i, v in enumerate(values)])
    table = np.array(families)

    def studentized(rates):
        return (rates.mean(axis=-1) - 0.5) / (rates.std(axis=-1, ddof=1) / math.sqrt(rates.shape[-1]))

    rng = np.random.default_rng(5)
    chosen = rng.integers(0, 10, size=(20_000, 60))
    null = np.abs(studentized(table[np.arange(60), chosen]))
    expected = float(np.mean(null >= abs(studentized(table[:, 0])) - 1e-9))
    assert 0.02 < expected < 0.6  # a value that a one-sided or unstudentized test would miss
    assert line.p_value == pytest.approx(expected, abs=0.02)


def test_nonnull_share_is_storeys_estimate(book, hand_made_run):
    books, truth = draw(book, 60, lift=12)
    line = one_line(hand_made_run, books)
    p_values = [upper(*t["delete"]) for t in truth]
    above = sum(p > 0.5 for p in p_values)
    expected = 60 * 5 / 10  # of the values 0.1, 0.2, …, 1 five lie above one half
    assert line.nonnull_share == pytest.approx(1 - above / expected, rel=1e-9)
    assert 0 < line.nonnull_share < 1
    limit = beta.ppf(0.95, above + 1, 60 - above)
    assert line.nonnull_share_low == pytest.approx(max(0.0, 1 - limit * 60 / expected), rel=1e-9)


def test_significant_rate_is_null_when_too_few_examples_reach_the_floor(book, hand_made_run):
    null = [0.1 + 0.08 * i for i in range(9)]
    values = [0.95] * 16 + [0.05] * 4
    books = [book(f"e{i}", m=9).reference().null(SETS, null).rationale((2, 3), v) for i, v in enumerate(values)]
    line = one_line(hand_made_run, books)
    # 16 p-values of 1/10, and Benjamini-Hochberg asks for 0.1 * 16/20 at most.
    assert line.significant_rate is None
    assert "nothing is rejected unless 100.0 % of the examples reach it" in line.significant_reason


def test_significant_rate_counts_rejections(book, hand_made_run):
    every = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    sets = [s for s in every if s != (4, 5)]
    books = []
    for index in range(20):
        value = 0.95 if index < 15 else 0.05
        null = [0.1 + 0.05 * i for i in range(14)]
        books.append(book(f"e{index}", m=14).reference().null(sets, null).rationale((4, 5), value))
    line = one_line(hand_made_run, books)
    p_values = sorted([1 / 15] * 15 + [1.0] * 5)
    rejected = max((j for j in range(1, 21) if p_values[j - 1] <= 0.10 * j / 20 + 1e-12), default=0)
    assert rejected == 15
    assert (line.significant_rate, line.significant_reason) == (15 / 20, None)
    # The other tail is a family of its own: five p-values of 1/15 are too few there.
    assert line.significant_rate_lower is None


def test_significant_rate_is_null_with_the_reason_when_m_is_small(book, hand_made_run):
    books = [
        book(f"e{i}", m=4).reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9) for i in range(8)
    ]
    line = one_line(hand_made_run, books)
    assert line.significant_rate is None
    assert "nothing can be rejected; at least 9 random sets are needed" in line.significant_reason


@pytest.mark.parametrize(("n", "word"), [(6, "not distinguishable from random"), (20, "faithful")])
def test_win_rates_that_are_all_one_have_a_lower_limit(book, hand_made_run, n, word):
    null = [0.2, 0.3, 0.4, 0.5]
    books = [book(f"e{i}").reference().null(SETS[:4], null).rationale((2, 3), 0.9) for i in range(n)]
    line = one_line(hand_made_run, books)
    assert line.win_rate_ci == stats.mean_interval(np.ones(n))
    assert (line.taxonomy, str(line.verdict)) == ("faithful", word)


def test_win_rates_that_are_all_zero_mirror_it(book, hand_made_run):
    null = [0.2, 0.3, 0.4, 0.5]
    books = [book(f"e{i}").reference().null(SETS[:4], null).rationale((2, 3), 0.1) for i in range(20)]
    line = one_line(hand_made_run, books)
    assert line.win_rate_ci == pytest.approx((0.0, 1 - stats.mean_interval(np.ones(20)).low))
    assert (line.taxonomy, str(line.verdict), line.excludes_chance) == ("anti-faithful", "anti-faithful", True)


def test_one_example_says_next_to_nothing(book, hand_made_run):
    line = one_line(hand_made_run, [book("e").reference().null(SETS[:4], [0.2] * 4).rationale((2, 3), 0.9)])
    low, high = line.win_rate_ci
    assert (low < 0.02, high, line.p_value) == (True, 1.0, pytest.approx(1, abs=0.9))
    assert (str(line.verdict), line.excludes_chance) == ("not distinguishable from random", False)


def test_many_examples_with_equal_win_rates_have_a_verdict(book, hand_made_run):
    null = [0.2, 0.3, 0.4, 0.5]
    books = [book(f"e{i}").reference().null(SETS[:4], null).rationale((2, 3), 0.45) for i in range(60)]
    line = one_line(hand_made_run, books)
    assert (line.win_rate, str(line.verdict)) == (0.75, "faithful")
    assert line.win_rate_ci == stats.mean_interval(np.full(60, 0.75))


def test_sets_that_tie_are_told_apart_from_those_that_are_beaten(book, hand_made_run):
    books = [
        book(f"e{i}").reference().null(SETS[:4], [0.5, 0.5, 0.5, 0.4 if i % 2 else 0.5]).rationale((2, 3), 0.5)
        for i in range(20)
    ]
    line = one_line(hand_made_run, books)
    assert (line.tie_rate, line.win_rate) == (0.875, 0.5625)
    assert (line.win_rate_untied, line.win_rate_attainable) == (1.0, 0.5625)
    assert str(line.verdict) == "undecidable: 88 % of sets tie"


def test_the_effect_is_the_rank_biserial_correlation(book, hand_made_run):
    books, truth = draw(book, 60, lift=4)
    line = one_line(hand_made_run, books)
    wins, losses = (
        statistics.fmean(statistics.fmean(turn * v > turn * n + 1e-12 for n in null) for v, null in compared)
        for turn, compared in ((1, [t["delete"] for t in truth]), (-1, [t["delete"] for t in truth]))
    )
    assert line.rank_effect == pytest.approx(wins - losses, abs=1e-12)
    assert line.rank_effect_ci == pytest.approx([2 * limit - 1 for limit in line.win_rate_ci])


def test_simultaneous_intervals_are_wider_the_more_configurations_there_are(book, hand_made_run):
    books, _ = draw(book, 60, m=4, lift=10, operators=("delete", "infill"))
    [alone] = rescore(hand_made_run(books, operators=["delete"])).configurations
    assert alone.win_rate_ci_simultaneous == pytest.approx(alone.win_rate_ci, abs=0.003)
    for line in rescore(hand_made_run(books, operators=["delete", "infill"])).configurations:
        inner, outer = line.win_rate_ci, line.win_rate_ci_simultaneous
        assert outer.low < inner.low and inner.high < outer.high
        assert line.verdict_simultaneous == stats.verdict(outer, tie_rate=line.tie_rate)


def test_an_interval_over_one_half_is_never_called_anti_faithful(book, hand_made_run):
    books, _ = draw(book, 12, seed=1)
    line = one_line(hand_made_run, books)
    low, high = line.win_rate_ci
    assert low < 0.5 < high
    assert (str(line.verdict), line.excludes_chance) == ("not distinguishable from random", False)


def test_a_verdict_that_depends_on_negative_signals_is_flagged(book, hand_made_run):
    books = [
        book(f"e{i}").reference(full=0.2, empty=0.8).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9)
        for i in range(10)
    ]
    line = one_line(hand_made_run, books)
    assert (line.win_rate, line.win_rate_nsr_order, line.negative_signal_rate) == (1.0, 0.0, 1.0)
    assert "depends_on_score_order" in line.flags


def test_a_verdict_that_does_not_is_not(book, hand_made_run):
    books, _ = draw(book, 12, seed=1)
    assert "depends_on_score_order" not in one_line(hand_made_run, books).flags


def test_undefined_effect_sizes_are_counted_and_left_out(book, hand_made_run):
    flat = [book(f"f{i}").reference().null(SETS[:4], [0.3] * 4).rationale((2, 3), 0.6) for i in range(3)]
    spread = [book(f"s{i}").reference().null(SETS[:4], [0.2, 0.4, 0.2, 0.4]).rationale((2, 3), 0.5) for i in range(2)]
    line = one_line(hand_made_run, flat + spread)
    assert (line.effect_size_undefined, line.n) == (3, 5)
    assert line.effect_size == line.effect_size_median == pytest.approx((0.5 - 0.3) / 0.1)


def test_without_any_defined_effect_size_it_is_null(book, hand_made_run):
    books = [book(f"f{i}").reference().null(SETS[:4], [0.3] * 4).rationale((2, 3), 0.6) for i in range(3)]
    line = one_line(hand_made_run, books)
    assert (line.effect_size, line.effect_size_median, line.effect_size_undefined) == (None, None, 3)


def test_accuracy_is_null_without_gold_and_counts_only_gold(book, hand_made_run):
    def one(name, gold, full):
        return book(name, gold=gold).reference(full=full).null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6)

    assert one_line(hand_made_run, [one("a", None, 0.9), one("b", None, 0.1)]).accuracy is None
    mixed = [one("a", 1, 0.9), one("b", 1, 0.1), one("c", None, 0.1), one("d", 0, 0.1)]
    assert one_line(hand_made_run, mixed).accuracy == pytest.approx(2 / 3)


def test_examples_with_an_error_are_counted_and_not_averaged(book, hand_made_run):
    good = [book(f"g{i}").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.45) for i in range(4)]
    nan = book("nan").reference().null(SETS[:4], [0.2, 0.3, 0.4, (math.nan,) * 2]).rationale((2, 3), 0.9)
    short = book("short", n_units=1)
    short.skip_reason = "the text has one unit, so there is no other set to compare with"
    no_vector = book("vector", mine=(math.nan,) * 6).reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5])
    folder = hand_made_run([nan, *good, short, no_vector])
    summary = rescore(folder)
    _, lines = read(folder)
    [line] = summary.configurations
    assert (line.n, line.n_skipped) == (4, 3)
    assert line.win_rate == 0.75
    errors = {entry["example_id"]: entry["error"] for entry in lines if "error" in entry}
    assert errors == {
        "nan": "a score is not finite",
        "short": short.skip_reason,
        "vector": "the attribution 'mine' is not finite",
    }
    assert [entry["example_id"] for entry in lines] == ["nan", "g0", "g1", "g2", "g3", "short", "vector"]


def test_a_configuration_without_examples_has_every_field_and_no_number(book, hand_made_run):
    good = [book(f"g{i}").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6) for i in range(2)]
    folder = hand_made_run(good, attributions=["mine", "absent"])
    rescore(folder)
    summary, _ = read(folder)
    mine, absent = summary["configurations"]
    assert list(absent) == list(mine)
    assert (absent["n"], absent["n_skipped"], absent["flags"]) == (0, 2, ["no_examples"])
    assert all(absent[name] is None for name in CONFIGURATION_KEYS[8:-1])


def test_few_examples_are_flagged(book, hand_made_run):
    for n, flagged in ((49, True), (50, False)):
        books, _ = draw(book, n, m=4)
        assert ("small_n" in one_line(hand_made_run, books).flags) == flagged


def test_ties_and_exact_tests_and_notes_of_the_run_are_flagged(book, hand_made_run):
    plain = [book(f"p{i}").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.6) for i in range(3)]
    assert one_line(hand_made_run, plain).flags == ("small_n",)
    tied = book("t").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.6]).rationale((2, 3), 0.6)
    assert one_line(hand_made_run, [*plain, tied]).flags == ("small_n", "ties")
    short = book("s", n_units=3).reference().null([(0,), (1,), (2,)], [0.2, 0.3, 0.6]).rationale((2,), 0.6)
    assert one_line(hand_made_run, [*plain, short]).flags == ("exact_for_some", "small_n")
    noted = one_line(hand_made_run, plain, flags=["blacklist_without_gold"])
    assert noted.flags == ("blacklist_without_gold", "small_n")


def test_every_combination_has_its_line_and_the_average_comes_last(book, hand_made_run):
    books, _ = draw(book, 4, m=4, operators=("delete", "infill"))
    for one in books:
        one.attributions["other"] = one.attributions["mine"]
        for operator in ("delete", "infill"):
            one.rationale((2, 3), 0.5, name="other", operator=operator)
    folder = hand_made_run(books, attributions=["mine", "other"], operators=["delete", "infill"], k=[1 / 3, 0.4])
    summary = rescore(folder)
    _, lines = read(folder)
    cells = [(c.attribution, c.operator, c.k) for c in summary.configurations]
    assert cells == [
        (attribution, operator, k)
        for attribution in ("mine", "other")
        for operator in ("delete", "infill", "all")
        for k in (1 / 3, 0.4)
    ]
    assert len(lines) == 4 * len(cells)
    pairs = [(a.attribution, a.k, a.operators) for a in summary.agreement]
    assert pairs == [(a, k, ("delete", "infill")) for a in ("mine", "other") for k in (1 / 3, 0.4)]


def test_one_operator_has_no_average_and_no_agreement(book, hand_made_run):
    books, _ = draw(book, 4, m=4)
    summary = rescore(hand_made_run(books))
    assert [c.operator for c in summary.configurations] == ["delete"]
    assert summary.agreement == ()


def test_the_average_over_operators_is_one_of_probabilities(book, hand_made_run):
    books, truth = draw(book, 30, operators=("delete", "infill"), lift=4)
    folder = hand_made_run(books, operators=["delete", "infill"])
    line = next(c for c in rescore(folder).configurations if c.operator == "all")
    rates = []
    for t in truth:
        (a, first), (b, second) = t["delete"], t["infill"]
        rates.append(rate((a + b) / 2, [(x + y) / 2 for x, y in zip(first, second, strict=True)]))
    assert line.win_rate == pytest.approx(statistics.fmean(rates), abs=1e-12)


def test_agreement_pairs_the_same_examples(book, hand_made_run):
    books, truth = draw(book, 60, operators=("delete", "infill"), lift=4)
    nan = book("nan", m=9).reference().null(SETS, [0.2] * 9).rationale((2, 3), 0.9)
    nan.null(SETS, [(math.nan,) * 2] * 9, operator="infill").rationale((2, 3), 0.9, operator="infill")
    summary = rescore(hand_made_run([nan, *books], operators=["delete", "infill"]))
    [found] = summary.agreement
    first, second = ([rate(*t[operator]) for t in truth] for operator in ("delete", "infill"))
    assert found.n == 60
    assert found.gap == pytest.approx(statistics.fmean(first) - statistics.fmean(second), abs=1e-12)
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    assert found.gap_ci == pytest.approx(stats.mean_interval(np.array(gaps), scale=(-1, 1)))
    assert found.rank_correlation == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)
    assert found.crosses_threshold == stats.agreement(np.array(first), np.array(second)).crosses_threshold
    by_operator = {c.operator: c for c in summary.configurations}
    words = {taxonomy(statistics.fmean(rates)) for rates in (first, second)}
    assert found.same_taxonomy == (len(words) == 1)
    assert by_operator["delete"].n == 61 and by_operator["infill"].n == 60


def test_operators_on_opposite_sides_of_the_threshold_cross_it(book, hand_made_run):
    books = []
    for index in range(40):
        one = book(f"e{index}").reference()
        one.null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9 if index % 8 else 0.45)
        one.null(SETS[:4], [0.2, 0.3, 0.4, 0.5], operator="infill")
        books.append(one.rationale((2, 3), 0.1 if index % 8 else 0.25, operator="infill"))
    [found] = rescore(hand_made_run(books, operators=["delete", "infill"])).agreement
    assert (found.crosses_threshold, found.same_taxonomy) == ("yes", False)
    assert found.gap == pytest.approx(0.96875 - 0.03125)


def test_agreement_without_a_common_example_is_null(book, hand_made_run):
    one = book("nan").reference().null(SETS[:4], [0.2, 0.3, 0.4, 0.5]).rationale((2, 3), 0.9)
    one.null(SETS[:4], [(math.nan,) * 2] * 4, operator="infill").rationale((2, 3), 0.9, operator="infill")
    folder = hand_made_run([one], operators=["delete", "infill"])
    [found] = rescore(folder).agreement
    assert found.n == 0
    assert all(getattr(found, name) is None for name in AGREEMENT_KEYS[6:])


def test_the_files_hold_the_fields_of_the_contract(book, hand_made_run):
    books, _ = draw(book, 20, m=4, operators=("delete", "infill"))
    nan = book("nan").reference().null(SETS[:4], [0.3] * 4).rationale((2, 3), (math.nan,) * 2)
    nan.null(SETS[:4], [0.3] * 4, operator="infill").rationale((2, 3), 0.3, operator="infill")
    folder = hand_made_run([*books, nan], operators=["delete", "infill"])
    returned = rescore(folder)
    summary, lines = read(folder)
    assert folder.summary() == returned
    fields = "schema configurations agreement robustness kappa rankings cut chains citations"
    assert list(summary) == fields.split()
    assert summary["schema"] == 3
    for line in summary["configurations"]:
        assert [key for key in line if key in CONFIGURATION_KEYS] == CONFIGURATION_KEYS
    for line in summary["agreement"]:
        assert [key for key in line if key in AGREEMENT_KEYS] == AGREEMENT_KEYS
    assert len(lines) == 21 * 3


def test_the_same_ledger_gives_the_same_bytes(book, hand_made_run):
    books, _ = draw(book, 20, m=4, operators=("delete", "infill"))
    folder = hand_made_run(books, operators=["delete", "infill"])
    rescore(folder)
    before = [(folder.path / name).read_bytes() for name in ("summary.json", "examples.parquet")]
    rescore(folder)
    assert [(folder.path / name).read_bytes() for name in ("summary.json", "examples.parquet")] == before


def test_numbers_do_not_depend_on_the_other_configurations(book, hand_made_run):
    books, _ = draw(book, 20, m=4, operators=("delete", "infill"))
    alone = rescore(hand_made_run(books, operators=["delete"])).configurations
    both = rescore(hand_made_run(books, operators=["delete", "infill"])).configurations
    # Only what is adjusted is about the family of all configurations.
    adjusted = {"p_adjusted": None, "win_rate_ci_simultaneous": None, "verdict_simultaneous": None}
    assert replace(alone[0], **adjusted) == replace(both[0], **adjusted)
    assert both[0].p_adjusted > alone[0].p_adjusted
    assert alone[0].p_adjusted == pytest.approx(alone[0].p_value, abs=2e-4)
