import numpy as np
import pytest

from ice_eval.cot import Answer, Number, Problem, given_steps
from ice_eval.cot.cases import Case, case_of, written_case
from ice_eval.cot.fills import step_fills
from ice_eval.cot.operators import step_operators
from ice_eval.errors import DataError
from ice_eval.servers import Response

STEPS = ["a.", "b.", "c.", "d."]
FILLS = ["w.", "x.", "y.", "z."]


def case(identity, steps, answer="7"):
    chain = given_steps(steps)
    return Case(Problem(identity, "How many?", (), None, Number()), chain, Answer(answer, "whole"), chain.steps)


def response(text, **fields):
    return Response(key="k", request="r", repeat=0, time="now", **{"status": "ok", "text": text, **fields})


@pytest.mark.parametrize(("name", "shown"), [("delete", ["b.", "d."]), ("replace", ["w.", "b.", "y.", "d."])])
def test_kept_steps_stay_in_their_order_and_the_others_go_or_are_replaced(name, shown):
    assert step_operators.get(name)().show(STEPS, (1, 3), FILLS) == shown
    assert step_operators.get(name)().show(STEPS, (0, 1, 2, 3), FILLS) == STEPS


def test_shuffles_are_all_other_orders_each_once():
    shuffle = step_operators.get("shuffle")()
    orders = shuffle.orders(3, 100, np.random.default_rng(0))
    assert len(set(orders)) == len(orders) == 5 and (0, 1, 2) not in orders
    assert len(set(shuffle.orders(12, 7, np.random.default_rng(0)))) == 7


def test_a_chain_is_cut_after_every_step_but_the_last():
    assert step_operators.get("truncate")().orders(4, 1, np.random.default_rng(0)) == [(0,), (0, 1), (0, 1, 2)]


def test_fills_are_steps_of_others_that_do_not_give_the_answer_away():
    cases = [case("one", ["First.", "Second."]), case("two", ["Third.", "So 3 + 4 = 7.", "Fourth."], answer="9")]
    fills = step_fills(cases, seed=0)
    assert set(fills["one"]) == {"Third.", "Fourth."}, "the sum is the answer of the first problem"
    assert len(fills["two"]) == 3 and set(fills["two"]) <= {"First.", "Second."}
    assert fills == step_fills(cases, seed=0) and fills != step_fills(cases, seed=3)
    with pytest.raises(DataError, match="needs steps of other problems"):
        step_fills(cases[:1], seed=0)


PROBLEM = Problem("p", "How many?", (), Answer("12", "whole"), Number())


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
    kept = case_of(PROBLEM, chain, Answer("12", "whole"), policy="keep")
    assert len(kept.steps) == 2 and kept.skip_reason is None
