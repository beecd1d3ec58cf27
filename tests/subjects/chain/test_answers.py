import json
import time
from pathlib import Path

import pytest

from ice_eval.subjects.chain import (
    FinalAnswer,
    LabelAnswer,
    NumberAnswer,
    OptionAnswer,
    Unreadable,
    reasoning_steps,
    split_steps,
)
from ice_eval.subjects.chain.problems import final_of

PARTICLES = OptionAnswer(("a proton.", "a neutron.", "a nucleus.", "an electron."))
TOOLS = OptionAnswer(("saw", "see saw", "nails", "B vitamins", "the hammer"))
GROWTH = OptionAnswer(("It will stay the same as births equal deaths.", "It will grow as births exceed deaths."))
SENTIMENT = LabelAnswer({"negative": (), "positive": ()})
TOPIC = LabelAnswer(
    {"World": (), "Sports": ("sport",), "Business": (), "Sci/Tech": ("technology", "science and technology")}
)


CASES = [
    json.loads(line) for line in (Path(__file__).parent / "answer_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Replies with the answers that a person reads in them, null for none; `held_out` ones were written after the rules."""


def read(kind, text):
    reading = kind.read(text)
    return reading.value if isinstance(reading, FinalAnswer) else reading


def kind_of(case):
    if case["kind"] == "number":
        return NumberAnswer()
    if case["kind"] == "option":
        return OptionAnswer(tuple(case["options"]))
    return LabelAnswer({label: () for label in case["labels"]})


def outcome(case, reading):
    """`right`, `unread`, or `wrong`: another value than a person reads."""
    kind, expected = kind_of(case), case["expected"]
    if isinstance(reading, Unreadable):
        assert reading.reason
        return "right" if expected is None else "unread"
    if expected is None:
        return "wrong"
    gold = kind.gold(expected) if case["kind"] == "number" else FinalAnswer(expected, "whole")
    return "right" if kind.same(reading, gold) else "wrong"


def test_replies_are_read_as_a_person_reads_them_or_found_unreadable():
    assert len(CASES) >= 800
    assert sum(case.get("held_out", False) for case in CASES) >= 350
    outcomes = []
    for case in CASES:
        readings = [final_of(split_steps(case["text"]), kind_of(case))]
        if "<think>" not in case["text"]:
            readings.append(kind_of(case).read(case["text"]))  # a reply is also read as a whole
        outcomes += [(outcome(case, reading), case["text"]) for reading in readings]
    assert [text for found, text in outcomes if found == "wrong"] == []
    assert sum(found == "right" for found, _ in outcomes) >= 0.99 * len(outcomes)


def test_a_reply_of_100_000_characters_is_read_in_seconds():
    for piece in ("- 5 ", "x = 3 or ", "two and ", "1.234,", "1,2", "$5 6 ", "\n"):
        started = time.process_time()
        for kind in (NumberAnswer(), PARTICLES, SENTIMENT):
            kind.read("Answer: " + piece * (100_000 // len(piece)))
        assert time.process_time() - started < 5, piece


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("B) a neutron", "B"),
        ("(B) a neutron.", "B"),
        ("a neutron", "B"),
        ("A neutron.", "B"),
        ("The neutron", "B"),
        ("Answer: B", "B"),
        ("Answer: (b)", "B"),
        ("The answer is B, since A is too heavy.", "B"),
        ("The answer is B because a proton is heavier.", "B"),
        ("The answer is A.", "A"),
        ("The answer is A neutron.", "B"),
        ("The correct answer is a neutron.", "B"),
        ("The correct option is (D): an electron.", "D"),
        ("So the best choice is \\boxed{D}.", "D"),
        ("\\boxed{(C) a nucleus.}", "C"),
        ("\\boxed{\\text{C}}", "C"),
        ("#### D", "D"),
        ("<answer>D</answer>", "D"),
        ("I first thought the answer is A. But the answer is D.", "D"),
        ("Protons are heavy. Therefore it must be option D.", "D"),
        ("Protons are heavy. So it would lose an electron.", "D"),
        ("答案是 D", "D"),
        ("Réponse : D", "D"),
    ],
)
def test_options_are_read_by_letter_or_by_text(text, letter):
    assert read(PARTICLES, text) == letter


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("E", "does not hold an option"),
        ("I like quarks.", "does not hold an option"),
        ("The answer is quarks.", "no option follows"),
        ("The answer is not B.", "deny"),
        ("It is not a neutron.", "deny"),
        ("So it is a proton or an electron.", "several options: A, D"),
        ("The answer is either a proton or an electron.", "several options: A, D"),
        ("The answer is (B) a proton.", "several options: A, B"),
        ("Option B is wrong.", "deny"),
        ("It could be an electron. But I cannot tell.", "no answer to be had"),
    ],
)
def test_options_that_are_denied_or_several_are_unreadable(text, reason):
    reading = read(PARTICLES, text)
    assert isinstance(reading, Unreadable)
    assert reason in reading.reason


def test_an_option_inside_a_longer_one_is_not_read():
    assert read(TOOLS, "Children play on the see saw.") == "B"
    assert read(TOOLS, "He cut it with a saw.") == "A"
    assert read(TOOLS, "The answer is hammer.") == "E"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("positive", "positive"),
        ("Positive.", "positive"),
        ("**POSITIVE**", "positive"),
        ("Sentiment: negative", "negative"),
        ("The sentiment is positive.", "positive"),
        ("Answer: Positive", "positive"),
        ("It praises the cast. Overall, the review is positive.", "positive"),
        ("The word 'negative' occurs, but the answer is positive.", "positive"),
        ("First I thought it was negative.\nAnswer: positive", "positive"),
    ],
)
def test_labels_are_read(text, label):
    assert read(SENTIMENT, text) == label


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not positive", "deny"),
        ("The sentiment is not positive.", "deny"),
        ("The sentiment isn't really positive.", "deny"),
        ("It is neither positive nor negative.", "deny"),
        ("non-negative", "deny"),
        ("Answer: positive or negative", "several labels"),
        ("Answer: mixed", "no label follows"),
        ("It is a film.", "does not hold a label"),
        ("The numbers are positively large.", "does not hold a label"),
    ],
)
def test_labels_that_are_denied_or_several_are_unreadable(text, reason):
    reading = read(SENTIMENT, text)
    assert isinstance(reading, Unreadable)
    assert reason in reading.reason


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Topic: Sci/Tech", "Sci/Tech"),
        ("science and technology", "Sci/Tech"),
        ("Answer: Sport", "Sports"),
        ("world", "World"),
    ],
)
def test_labels_may_go_by_other_words(text, label):
    assert read(TOPIC, text) == label


@pytest.mark.parametrize(
    ("kind", "value", "step", "states"),
    [
        (PARTICLES, "D", "Therefore, it would lose an electron.", True),
        (PARTICLES, "D", "The correct answer is (D).", True),
        (PARTICLES, "D", "(D) an electron: it is very light.", False),
        (PARTICLES, "D", "An electron has little mass.", False),
        (PARTICLES, "D", "So it is either a proton or an electron.", False),
        (PARTICLES, "D", "Thus it is not an electron.", False),
        (PARTICLES, "D", "Therefore, it would lose a proton.", False),
        (GROWTH, "A", "Therefore, the number of deer will stay the same as births equal deaths.", True),
        (GROWTH, "B", "Therefore, the number of deer will stay the same as births equal deaths.", False),
        (SENTIMENT, "positive", "So the sentiment is positive.", True),
        (SENTIMENT, "positive", "Overall this is positive.", True),
        (SENTIMENT, "positive", "The word 'charming' is positive.", False),
        (SENTIMENT, "positive", "So the sentiment is not positive.", False),
        (SENTIMENT, "negative", "So the sentiment is positive.", False),
    ],
)
def test_a_step_states_an_option_or_a_label_only_as_a_conclusion(kind, value, step, states):
    assert kind.states(step, FinalAnswer(value, "marker")) == states


@pytest.mark.parametrize(
    ("step", "states"),
    [
        ("- This is the correct answer.", True),
        ("This is correct.", True),
        ("This matches option D", True),
        ("(D) An electron: Correct.", True),
        ("This is the most likely outcome because it is light.", True),
        ("So D.", True),
        ("I would choose (D).", True),
        ("Conclusion: the electron goes.", True),
        ("An atom would lose the least mass if it lost an electron.", True),
        ("An atom would lose the least mass if it lost a proton.", False),
        ("An atom would not lose the least mass if it lost an electron.", False),
        ("Losing an electron may cost an atom the least mass.", False),
        ("(A) A proton: Correct.", False),
        ("So B.", False),
        ("This is incorrect.", False),
        ("We ask why this is correct.", False),
        ("Let's go through the answer choices: (D) an electron is light.", False),
    ],
)
def test_a_step_that_approves_an_option_or_answers_the_question_states_it(step, states):
    question = "Atoms have several parts. An atom would lose the least mass if it lost"
    assert PARTICLES.states(step, FinalAnswer("D", "whole"), given=question) == states


QUESTION = "One site publishes 20 articles a day, another one 10. How many in 28 days?"
RESPONSE = "The first has 20*28 = 560.\nThe other has 10*28 = 280.\nIn total, 560+280 = 840 appear.\n#### 840"


def kept(policy="drop", answer=None):
    chain = split_steps(RESPONSE)
    answer = answer or NumberAnswer().read(RESPONSE)
    steps = reasoning_steps(chain, answer, NumberAnswer(), policy=policy, question=QUESTION)
    return [step.text for step in steps]


def test_steps_that_state_the_answer_are_dropped_by_default():
    assert kept() == ["The first has 20*28 = 560.", "The other has 10*28 = 280."]


def test_steps_that_state_the_answer_stay_if_asked_for():
    assert kept("keep") == [*kept(), "In total, 560+280 = 840 appear."]


def test_an_unreadable_answer_drops_nothing():
    assert kept(answer=Unreadable("no number")) == kept("keep")
