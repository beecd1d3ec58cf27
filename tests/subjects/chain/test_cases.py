import pytest
from tests.subjects.chain.small_cases import response

from ice_eval.subjects.chain import FinalAnswer, NumberAnswer, Problem, given_steps
from ice_eval.subjects.chain.problems import case_of, written_case

PROBLEM = Problem("p", "How many?", (), FinalAnswer("12", "whole"), NumberAnswer())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (response("One step.\nAnother step.\nAnswer: 12"), None),
        (response("One step.\nAnswer: 12"), "fewer than 2 steps"),
        (response("One step.\nSo 3 * 4 = 12.\nAnswer: 12"), "fewer than 2 steps besides those that state the answer"),
        (response("One.\nTwo.\nAnswer: none at all"), "the answer cannot be read"),
        (
            response("One.\nTwo.\nThree is 3 and", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (response("One.\nTwo.\nAnswer: 12\nAnd now", status="truncated"), None),
        (response("One.\nTwo.\nAnswer: 12\n", status="truncated"), None),
        (  # perhaps of 1250
            response("One.\nTwo.\nAnswer: 12", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (
            response("<think>One.\nTwo.\nThe answer is 12. But wait, is", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (response("<think>One.\nTwo.</think>\nThe answer is 12. But wait, is", status="truncated"), None),
        (response("", status="refusal"), "the answer cannot be read: the model declined"),
        (response("", status="error"), "the answer cannot be read: no reply arrived"),
        (response("12", reasoning="First this.\nThen that."), None),
    ],
)
def test_a_chain_takes_part_or_it_is_said_why_not(reply, reason):
    found = written_case(PROBLEM, reply)
    assert found.skip_reason == reason if reason is None else found.skip_reason.startswith(reason)
    if reason is None:
        assert found.is_right and len(found.steps) >= 2


def test_steps_that_state_the_answer_may_be_kept():
    chain = given_steps(["One step.", "So 3 * 4 = 12."])
    kept = case_of(PROBLEM, chain, FinalAnswer("12", "whole"), policy="keep")
    assert len(kept.steps) == 2 and kept.skip_reason is None
