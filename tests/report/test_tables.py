from dataclasses import replace

import pytest
from tests.made_records import manifest, robustness_line

from ice_eval.report import (
    FORMATS,
    agreement_table,
    cost_table,
    notes,
    plan_table,
    robustness_table,
    summary_table,
    tables,
)
from ice_eval.report.sentences import lead
from ice_eval.results.records import RunCost
from ice_eval.results.summary import simultaneous
from ice_eval.table import written

ALWAYS = ("attribution", "operator", "n", "win rate", "95 % CI", "effect", "p", "p adj.", "verdict")


def columns(table):
    """Header -> cells."""
    return dict(zip(table.header, zip(*table.rows, strict=True), strict=True))


def test_a_configuration_reads_as_its_numbers(summary):
    table = summary_table([summary()])
    assert table.title == "Faithfulness"
    assert table.header == ALWAYS
    assert table.rows == (
        ("gradient", "delete", "60", "73.2 %", "[68.1, 78.5]", "+0.46 [+0.36, +0.57]", "0.0001", "0.0004", "faithful"),
    )


PAPER = ("attribution", "operator", "n", "WR", "95 % CI", "NSR (Suf.)", "sig. rate", "d_null")
ONE = {
    "win_rate": 0.732, "nsr_mean": 0.6174, "significant_rate": 0.114, "effect_size_median": 2.5, "taxonomy": "faithful",
}  # fmt: skip


def test_the_columns_of_the_paper_are_shown_where_they_are_asked_for(summary):
    table = summary_table([summary(ONE)], columns="paper")
    assert table.header == (*PAPER, "word (estimate)"), "p-values of our own adjustment are not the paper's"
    assert table.rows == (
        ("gradient", "delete", "60", "73.2 %", "[68.1, 78.5]", "0.617", "11.4 %", "+2.50", "faithful"),
    )
    both = summary_table([summary(ONE, {**ONE, "direction": "necessity"})], columns="paper")
    assert "NSR" in both.header and "NSR (Suf.)" not in both.header
    undefined = summary({**ONE, "nsr_mean": None, "significant_rate": None})
    assert summary_table([undefined], columns="paper").rows[0][5:7] == ("–", "–")
    assert any("sig. rate" in note for note in notes(summary(ONE), columns="paper"))
    assert not any("sig. rate" in note for note in notes(summary(ONE)))


@pytest.mark.parametrize("name", ["paper", "released"])
def test_the_columns_of_the_paper_are_those_of_its_protocols(summary, name):
    control = {**ONE, "attribution": "random", "tie_rate": 0.88}
    run = summary({**ONE, "flags": [f"protocol_{name}"], "p_adjusted": 0.02}, control)
    run = replace(run, configurations=tuple(replace(x, flags=(f"protocol_{name}",)) for x in run.configurations))
    assert summary_table([run]).header == (*PAPER, "p (BH)", "word (estimate)")
    assert columns(summary_table([run]))["word (estimate)"] == ("faithful", "control, expected 6 %"), "ties are lost"
    assert summary_table([run], columns="default").header == ALWAYS
    assert summary_table([run, summary(ONE)]).header[-1] == "verdict", "runs of several protocols are shown in ours"
    assert "follows the win rate alone" in lead([run]) and "read at 0.10" in lead([run])
    assert "whole 95 % interval" in lead([summary(ONE)])


@pytest.mark.parametrize(
    ("name", "values", "cells"),
    [
        ("model", ["toy", "gpt2"], ("toy", "gpt2")),
        ("task", ["demo", "sst2"], ("demo", "sst2")),
        ("direction", ["sufficiency", "necessity"], ("sufficiency", "necessity")),
        ("k", [0.1, 0.2], ("0.1", "0.2")),
        ("null", ["size", "contiguity"], ("size", "contiguity")),
    ],
)
def test_a_column_that_varies_is_shown_and_no_other(summary, name, values, cells):
    table = summary_table([summary(*({name: value} for value in values))])
    assert set(table.header) - set(ALWAYS) == {name}
    assert columns(table)[name] == cells


@pytest.mark.parametrize(
    ("name", "value", "cell"),
    [
        ("direction", "necessity", "necessity"),
        ("null", "frequency", "frequency"),
        ("k", 0.5, "0.5"),
        ("k", None, "own"),
    ],
)
def test_a_setting_that_nobody_would_assume_is_shown(summary, name, value, cell):
    [rates, pairs] = tables([summary({name: value}, {name: value}, agreements=[{name: value}])])
    assert set(rates.header) - set(ALWAYS) == {name}
    assert columns(rates)[name] == (cell, cell) and columns(pairs)[name] == (cell,)


def test_what_differs_between_runs_is_shown(summary):
    table = summary_table([summary({"model": "toy"}), summary({"model": "gpt2"}, {"model": "gpt2"})])
    assert columns(table)["model"] == ("toy", "gpt2", "gpt2")


def test_values_that_are_undefined_read_as_a_dash(summary):
    names = ("win_rate", "win_rate_ci", "p_value", "p_adjusted", "verdict")
    table = summary_table([summary(dict.fromkeys(names), {})])
    assert table.rows[0] == ("gradient", "delete", "60", "–", "–", "–", "–", "–", "–")
    assert "–" not in table.rows[1]


def test_a_single_example_has_no_p_value(summary):
    one = summary({"n": 1, "p_value": 1.0, "p_adjusted": 1.0, "win_rate_ci": None, "verdict": None})
    table = summary_table([one])
    assert [table.rows[0][table.header.index(name)] for name in ("p", "p adj.")] == ["–", "–"]


def test_agreement_reads_as_gap_interval_and_words(summary):
    table = agreement_table([summary(agreements=[{}])])
    assert table.header == (
        "attribution", "operators", "gap", "95 % CI", "crosses 55 %", "same word", "rank corr. (ceiling)",
        "disagree",
    )  # fmt: skip
    assert table.rows == (
        ("gradient", "delete − infill", "+4.6 pp", "[-1.2, +10.3]", "no", "yes", "0.41 (0.93)", "12.5 %"),
    )


def test_agreement_that_is_undefined_reads_as_a_dash(summary):
    names = (
        "gap", "gap_ci", "crosses_threshold", "same_taxonomy", "rank_correlation", "rank_correlation_ceiling",
        "disagree_rate",
    )  # fmt: skip
    table = agreement_table([summary(agreements=[dict.fromkeys(names), {"same_taxonomy": False}])])
    assert table.rows[0][2:] == ("–", "–", "–", "–", "– –", "–")
    assert table.rows[1][5] == "no"


def test_one_operator_alone_has_no_agreement(summary):
    assert agreement_table([summary()]).rows == ()


def robust(**changes):
    made = {"attribution": "gradient", "n": 60, "word": "robust", "spread": 0.0456, "sides": ("above", "above")}
    return robustness_line(**{**made, **changes})


def test_the_word_on_all_operators_reads_with_the_side_of_each(summary):
    found = summary(robustness=[robust()])
    table = robustness_table([found])
    assert table.title == "Over all operators"
    assert table.header == ("attribution", "against 55 % (95 % intervals)", "spread", "conclusion")
    assert table.rows == (("gradient", "delete above, infill above", "4.6 pp", "robust"),)


def test_the_word_on_no_example_reads_as_a_dash(summary):
    found = summary(robustness=[robust(word=None, spread=None, sides=None), robust(null="position")])
    table = robustness_table([found])
    assert table.header == ("attribution", "null", "against 55 % (95 % intervals)", "spread", "conclusion")
    assert table.rows[0] == ("gradient", "size", "–", "–", "–")


def test_tables_without_a_row_are_left_out(summary):
    assert [table.title for table in tables([summary()])] == ["Faithfulness"]
    found = summary(agreements=[{}], robustness=[robust()])
    assert [table.title for table in tables([found])] == ["Faithfulness", "Operator agreement", "Over all operators"]


def test_p_values_of_several_runs_are_adjusted_together(summary):
    one = summary({"p_value": 0.001, "p_adjusted": 0.0015}, {"p_value": 0.02, "p_adjusted": 0.025})
    other = summary({"p_value": 0.04, "p_adjusted": 0.05}, {"p_value": 0.3, "p_adjusted": 0.3})
    expected = [4 * 0.001, 3 * 0.02, 2 * 0.04, 0.3]  # Holm
    assert columns(summary_table([one, other]))["p adj."] == tuple(written(p, "p-value") for p in expected)


def test_p_values_of_one_run_are_adjusted_as_the_run_did(summary):
    """Draws of its tests are known there, which Holm does without."""
    one = summary({"p_value": 0.001, "p_adjusted": 0.0015}, {"p_value": 0.02, "p_adjusted": 0.025})
    assert columns(summary_table([one]))["p adj."] == ("0.0015", "0.0250")


@pytest.mark.parametrize(
    ("win_rate", "interval", "shown"),
    [
        (0.4, (0.3, 0.55), "-0.20 [-0.40, +0.10]"),
        (1.0, (0.9, 1.0), "+1.00 [+0.80, +1.00]"),
        (0.5, (0.0, 1.0), "+0.00 [-1.00, +1.00]"),
    ],
)
def test_effects_are_rank_biserial_and_have_their_interval(summary, win_rate, interval, shown):
    assert columns(summary_table([summary({"win_rate": win_rate, "win_rate_ci": interval})]))["effect"] == (shown,)


def test_where_sets_tie_the_rest_is_shown_and_what_could_be_reached(summary):
    tied = {"tie_rate": 0.3, "win_rate_untied": 0.9123, "win_rate_attainable": 0.85, "flags": ("ties",)}
    table = summary_table([summary(tied, {})])
    assert set(table.header) - set(ALWAYS) == {"of untied (at most)"}
    assert columns(table)["of untied (at most)"] == ("91.2 % (85.0 %)", "73.0 % (100.0 %)")
    assert "of untied (at most)" not in summary_table([summary({**tied, "flags": ()})]).header


def test_simultaneous_intervals_replace_those_of_single_rows(summary):
    several = [simultaneous(summary({}, {"attribution": "lime"}))]
    table = summary_table(several, simultaneous=True)
    assert table.header == tuple("95 % CI (simultaneous)" if name == "95 % CI" else name for name in ALWAYS)
    found = columns(table)
    assert found["95 % CI (simultaneous)"] == ("[59.1, 83.2]",) * 2
    assert found["effect"] == ("+0.46 [+0.18, +0.66]",) * 2
    assert found["verdict"] == ("weakly faithful",) * 2
    assert tables(several, simultaneous=True)[0] == table
    words = [row[table.header.index("verdict")] for row in table.words]
    assert words == ["weakly faithful"] * 2


def test_a_configuration_without_examples_has_no_simultaneous_interval_either(summary):
    names = ("win_rate", "win_rate_ci", "win_rate_ci_simultaneous", "verdict", "verdict_simultaneous")
    [line] = simultaneous(summary(dict.fromkeys(names))).configurations
    assert line.win_rate_ci is line.rank_effect_ci is line.verdict is None


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_the_word_on_all_operators(style, summary):
    found = summary(robustness=[robust()])
    assert "delete above" in FORMATS[style](robustness_table([found]))


def costing(**changes):
    """The manifest of a run, by what its attributions cost."""
    nothing = {name: {} for name in ("rows_by_kind", "attribution_seconds", "attribution_rows", "probe_tokens")}
    counts = {"rows": 1, "forwards": 1, "tokens": 1, "attribution_tokens": 0, "seconds": 1.0, "peak_memory": None}
    return manifest(cost=RunCost(**{**nothing, **counts, "answer_tokens": {}, **changes}))


def test_what_attributions_cost_is_shown_where_several_took_something():
    table = cost_table(
        costing(
            attribution_seconds={"attention": 3.21, "lime": 12.04, "random": 0.001},
            attribution_rows={"lime": 10_000},
            probe_tokens={"lime": 84_000},
        )
    )
    assert table.title == "What each attribution cost"
    assert table.header == ("attribution", "seconds", "probes", "tokens of probes")
    assert table.rows == (
        ("attention", "3.2", "–", "–"), ("lime", "12.0", "10,000", "84,000"), ("random", "0.0", "–", "–"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "found",
    [
        manifest(),
        costing(attribution_seconds={"attention": 1.61, "gradient": 1.62, "random": 0.0}),
        costing(attribution_seconds={"lime": 3.2, "random": 0.0}, attribution_rows={"lime": 99}),
    ],
    ids=["no cost", "one look", "one method"],
)
def test_a_single_cost_is_no_table(found):
    assert cost_table(found).rows == ()


def test_a_plan_reads_as_a_row_for_each_choice(plan):
    table = plan_table(plan)
    assert table.title == "toy on demo, cpu"
    assert table.rows[0] == (
        "as asked", "500", "50", "27,000", "1,234,567", "90.0", "12.3 MB", "± 3.0 pp", "54.4 %",
    )  # fmt: skip
    assert "dollars" not in table.header


def test_a_price_gives_dollars(plan):
    table = plan_table(plan, hourly_price=4)
    assert table.header[-1] == "dollars"
    assert [row[-1] for row in table.rows] == ["6.00", "1.33"]


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_a_plan(plan, style):
    assert "27,000" in FORMATS[style](plan_table(plan))
