from dataclasses import replace

import pytest
from tests.made_records import robustness_line

from ice_eval.report import notes, plan_notes
from ice_eval.report.sentences import FLAGS, SIMULTANEOUS, lead, over_all_sentence, place_of, setting_of, silence
from ice_eval.results.records import Measures
from ice_eval.results.summary import simultaneous
from ice_eval.stats import NEAR_RANDOM, TAXONOMY, WORDS


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("faithful", "It does not say that these units are all the model looks at"),
        ("better than random", "It does not say that these units are all"),
        (
            "not distinguishable from random",
            "It does not say that the explanation is no better than chance; a win rate under 58.0 % may go unnoticed",
        ),
        ("random within ±5 pp", "It does not say that the explanation is exactly as good as chance: it may be better"),
        ("anti-faithful", "It does not say why random units do better"),
        (
            "undecidable: 85 % of sets tie",
            "It does not say whether the explanation is right: most sets of units",
        ),
        (None, "It says nothing for or against the explanation."),
    ],
)
def test_a_verdict_says_what_it_does_not_say(summary, verdict, said):
    assert silence(summary({"verdict": verdict}).configurations, "units").startswith(said)


def test_simultaneous_verdicts_come_with_their_intervals(summary):
    [line] = simultaneous(summary()).configurations
    assert (str(line.verdict), line.win_rate_ci) == ("weakly faithful", (0.5912, 0.8321))
    text = lead([simultaneous(summary())], simultaneous=True)
    assert text.endswith(SIMULTANEOUS) and "p adj." not in text


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("robust", "It is at 55 % or above under every operator."),
        ("weak under all operators", "It is below 55 % under every operator."),
        ("operator-dependent", "The operators contradict each other: the answer depends on how units are removed."),
        ("inconclusive", "It is not certain whether the operators agree."),
        (None, ""),
    ],
)
def test_the_word_on_all_operators_is_a_sentence(word, text):
    line = robustness_line(attribution="gradient", word=word, sides=word and ("below", "below"))
    found = over_all_sentence(line, "units")
    assert found.startswith(text) and bool(found) == bool(word)


def test_a_run_that_removes_matched_sets_says_so_at_the_top(summary):
    found = summary({"direction": "necessity", "null": "frequency", "k": 0.1})
    [line] = found.configurations
    assert setting_of(place_of(line)) == "removing the top 10 %, random sets matched by frequency"
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
    ("changes", "chance"),
    [
        ({}, "beats: 50 % is chance."),
        ({"tie_rate": 0.0004}, "beats: 50 % is chance."),
        ({"tie_rate": 0.126}, "beats, ties counted half: 50 % is chance."),
        (
            {"tie_rate": 0.126, "flags": ["protocol_released", "ties"]},
            "Ties are lost, as in the protocol of the run: chance is below 50 %",
        ),
    ],
)
def test_the_lead_says_how_ties_count(summary, changes, chance):
    assert chance in lead([summary(changes)])


def test_the_lead_says_which_interval_gives_which_word(summary):
    text = lead([summary()])
    assert (
        "A word is given only where the whole 95 % interval allows it. The words are anti-faithful below 50 %" in text
    )
    assert all(word in text for word in WORDS if word != NEAR_RANDOM)
    by_estimate = lead([summary({"flags": ["protocol_paper"]})])
    assert all(word in by_estimate for word in TAXONOMY) and "whole 95 % interval" not in by_estimate
    assert "Unless its protocol says otherwise" in lead([summary(), summary({"flags": ["protocol_paper"]})])


def test_the_lead_says_that_verdicts_are_not_adjusted_for_their_number(summary):
    text = lead([summary()])
    assert (
        "Each verdict is about one configuration; “p adj.” and `ice report --simultaneous` allow for how many" in text
    )


@pytest.mark.parametrize(
    ("verdict", "p_value", "explained"),
    [("not distinguishable from random", 0.04, True), ("not distinguishable from random", 0.06, False)]
    + [("better than random", 0.04, False), (None, None, False)],
)
def test_a_small_p_beside_an_interval_that_covers_chance_is_explained(summary, verdict, p_value, explained):
    """Else a reader wonders at "not distinguishable" beside a p-value of 0.04."""
    found = notes(summary({"verdict": verdict, "p_value": p_value}))
    assert any(note.startswith("p tests if the explanation may be a random set") for note in found) == explained


def test_runs_that_count_ties_in_their_own_way_are_told_apart(summary):
    strict = summary({"tie_rate": 0.1, "flags": ["protocol_paper"]})
    assert "each sentence says which" in lead([strict, summary({"tie_rate": 0.1})])


SMALLEST = "Smallest mean win rate that can be distinguished from chance (power 80 %)"


def test_notes_give_accuracy_and_the_smallest_detectable_win_rate(summary):
    assert notes(summary()) == [
        "The model is right on 90.0 % of the examples.",
        f"{SMALLEST}: 58.0 %.",
    ]


def test_notes_give_a_range_where_configurations_differ(summary):
    found = notes(summary({"detectable_win_rate": 0.55}, {"detectable_win_rate": 0.6}, {"detectable_win_rate": None}))
    assert any(note.endswith("55.0 % to 60.0 %.") for note in found)


def test_notes_say_what_is_not_known(summary):
    assert notes(summary({"accuracy": None, "detectable_win_rate": None})) == [
        f"{SMALLEST}: unknown (one example, or no spread)."
    ]


def test_notes_tell_of_skipped_examples_and_of_tests_that_cannot_reject(summary):
    reason = "no p-value can be small enough"
    found = notes(summary({"n_skipped": 3, "significant_reason": reason}, {"n_skipped": 1}))
    assert "3 examples were skipped; examples.parquet says why." in found
    few = "There are too few random sets (m) to call single examples significant unless at least 19.6 % of them are"
    assert f"{few}. Mean win rates are not affected." in found


def test_notes_tell_of_a_single_skipped_example_in_the_singular(summary):
    found = notes(summary({"attribution": "a"}, {"attribution": "b", "n_skipped": 1}))
    assert "1 example was skipped for b; examples.parquet says why." in found


def test_notes_explain_every_flag_once(summary):
    found = notes(summary({"flags": ["small_n", "ties"]}, {"flags": ["small_n"]}))
    wide = "Fewer than 50 examples: the intervals assume nothing about the win rates, so they are wide. [small_n]"
    assert [note for note in found if "small_n" in note] == [wide]
    assert f"gradient under delete: {FLAGS['ties']} [ties]" in found  # it is about one row of two


def test_notes_say_when_no_win_rate_could_be_detected(summary):
    found = notes(summary({"detectable_win_rate": 0.92}, {"detectable_win_rate": 1.04}))
    assert f"{SMALLEST}: 92.0 % to none (too few examples)." in found


def test_notes_survive_a_run_without_examples(summary):
    empty = dict.fromkeys(vars(Measures()))
    found = notes(summary({**empty, "accuracy": None, "n": 0, "n_skipped": 2, "flags": ["no_examples"]}))
    none = "No example could be evaluated. [no_examples]"
    assert found == ["2 examples were skipped; examples.parquet says why.", none]


def test_notes_name_the_examples_that_operators_disagree_about(summary):
    many = [str(number) for number in range(9)]
    found = notes(summary(agreements=[{"disagree": many, "null": "position"}, {"disagree": []}]))
    assert (
        "gradient (null: position): delete and infill disagree most about the examples 0, 1, 2, 3, 4; "
        "`ice show` prints what the model saw of them."
    ) in found
    [note] = [note for note in found if "disagree" in note]
    assert (note.examples, note.attribution) == (tuple(many[:5]), "gradient")


def test_a_note_on_a_flag_is_words_with_the_name_of_the_flag_apart(summary):
    [note] = [note for note in notes(summary({"flags": ["small_n"]})) if "small_n" in note]
    assert note == f"{note.said} [small_n]" and "_" not in note.said


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


def test_the_notes_of_a_plan_say_what_it_rests_on(plan):
    found = plan_notes(plan)
    assert found[0].startswith("From a pilot of 32 examples with 16 random sets each, in 1 s")
    assert "Peak memory of the pilot: 0.50 GB; batches of the run are no larger." in found
    assert "The fewest tokens for a given interval: about 4 random sets per example." in found
    assert found[-1] == "too few."
    # Sets that add no noise have no cheapest number.
    assert not any("fewest tokens" in note for note in plan_notes(replace(plan, cheapest_m=0.0)))
    bare = plan_notes(replace(plan, cheapest_m=None, peak_memory_gb=None, warnings=()))
    assert len(bare) == 2
