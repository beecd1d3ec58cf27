import pytest
from tests.made_records import robustness_line

from ice_eval.report.verdicts import lead, verdicts


def only(summary):
    [statement] = verdicts(summary).first
    return statement


def test_a_verdict_is_a_sentence_with_its_uncertainty(summary):
    [sentence] = only(summary()).sentences
    assert (sentence.operator, sentence.verdict, sentence.word) == ("delete", "faithful", "faithful")
    assert sentence.text == "it beats 73.2 % of random sets of the same size (95 % interval 68.1–78.5 %, n = 60)."


@pytest.mark.parametrize(
    ("verdict", "silence"),
    [
        ("faithful", "It does not say that these units are all the model looks at"),
        ("near-random to faithful", "It does not say that these units are all"),
        (
            "not distinguishable from random",
            "It does not say that the explanation is no better than chance; a win rate under 58.0 % may go unnoticed",
        ),
        ("near-random", "It does not say that the explanation is no better than chance: it is, if by little."),
        ("anti-faithful", "It does not say why random units do better"),
        ("undetermined (too few examples)", "It says nothing for or against the explanation."),
        (None, "It says nothing for or against the explanation."),
    ],
)
def test_a_statement_says_what_it_does_not_say(summary, verdict, silence):
    assert only(summary({"verdict": verdict})).silence.startswith(silence)


def test_what_is_not_told_from_chance_has_no_colour(summary):
    [sentence] = only(summary({"verdict": "not distinguishable from random", "taxonomy": "anti-faithful"})).sentences
    assert sentence.word is None


def test_a_range_has_the_colour_of_what_is_sure(summary):
    [sentence] = only(summary({"verdict": "near-random to faithful", "taxonomy": "faithful"})).sentences
    assert sentence.word == "near-random"


def test_a_configuration_without_examples_says_so(summary):
    empty = dict.fromkeys(("win_rate", "win_rate_ci", "verdict", "taxonomy", "detectable_win_rate"))
    [sentence] = only(summary({**empty, "n": 0})).sentences
    assert (sentence.verdict, sentence.text) == ("no verdict", "no example could be evaluated.")


def test_operators_are_sentences_of_one_statement_and_their_average_is_not(summary):
    lines = [{"operator": name} for name in ("delete", "infill", "all")]
    assert [each.operator for each in only(summary(*lines)).sentences] == ["delete", "infill"]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("robust", "All operators put it below 55 % (one-sided 95 % bounds)."),
        (
            "operator-dependent",
            "The operators contradict each other (one-sided 95 % bounds): the answer depends on how",
        ),
        ("inconclusive", "Whether the operators agree is not certain."),
        (None, ""),
    ],
)
def test_the_word_on_all_operators_is_a_sentence(summary, word, text):
    line = robustness_line(attribution="gradient", word=word, sides=word and ("below", "below"))
    found = only(summary(robustness=[line])).over_all
    assert found.startswith(text) and bool(found) == bool(word)


def test_a_run_that_removes_matched_sets_says_so_at_the_top(summary):
    found = summary({"direction": "necessity", "null": "frequency", "k": 0.1})
    statement = only(found)
    assert statement.setting == "removing the top 10 %, random sets matched by frequency"
    assert "of random sets of the same size and matched by frequency (" in statement.sentences[0].text
    assert lead([found]).startswith(
        "Each explanation's top-ranked units are removed, and random sets of the same size and matched by frequency "
        "are removed in the same way."
    )


def test_the_lead_says_what_all_configurations_share(summary):
    usual = "Each explanation's top-ranked units are kept, and random sets of the same size are kept in the same way."
    assert lead([summary()]).startswith(usual)
    mixed = lead([summary(), summary({"direction": "necessity", "null": "position", "k": None})])
    assert mixed.startswith("Each explanation's top-ranked or marked units are kept or removed, and random sets")
    assert "of the same size (some also matched by position) are kept or removed" in mixed


@pytest.mark.parametrize(
    ("changes", "text", "chance"),
    [
        ({}, "it beats 73.2 % of random sets of the same size (95 %", "beats: 50 % is chance."),
        ({"tie_rate": 0.0004}, "it beats 73.2 % of random sets of the same size (95 %", "beats: 50 % is chance."),
        (
            {"tie_rate": 0.126},
            "it wins against 73.2 % of random sets of the same size, ties counted half (12.6 % tie; 95 %",
            "beats, ties counted half: 50 % is chance.",
        ),
        (
            {"tie_rate": 0.126, "flags": ["protocol_released", "ties"]},
            "it beats 73.2 % of random sets of the same size, ties counted as lost (12.6 % tie; 95 %",
            "Ties are lost, as in the protocol of the run: chance is below 50 %",
        ),
    ],
)
def test_sets_that_tie_are_not_said_to_be_beaten(summary, changes, text, chance):
    found = summary(changes)
    assert only(found).sentences[0].text.startswith(text)
    assert chance in lead([found])


def test_the_lead_says_that_an_interval_alone_gives_no_word(summary):
    """Else a reader wonders at "not distinguishable" beside an interval that excludes 50 %."""
    text = lead([summary({"verdict": "not distinguishable from random", "win_rate_ci": [0.52, 0.61]})])
    assert "only where the whole 95 % interval allows it and the test agrees (p ≤ 0.05)." in text


def test_the_lead_says_that_verdicts_are_not_adjusted_for_their_number(summary):
    assert "is not adjusted for how many there are; “p adj.” in the table is." in lead([summary()])


def test_runs_that_count_ties_in_their_own_way_are_told_apart(summary):
    strict = summary({"tie_rate": 0.1, "flags": ["protocol_paper"]})
    assert "each sentence says which" in lead([strict, summary({"tie_rate": 0.1})])


def test_the_first_setting_leads_and_the_others_follow(summary):
    lines = [
        {"attribution": name, "direction": direction, "k": k}
        for name in ("a", "b")
        for direction in ("sufficiency", "necessity")
        for k in (0.1, 0.2)
    ]
    found = verdicts(summary(*lines, {"attribution": "human", "k": None}))
    assert [(each.attribution, each.setting) for each in found.first] == [
        ("a", "keeping the top 10 %"), ("b", "keeping the top 10 %"), ("human", "keeping what it marks"),
    ]  # fmt: skip
    assert [each.setting for each in found.others[:3]] == [
        "keeping the top 20 %", "removing the top 10 %", "removing the top 20 %",
    ]  # fmt: skip
    assert len(found.others) == 6
