import pytest

from ice_eval.report import notes
from ice_eval.report.notes import FLAGS
from ice_eval.results.records import Measures


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
    assert "3 examples take no part; examples.parquet says why." in found
    few = "There are too few random sets (m) to call single examples significant unless 19.6 % of them are"
    assert f"{few}; mean win rates need no more." in found


def test_notes_tell_of_a_single_skipped_example_in_the_singular(summary):
    found = notes(summary({"attribution": "a"}, {"attribution": "b", "n_skipped": 1}))
    assert "1 example takes no part for b; examples.parquet says why." in found


def test_notes_explain_every_flag_once(summary):
    found = notes(summary({"flags": ["small_n", "ties"]}, {"flags": ["small_n"]}))
    rough = "Fewer than 50 examples: the intervals are rough. [small_n]"
    assert [note for note in found if "small_n" in note] == [rough]
    assert f"gradient under delete: {FLAGS['ties']} [ties]" in found  # it is about one row of two


def test_notes_say_when_no_win_rate_could_be_detected(summary):
    found = notes(summary({"detectable_win_rate": 0.92}, {"detectable_win_rate": 1.04}))
    assert "Smallest mean win rate told from chance with power 80 %: 92.0 % to none (too few examples)." in found


def test_notes_survive_a_run_without_examples(summary):
    empty = dict.fromkeys(vars(Measures()))
    found = notes(summary({**empty, "accuracy": None, "n": 0, "n_skipped": 2, "flags": ["no_examples"]}))
    none = "No example could be evaluated. [no_examples]"
    assert found == ["2 examples take no part; examples.parquet says why.", none]


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
