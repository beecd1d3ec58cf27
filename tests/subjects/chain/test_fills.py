import pytest
from tests.subjects.chain.small_cases import case, response

from ice_eval.errors import DataError
from ice_eval.seeding import rng_for
from ice_eval.subjects.chain.interventions import filler, mistake, steps_of_others, usable_paraphrase


def test_fills_are_steps_of_others_that_do_not_give_the_answer_away():
    cases = [case("one", ["First.", "Second."]), case("two", ["Third.", "So 3 + 4 = 7.", "Fourth."], answer="9")]
    fills = steps_of_others(cases, seed=0)
    assert set(fills["one"]) == {"Third.", "Fourth."}, "the sum is the answer of the first problem"
    assert len(fills["two"]) == 3 and set(fills["two"]) <= {"First.", "Second."}
    assert fills == steps_of_others(cases, seed=0) and fills != steps_of_others(cases, seed=3)
    with pytest.raises(DataError, match="needs steps of other problems"):
        steps_of_others(cases[:1], seed=0)


def test_filler_has_the_length_of_a_step_and_nothing_of_its_content():
    assert filler("4 boxes hold 48 jars.") == "... ... ... ... ..."


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ("4 boxes hold 48 jars.", "4 boxes hold ", "8 jars."),
        ("2. They cost $1,250.50 in all", "2. They cost $", ",250.50 in all"),
        ("- Each of 3 has it", "- Each of ", " has it"),
    ],
)
def test_a_mistake_changes_the_first_digit_of_the_last_number(step, before, after):
    found = mistake(case("one", [step, "Second."]), 0, rng_for(0, "x"))
    assert found != step and found.startswith(before) and found.endswith(after)
    assert len(found) == len(step)


def test_a_step_without_a_number_is_denied_and_its_list_mark_stays():
    assert mistake(case("one", ["Milk spoils.", "B."]), 0, rng_for(0, "x")) == "It is not true that milk spoils."
    found = mistake(case("one", ["3. Milk spoils.", "B."]), 0, rng_for(0, "x"))
    assert found == "3. It is not true that milk spoils.", "the number of an item is no part of what it says"


def test_no_mistake_states_the_answer():
    steps = case("one", ["So 2 + 2 = 4.", "Second."], answer="7")
    found = {mistake(steps, 0, rng_for(seed, "x")) for seed in range(60)}
    assert found == {f"So 2 + 2 = {digit}." for digit in (1, 2, 3, 5, 6, 8, 9)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("48 jars fit into 4 boxes.", "48 jars fit into 4 boxes."),
        ("<think>Let me see, 7?</think>\nIn 4 boxes there are\n48 jars", "In 4 boxes there are 48 jars"),
        ("[THINK]Is it 7?[/THINK]In 4 boxes there are 48 jars", "In 4 boxes there are 48 jars"),
        ("Four boxes hold 48 jars.", None),
        ("4 boxes hold 48 jars, 12 each.", None),
        ("4 boxes hold 48 jars.", None),
        ("", None),
    ],
)
def test_other_words_must_keep_every_number(text, found):
    assert usable_paraphrase("4 boxes hold 48 jars.", response(text)) == found
    assert usable_paraphrase("4 boxes hold 48 jars.", response(text, status="truncated")) is None


@pytest.mark.parametrize("mark", ["", "1. ", "- "])
def test_other_words_for_an_item_of_a_list_keep_its_mark(mark):
    words = "48 jars fit into 4 boxes."
    assert usable_paraphrase("Step 3: 4 boxes hold 48 jars.", response(f"{mark}{words}")) == f"Step 3: {words}"
