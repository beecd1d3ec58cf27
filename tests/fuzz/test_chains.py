"""Whatever a model wrote, its steps are slices of it in order, and its answer is read or found unreadable."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.odd_texts import broken_texts, texts

from ice_eval.subjects.chain import (
    FinalAnswer,
    LabelAnswer,
    NumberAnswer,
    OptionAnswer,
    Unreadable,
    given_steps,
    reasoning_steps,
    split_steps,
)

N_RESPONSES = {"ordinary": 80, "slow": 2_000}
KINDS = (
    NumberAnswer(),
    OptionAnswer(("cat", "a dog", "the (big) one.", "[")),
    OptionAnswer(("1", "2", "3", "4")),
    LabelAnswer({"positive": ("good",), "negative": ()}),
)
PIECES = [
    "Add 3. ", "\n", "\n\n", " ", "\r\n", "1. ", "2) ", "- ", "A. ", "(", ")", ":", "...", "e.g. ", "U.S. ", "# H\n",
    "$", "$$", "$x$", "\\[", "\\]", "\\(", "\\)", "\\begin{align}", "\\end{align}", "```", "`", "**", "####", "| a |\n",
    "The answer is ", "Answer:", "\\boxed{", "{", "}", "<think>", "</think>", "<answer>", "</answer>", "答案是", "not ",
    "½", "3½", "1,234", "1,2", "1/0", "0/0", "\\frac{1}{0}", "\\frac12", "1e999", "1e-999", "2 × 10^{5}", "9" * 250,
    "%", "$5", " million", "A", "(C)", "positive", "٣", "²", "①", "Ⅷ", "=", "≈", "x = 3", "12:30", "so ", "total of ",
]  # fmt: skip
responses = st.lists(st.one_of(st.sampled_from(PIECES), texts(max_pieces=2), broken_texts()), max_size=25).map("".join)


def check(response, question):
    chain = split_steps(response)
    end = 0
    parts = [*chain.steps, *chain.asides, *([chain.answer] if chain.answer else [])]
    for part in sorted(parts, key=lambda part: part.start):
        assert part.text == response[part.start : part.end] == part.text.strip() != ""
        assert part.start >= end
        end = part.end
    given_chain = given_steps([response, question])
    assert [given_chain.response[step.start : step.end] for step in given_chain.steps] == [
        step.text for step in given_chain.steps
    ]
    for kind in KINDS:
        found = kind.read(response)
        assert isinstance(found, FinalAnswer | Unreadable)
        assert isinstance(kind.gold(response), FinalAnswer | None)
        if isinstance(found, FinalAnswer):
            assert kind.same(found, found)
        assert set(reasoning_steps(chain, found, kind, question=question)) <= set(chain.steps)


def fuzz(*, n_responses, fixed):
    tried = 0

    @settings(max_examples=n_responses, derandomize=fixed, database=None)
    @given(response=responses, question=responses)
    def law(response, question):
        nonlocal tried
        check(response, question)
        tried += 1

    law()
    return tried


def test_steps_and_answers_of_any_response(record_property):
    tried = fuzz(n_responses=N_RESPONSES["ordinary"], fixed=True)
    assert tried >= N_RESPONSES["ordinary"]
    record_property("fuzz_cases", tried)


@pytest.mark.slow
def test_steps_and_answers_of_many_other_responses(record_property):
    tried = fuzz(n_responses=N_RESPONSES["slow"], fixed=False)
    assert tried >= N_RESPONSES["slow"]
    record_property("fuzz_cases", tried)


def seconds(piece):
    """CPU time to read a response that repeats a piece for 20,000 characters, as a model does that has lost its way."""
    response = piece * (20_000 // len(piece))
    started = time.process_time()
    check(response, piece)
    return time.process_time() - started


@pytest.mark.parametrize("piece", ["\n", "...", "۔", "so is ", "3½", "B or "])
def test_a_response_that_goes_round_in_circles_does_not_take_minutes(piece):
    assert seconds(piece) < 20  # 130 s and more before runs of marks and lines were tried once


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*PIECES, "a ", "a. ", "1. 2. ", "$x $", "\\( ", "not not ", "((", "1 1/", "[", "<"])
def test_no_response_that_goes_round_in_circles_takes_minutes(piece):
    assert seconds(piece) < 30
