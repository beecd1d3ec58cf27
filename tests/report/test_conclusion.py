from dataclasses import replace

import numpy as np
import pytest
from tests import made_records

from ice_eval.report.conclusion import agreed, conclude, conclusion_table, short_verdict
from ice_eval.results.records import CutTexts, RankingLine
from ice_eval.results.summary import dropped

MANIFEST = made_records.manifest()
GRADIENT = {"operator": "delete", "win_rate": 0.79, "win_rate_ci": (0.7, 0.85)}
INFILL = {
    **GRADIENT,
    "operator": "infill",
    "win_rate": 0.647,
    "win_rate_ci": (0.57, 0.71),
    "verdict": "weakly faithful",
}
ATTENTION = {**GRADIENT, "attribution": "attention", "win_rate": 0.6, "verdict": "better than random"}
RANDOM = {
    **GRADIENT, "attribution": "random", "win_rate": 0.49, "win_rate_ci": (0.4, 0.58), "p_adjusted": 0.9,
    "verdict": "not distinguishable from random",
}  # fmt: skip


def ranking(*groups):
    head = {"model": "toy", "task": "demo", "operator": "delete", "direction": "sufficiency", "k": 0.2, "null": "size"}
    return RankingLine(**head, ranking=groups, pairs=())


def test_sentence_names_the_best_method_the_others_and_the_control(summary):
    found = summary(RANDOM, ATTENTION, GRADIENT, INFILL)
    assert conclude(found, MANIFEST).sentence == (
        "Gradient is faithful under delete and weakly faithful under infill: it beats 79 % (delete) and 65 % (infill) "
        "of random token sets of the same size. Attention beats 60 %. The random control is at 49 %, as it should be."
    )


@pytest.mark.parametrize(
    ("changes", "verb"),
    [
        ({}, "beats"),
        ({"tie_rate": 0.0004}, "beats"),
        ({"tie_rate": 0.126}, "wins against"),
        ({"tie_rate": 0.126, "flags": ["protocol_released", "ties"]}, "beats"),
    ],
)
def test_sets_that_tie_are_not_said_to_be_beaten(summary, changes, verb):
    assert f"it {verb} 79 % of random token sets" in conclude(summary({**GRADIENT, **changes}), MANIFEST).sentence


def test_undecidable_verdict_says_how_many_sets_tie(summary):
    found = conclude(summary({**GRADIENT, "verdict": "undecidable: 85 % of sets tie"}), MANIFEST)
    assert found.sentence.startswith("Gradient is undecidable under delete (85 % of sets tie).")


def test_average_over_operators_ranks_methods_and_is_no_line_of_its_own(summary):
    lines = [{**GRADIENT, "operator": name} for name in ("delete", "infill", "all")]
    better = {**ATTENTION, "operator": "all", "win_rate": 0.95}
    found = conclude(summary(*lines, ATTENTION, {**ATTENTION, "operator": "infill"}, better), MANIFEST).first
    assert [method.attribution for method in found.methods] == ["attention", "gradient"]
    assert [line.operator for line in found.methods[1].lines] == ["delete", "infill"]


def test_attributions_with_a_size_of_their_own_are_in_the_first_ranking(summary):
    lines = [
        {"attribution": name, "direction": direction, "k": k}
        for name in ("a", "b")
        for direction in ("sufficiency", "necessity")
        for k in (0.1, 0.2)
    ]
    found = conclude(summary(*lines, {"attribution": "human", "k": None}), MANIFEST)
    assert found.first.name == "keeping the top 10 % or keeping what it marks"
    assert sorted(each.attribution for each in found.first.methods) == ["a", "b", "human"]
    assert [each.name for each in found.others] == [
        "keeping the top 20 %",
        "removing the top 10 %",
        "removing the top 20 %",
    ]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ((("gradient",), ("attention",)), "Gradient is ahead of attention under every operator."),
        ((("gradient", "attention"),), "60 examples do not settle which of the two is better."),
    ],
)
def test_sentence_says_whether_the_best_method_is_ahead(summary, groups, said):
    found = replace(summary(GRADIENT, ATTENTION), rankings=(ranking(*groups),))
    assert said in conclude(found, MANIFEST).sentence


def test_many_methods_are_summed_up(summary):
    others = [
        {**ATTENTION, "attribution": name, "win_rate": rate}
        for name, rate in zip("abcd", (0.4, 0.5, 0.55, 0.6), strict=True)
    ]
    assert "The other 4 methods win 40 % to 60 %." in conclude(summary(GRADIENT, *others), MANIFEST).sentence


def test_failed_examples_are_a_problem_with_their_reasons(summary):
    failed = {
        "n": 11,
        "n_skipped": 20,
        "skipped": {"the model's score is not finite": 19, "the text has one unit, so": 1},
    }
    found = conclude(summary({**GRADIENT, **failed}), MANIFEST)
    assert found.sentence.endswith("19 of 31 examples have no result.")
    assert found.problems == ("19 of 31 examples have no result (61.3 %): the model's score is not finite (19).",)
    assert found.tiles[0] == ("examples used", "11", "of 31, 19 dropped, 1 skipped")


def test_dropped_examples_are_those_of_the_worst_configuration(summary):
    worse = {**INFILL, "n": 50, "n_skipped": 10, "skipped": {"a score is not finite": 10}}
    found = dropped(summary(GRADIENT, worse))
    assert (found.n, found.total, found.share, found.where) == (10, 60, pytest.approx(1 / 6), "under infill")
    assert dropped(summary(GRADIENT)).share == 0
    assert (
        dropped(summary(GRADIENT, worse, {**INFILL, "attribution": "attention"})).where == "for gradient under infill"
    )


@pytest.mark.parametrize(
    "reason",
    [
        "the text has no unit",
        "the text has one unit, so there is no other set to compare with",
        "the attribution 'cited' marks no unit of the text",
        "fewer than 2 steps besides those that state the answer",
    ],
)
def test_examples_with_nothing_to_test_are_not_dropped(summary, reason):
    assert dropped(summary({"n": 1, "n_skipped": 9, "skipped": {reason: 9}})).n == 0


def test_control_is_a_problem_only_if_its_adjusted_test_rejects(summary):
    assert conclude(summary(GRADIENT, RANDOM), MANIFEST).problems == ()
    found = conclude(summary(GRADIENT, {**RANDOM, "win_rate": 0.3, "p_adjusted": 0.003}), MANIFEST)
    assert "The random control is at 30 %, where 50 % is expected." in found.sentence
    [problem] = found.problems
    assert problem.startswith(
        "The random control wins 30.0 % under delete, where 50 % is expected (keeping the top 20 %;"
    )


def test_table_has_a_row_for_each_method_and_no_verdict_on_the_control(summary):
    table = conclusion_table({"run": conclude(summary(RANDOM, GRADIENT, INFILL), MANIFEST)})
    assert table.header == ("attribution", "delete", "infill", "verdict")
    assert table.rows == (
        ("gradient", "79.0 % [70.0, 85.0]", "64.7 % [57.0, 71.0]", "faithful, weakly faithful"),
        ("random", "49.0 % [40.0, 58.0]", "–", "control, expected 50 %"),
    )
    assert table.words == ((None, "faithful", "weakly faithful", None), (None, None, None, None))


def test_short_table_keeps_the_best_methods_and_the_control_of_each_run(summary):
    methods = [{**GRADIENT, "attribution": f"m{i}", "win_rate": 0.9 - i / 100} for i in range(9)]
    found = dict.fromkeys(("one", "two"), conclude(summary(RANDOM, *methods), MANIFEST))
    table = conclusion_table(found, most=6)
    assert [row[:2] for row in table.rows] == [(run, name) for run in ("one", "two") for name in ("m0", "m1", "random")]
    assert table.title.endswith("(95 % intervals; 6 of 20 rows)")
    assert len(conclusion_table(found).rows) == 20


def test_other_settings_are_ranked_by_themselves(summary):
    found = conclude(summary(GRADIENT, {**GRADIENT, "k": 0.5}, {**GRADIENT, "direction": "necessity"}), MANIFEST)
    assert [each.name for each in found.others] == ["keeping the top 50 %", "removing the top 20 %"]


def test_run_without_a_result_says_so(summary):
    nothing = {"n": 0, "win_rate": None, "win_rate_ci": None, "verdict": None, "detectable_win_rate": None}
    assert conclude(summary(nothing), MANIFEST).sentence == "No example could be evaluated."


def test_ties_that_count_as_lost_lower_what_a_control_is_expected_to_win(summary):
    strict = {**RANDOM, "win_rate": 0.36, "tie_rate": 0.25, "flags": ["protocol_paper", "ties"]}
    found = conclude(summary(strict, GRADIENT), MANIFEST)
    assert found.sentence.endswith("The random control is at 36 %, as it should be.")
    assert short_verdict(found.first.methods[-1]) == "control, expected 37.5 %"


@pytest.mark.parametrize(
    ("words", "agree"),
    [
        (["robust", "weak under all operators"], "yes"),
        (["robust", "operator-dependent"], "no"),
        (["robust", "inconclusive"], "in part"),
        (["inconclusive"], "not settled"),
    ],
)
def test_the_tile_on_agreement_says_no_more_than_the_words(words, agree):
    assert agreed(words) == agree


def test_cut_texts_are_a_problem_with_their_number_and_share(summary):
    found = replace(summary(GRADIENT), cut=CutTexts.of(np.array([0, 30, 10]), np.array([50, 70, 90])))
    assert found.cut == CutTexts(n=2, total=3, share=0.2, share_of_all=0.16)
    assert conclude(found, MANIFEST).problems == (
        "2 of 3 texts were cut, and lost 20 % of their tokens: explanations are about what is left.",
    )
    assert CutTexts.of(np.zeros(3, dtype=int), np.ones(3, dtype=int)) is None
