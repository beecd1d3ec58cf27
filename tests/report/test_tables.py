from dataclasses import replace

import pytest
from scipy.stats import false_discovery_control

from ice_eval import stats
from ice_eval.report import (
    FORMATS,
    agreement_table,
    cost_table,
    formatted,
    notes,
    plan_notes,
    plan_table,
    robustness_table,
    summary_table,
    tables,
)
from ice_eval.report.notes import FLAGS
from ice_eval.report.tables import interval, number, p_value, percent
from ice_eval.results import Choice, Plan

ALWAYS = ("attribution", "operator", "n", "win rate", "95 % CI", "median effect", "p", "p adj.", "verdict")


def columns(table):
    """Header -> cells."""
    return dict(zip(table.header, zip(*table.rows, strict=True), strict=True))


def test_a_configuration_reads_as_its_numbers(summary):
    table = summary_table([summary()])
    assert table.title == "Faithfulness"
    assert table.header == ALWAYS
    assert table.rows == (
        ("gradient", "delete", "60", "73.2 %", "[68.1, 78.5]", "+1.10 large", "0.0001", "0.0001", "faithful"),
    )


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
    names = ("win_rate", "win_rate_ci", "effect_size_median", "effect_word", "p_value", "verdict")
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


@pytest.mark.parametrize(
    ("value", "cell"), [(0.0, "0.0 %"), (0.5, "50.0 %"), (1.0, "100.0 %"), (0.99951, "100.0 %"), (None, "–")]
)
def test_rates_are_percent(value, cell):
    assert percent(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"), [(0.00012, "0.0001"), (0.0999, "0.0999"), (0.1, "0.10"), (1.0, "1.00"), (None, "–")]
)
def test_small_p_values_have_more_digits(value, cell):
    assert p_value(value) == cell


def test_effects_carry_their_sign():
    assert [number(value) for value in (1.234, -0.5, 0.0, None)] == ["+1.23", "-0.50", "+0.00", "–"]


def test_intervals_are_percent_and_signed_where_they_are_differences():
    assert interval([0.481, 0.55]) == "[48.1, 55.0]"
    assert interval([-0.01, 0.02], signed=True) == "[-1.0, +2.0]"
    assert interval(None) == "–"


def test_notes_give_accuracy_and_the_smallest_detectable_win_rate(summary):
    assert notes(summary()) == [
        "The model is right on 90.0 % of the examples.",
        "Smallest mean win rate told from chance with power 80 %: 58.0 %.",
    ]


def test_notes_give_a_range_where_configurations_differ(summary):
    found = notes(summary({"detectable_win_rate": 0.55}, {"detectable_win_rate": 0.6}, {"detectable_win_rate": None}))
    assert any(note.endswith("55.0 % to 60.0 %.") for note in found)


def test_notes_say_what_is_not_known(summary):
    assert notes(summary({"accuracy": None, "detectable_win_rate": None})) == [
        "Smallest mean win rate told from chance with power 80 %: unknown (one example, or no spread)."
    ]


def test_notes_say_how_few_effect_sizes_there_are(summary):
    found = notes(summary({"effect_word": None, "effect_size_undefined": 45}))
    assert "gradient under delete: effect sizes exist for 15 of 60 examples." in found


def test_notes_tell_of_skipped_examples_and_of_tests_that_cannot_reject(summary):
    reason = "no p-value can be small enough"
    found = notes(summary({"n_skipped": 3, "significant_reason": reason}, {"n_skipped": 1}))
    assert "3 examples take no part; examples.jsonl says why." in found
    together = "at this m they are significant only together, 19.6 % of them or more; raise m to speak of fewer."
    assert f"Single examples: {together}" in found


def test_notes_tell_of_a_single_skipped_example_in_the_singular(summary):
    found = notes(summary({"attribution": "a"}, {"attribution": "b", "n_skipped": 1}))
    assert "1 example takes no part for b; examples.jsonl says why." in found


def test_notes_explain_every_flag_once(summary):
    found = notes(summary({"flags": ["small_n", "ties"]}, {"flags": ["small_n"]}))
    assert [note for note in found if "small_n" in note] == [
        "Fewer than 50 examples: the intervals are rough. [small_n]"
    ]
    assert f"gradient under delete: {FLAGS['ties']} [ties]" in found  # it is about one row of two


def test_notes_say_when_no_win_rate_could_be_detected(summary):
    found = notes(summary({"detectable_win_rate": 0.92}, {"detectable_win_rate": 1.04}))
    assert "Smallest mean win rate told from chance with power 80 %: 92.0 % to none (too few examples)." in found


def test_notes_survive_a_run_without_examples(summary, line):
    empty = {
        name: None for name in line() if name not in {"model", "task", "attribution", "operator", "direction", "k"}
    }
    found = notes(summary({**empty, "n": 0, "n_skipped": 2, "flags": ["no_examples"]}))
    assert found == [
        "2 examples take no part; examples.jsonl says why.",
        "No example could be evaluated. [no_examples]",
    ]


# --- adjusted p-values, the word on all operators, and plans ------------------------------------------------------


def robust(**changes):
    return {
        "model": "toy", "task": "demo", "attribution": "gradient", "k": 0.2, "direction": "sufficiency", "null": "size",
        "operators": ["delete", "infill"], "n": 60, "word": "robust", "spread": 0.0456, "sides": ["above", "above"],
        **changes,
    }  # fmt: skip


def test_the_word_on_all_operators_reads_with_the_side_of_each(summary):
    found = {**summary(), "robustness": [robust()]}
    table = robustness_table([found])
    assert table.title == "Over all operators"
    assert table.header == ("attribution", "against 55 % (one-sided 95 % bounds)", "spread", "conclusion")
    assert table.rows == (("gradient", "delete above, infill above", "4.6 pp", "robust (above 55 %)"),)


def test_the_word_on_no_example_reads_as_a_dash(summary):
    found = {**summary(), "robustness": [robust(word=None, spread=None, sides=None), robust(null="position")]}
    table = robustness_table([found])
    assert table.header == ("attribution", "null", "against 55 % (one-sided 95 % bounds)", "spread", "conclusion")
    assert table.rows[0] == ("gradient", "size", "–", "–", "–")


def test_tables_without_a_row_are_left_out(summary):
    assert [table.title for table in tables([summary()])] == ["Faithfulness"]
    found = {**summary(agreements=[{}]), "robustness": [robust()]}
    assert [table.title for table in tables([found])] == ["Faithfulness", "Operator agreement", "Over all operators"]


def test_p_values_are_adjusted_over_all_runs_of_a_table(summary):
    p_values = [0.001, 0.02, 0.04, 0.3]
    one, other = summary({"p_value": 0.001}, {"p_value": 0.02}), summary({"p_value": 0.04}, {"p_value": 0.3})
    expected = false_discovery_control(p_values, method="by")
    assert columns(summary_table([one, other]))["p adj."] == tuple(p_value(p) for p in expected)
    alone = false_discovery_control(p_values[:2], method="by")
    assert columns(summary_table([one]))["p adj."] == tuple(p_value(p) for p in alone)


def test_effects_carry_their_word_and_negative_ones_their_sign_alone(summary):
    words = ({"effect_size_median": -1.0, "effect_word": "large negative"}, {"effect_word": None})
    assert columns(summary_table([summary(*words)]))["median effect"] == ("-1.00 large", "+1.10")


@pytest.mark.parametrize(
    ("value", "word", "shown"),
    [
        (0.496, "small", "+0.496 small"),
        (0.4996, "small", "+0.4996 small"),
        (0.494, "small", "+0.49 small"),
        (0.5, "medium", "+0.50 medium"),
        (0.7951, "medium", "+0.795 medium"),
        (-0.199, "negligible", "-0.199 negligible"),
        (-0.2, "small negative", "-0.20 small"),
    ],
)
def test_an_effect_next_to_a_limit_has_the_digits_that_its_word_needs(summary, value, word, shown):
    assert stats.effect_word(value) == word
    found = summary_table([summary({"effect_size_median": value, "effect_word": word})])
    assert columns(found)["median effect"] == (shown,)


def test_notes_name_the_examples_that_operators_disagree_about(summary):
    many = [str(number) for number in range(9)]
    found = notes(summary(agreements=[{"disagree": many, "null": "position"}, {"disagree": []}]))
    assert (
        "gradient (null: position): delete and infill disagree most about the examples 0, 1, 2, 3, 4; "
        "`ice show` prints what the model saw of them."
    ) in found
    assert len([note for note in found if "disagree" in note]) == 1


def test_accuracy_is_that_of_the_most_examples(summary):
    found = notes(summary({"accuracy": 1.0, "n": 3}, {"accuracy": 0.5, "n": 10}))
    assert "The model is right on 50.0 % of the examples." in found


def test_examples_of_several_k_are_named_together_those_that_differ_most_first(summary):
    lines = [{"disagree": ["a", "b", "c"], "k": 0.1}, {"disagree": ["d", "a", "e", "f"], "k": 0.2}]
    [note] = [note for note in notes(summary(agreements=lines)) if "disagree" in note]
    assert "the examples a, d, b, c, e;" in note


@pytest.mark.parametrize(("n", "told"), [(7, False), (8, True)])
def test_notes_give_kappa_where_there_are_enough_configurations(summary, n, told):
    words = ["faithful", "near-random"] * n
    lines = [
        {"attribution": f"a{i}", "operator": operator, "taxonomy": words[i]}
        for i in range(n)
        for operator in ("delete", "infill")
    ]
    found = [note for note in notes(summary(*lines)) if "κ" in note]
    assert found == (
        ["delete and infill agree on the word with weighted κ = 1.00 over 8 configurations."] if told else []
    )


def test_notes_say_why_single_examples_were_not_tested(summary):
    reason = "the random sets were chosen to be enough for the data set, not for an example"
    found = notes(summary({"significant_reason": reason, "significant_floor_share": None, "significant_rate": None}))
    assert f"Single examples: {reason}." in found


PLAN = Plan(
    model="toy", task="demo", device="cpu", pilot={"n": 32, "m": 16, "seconds": 1.2}, cheapest_m=4.4,
    choices=(
        Choice("as asked", 500, 50, 27000, 1_234_567, 90.0, 12.34, 0.061, 0.5437),
        Choice("--adaptive dataset", 500, 12, 8000, 300_000, 20.0, 3.0, 0.064, 0.5457),
    ),
    peak_memory_gb=0.5, warnings=("too few.",),
)  # fmt: skip


def test_a_plan_reads_as_a_row_for_each_choice():
    table = plan_table(PLAN)
    assert table.title == "toy on demo, cpu"
    assert table.rows[0] == (
        "as asked", "500", "50", "27,000", "1,234,567", "90.0", "12.3 MB", "± 3.0 pp", "54.4 %",
    )  # fmt: skip
    assert "dollars" not in table.header


def test_a_price_gives_dollars():
    table = plan_table(PLAN, hourly_price=4)
    assert columns(table)["dollars"] == ("6.00", "1.33")


def test_the_notes_of_a_plan_say_what_it_rests_on():
    found = plan_notes(PLAN)
    assert found[0].startswith("From a pilot of 32 examples with 16 random sets each, in 1 s")
    assert "Peak memory of the pilot: 0.50 GB; batches of the run are no larger." in found
    assert "The fewest tokens for a given interval: about 4 random sets per example." in found
    assert found[-1] == "too few."
    # Sets that add no noise have no cheapest number.
    assert not any("fewest tokens" in note for note in plan_notes(replace(PLAN, cheapest_m=0.0)))
    bare = plan_notes(replace(PLAN, cheapest_m=None, peak_memory_gb=None, warnings=()))
    assert len(bare) == 2


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_takes_the_new_tables(style, summary):
    found = {**summary(), "robustness": [robust()]}
    assert "delete above" in formatted(robustness_table([found]), style)
    assert "27,000" in formatted(plan_table(PLAN), style)


def test_what_attributions_cost_is_shown_where_several_took_something():
    manifest = {
        "attribution_seconds": {"attention": 3.21, "lime": 12.04, "random": 0.001},
        "attribution_rows": {"lime": 10_000},
        "probe_tokens": {"lime": 84_000},
    }
    table = cost_table(manifest)
    assert table.title == "What each attribution cost"
    assert table.header == ("attribution", "seconds", "probes", "tokens of probes")
    assert table.rows == (
        ("attention", "3.2", "–", "–"), ("lime", "12.0", "10,000", "84,000"), ("random", "0.0", "–", "–"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"attribution_seconds": {"attention": 1.61, "gradient": 1.62, "random": 0.0}},
        {"attribution_seconds": {"lime": 3.2, "random": 0.0}, "attribution_rows": {"lime": 99}},
    ],
    ids=["of an earlier version", "one look", "one method"],
)
def test_a_single_cost_is_no_table(manifest):
    assert cost_table(manifest).rows == ()
