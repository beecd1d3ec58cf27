import pytest

from ice_eval.errors import ConfigError
from ice_eval.report import failures, words_of
from ice_eval.report.gate import WORDS
from ice_eval.results.summary import simultaneous
from ice_eval.stats import PATTERNS, Interval, point_verdict, verdict
from ice_eval.stats import WORDS as VERDICTS

OF_EXPLANATIONS = [word for word in WORDS if word not in PATTERNS]


def test_words_may_be_repeated_or_stand_in_a_list():
    assert words_of(["anti-faithful, random within ±5 pp", "operators disagree"]) == (
        "anti-faithful", "random within ±5 pp", "operators disagree",
    )  # fmt: skip


@pytest.mark.parametrize("given", ["unfaithful", "nearly random", "", "faithful,", "Faithful"])
def test_an_unknown_word_names_the_known_ones(given):
    with pytest.raises(ConfigError, match="use one or several of: undecidable, not distinguishable from") as found:
        words_of([given])
    assert all(word in str(found.value) for word in WORDS)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        *((word, {word}) for word in VERDICTS),
        ("undecidable: 85 % of sets tie", {"undecidable"}),
        (None, {"undetermined"}),
    ],
)
def test_a_verdict_fails_for_its_word_and_for_no_other(summary, said, held):
    summaries = [summary({"verdict": said})]
    assert {word for word in OF_EXPLANATIONS if failures(summaries, [word])} == held


def test_every_verdict_there_is_is_a_word(summary):
    limits = [0.1, 0.45, 0.5, 0.52, 0.57, 0.8]
    places = [(low, high, ties) for low in limits for high in limits if low <= high for ties in (0.0, 0.9)]
    found = {str(verdict(Interval(low, high), tie_rate=ties)) for low, high, ties in places}
    found |= {str(point_verdict(low, Interval(low, low))) for low in limits}
    assert found == {*VERDICTS[1:], "undecidable: 90 % of sets tie"}
    assert all(failures([summary({"verdict": said})], OF_EXPLANATIONS) for said in found)


def test_simultaneous_verdicts_fail_in_place_of_single_ones(summary):
    found = summary()
    words = ["faithful", "weakly faithful"]
    assert failures([found], words) == ["gradient under delete (k = 0.2, sufficiency): faithful"]
    assert failures([simultaneous(found)], words) == ["gradient under delete (k = 0.2, sufficiency): weakly faithful"]


def test_words_for_chains_fail_where_no_run_is_about_chains(summary):
    [line] = failures([summary(), summary()], ["decorative", "faithful", "genuine"])[:1]
    assert line.startswith("no run here is about chains of thought, so none can exclude 'decorative', 'genuine'")


def test_a_failure_names_its_configuration(summary):
    lines = ({"verdict": "anti-faithful", "k": 0.3, "direction": "necessity"}, {})
    assert failures([summary(*lines)], ["anti-faithful"]) == [
        "gradient under delete (k = 0.3, necessity): anti-faithful"
    ]


def test_of_several_runs_a_failure_names_the_run(summary):
    summaries = [summary(), summary({"model": "gpt2", "verdict": "random within ±5 pp", "null": "position"})]
    assert failures(summaries, ["random within ±5 pp"]) == [
        "gpt2 on demo, gradient under delete (k = 0.2, sufficiency, null: position): random within ±5 pp"
    ]


def test_rationales_of_their_own_size_have_no_k(summary):
    assert failures([summary({"k": None})], ["faithful"]) == ["gradient under delete (k = own, sufficiency): faithful"]


def test_the_average_over_operators_and_the_random_control_are_left_out(summary):
    lines = ({"operator": "all"}, {"attribution": "random"})
    agreements = [{"attribution": "random", "crosses_threshold": "yes"}]
    assert failures([summary(*lines, agreements=agreements)], OF_EXPLANATIONS) == []


@pytest.mark.parametrize(("crosses", "count"), [("yes", 1), ("unclear", 0), ("no", 0), (None, 0)])
def test_operators_disagree_where_their_intervals_do(summary, crosses, count):
    found = failures([summary(agreements=[{"crosses_threshold": crosses}])], ["operators disagree"])
    assert len(found) == count
    assert all(line.startswith("gradient under delete and infill (k = 0.2, sufficiency)") for line in found)
