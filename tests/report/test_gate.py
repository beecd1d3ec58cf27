import pytest

from ice_eval.errors import ConfigError
from ice_eval.report import failures, words_of
from ice_eval.report.gate import WORDS
from ice_eval.stats import NOT_DISTINGUISHABLE, REASONING, TAXONOMY, Interval, verdict

OF_EXPLANATIONS = [word for word in WORDS if word not in REASONING]


def test_words_may_be_repeated_or_stand_in_a_list():
    assert words_of(["anti-faithful, near-random", "operators disagree"]) == (
        "anti-faithful", "near-random", "operators disagree",
    )  # fmt: skip


@pytest.mark.parametrize("given", ["unfaithful", "", "faithful,", "Faithful"])
def test_an_unknown_word_names_the_known_ones(given):
    with pytest.raises(
        ConfigError, match="use one or several of: anti-faithful, near-random, weakly faithful"
    ) as found:
        words_of([given])
    assert all(word in str(found.value) for word in WORDS)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("faithful", {"faithful"}),
        ("anti-faithful", {"anti-faithful"}),
        ("weakly faithful to faithful", {"weakly faithful", "faithful"}),
        ("near-random to faithful", {"near-random", "weakly faithful", "faithful"}),
        ("not distinguishable from random", {"not distinguishable from random"}),
        ("undetermined (too few examples)", {"undetermined"}),
        ("undetermined (all win rates are equal)", {"undetermined"}),
        (None, {"undetermined"}),
    ],
)
def test_a_verdict_fails_for_the_words_it_holds_and_for_no_other(summary, said, held):
    summaries = [summary({"verdict": said})]
    assert {word for word in OF_EXPLANATIONS if failures(summaries, [word])} == held


def test_every_verdict_there_is_holds_a_word(summary):
    limits = [0.1, 0.45, 0.5, 0.52, 0.57, 0.8]
    found = {str(verdict(low, Interval(low, high))) for low in limits for high in limits if low <= high}
    assert found > {*TAXONOMY, NOT_DISTINGUISHABLE}
    assert all(failures([summary({"verdict": said})], OF_EXPLANATIONS) for said in found)


def test_words_for_chains_fail_where_no_run_is_about_chains(summary):
    [line] = failures([summary(), summary()], ["decorative", "faithful", "genuine"])[:1]
    assert line.startswith("no run here is about chains of thought, so none can exclude 'decorative', 'genuine'")


def test_a_failure_names_its_configuration(summary):
    lines = ({"verdict": "anti-faithful", "k": 0.3, "direction": "necessity"}, {})
    assert failures([summary(*lines)], ["anti-faithful"]) == [
        "gradient under delete (k = 0.3, necessity): anti-faithful"
    ]


def test_of_several_runs_a_failure_names_the_run(summary):
    summaries = [summary(), summary({"model": "gpt2", "verdict": "near-random", "null": "position"})]
    assert failures(summaries, ["near-random"]) == [
        "gpt2 on demo, gradient under delete (k = 0.2, sufficiency, null: position): near-random"
    ]


def test_rationales_of_their_own_size_have_no_k(summary):
    assert failures([summary({"k": None})], ["faithful"]) == ["gradient under delete (k = own, sufficiency): faithful"]


def test_the_average_over_operators_and_the_random_control_are_left_out(summary):
    lines = ({"operator": "all"}, {"attribution": "random"})
    agreements = [{"attribution": "random", "crosses_threshold": "confirmed"}]
    assert failures([summary(*lines, agreements=agreements)], OF_EXPLANATIONS) == []


@pytest.mark.parametrize(("crosses", "count"), [("confirmed", 1), ("possible", 0), ("no", 0), (None, 0)])
def test_operators_disagree_where_that_is_confirmed(summary, crosses, count):
    found = failures([summary(agreements=[{"crosses_threshold": crosses}])], ["operators disagree"])
    assert len(found) == count
    assert all(line.startswith("gradient under delete and infill (k = 0.2, sufficiency)") for line in found)
