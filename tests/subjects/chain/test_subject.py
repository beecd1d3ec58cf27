import pytest
from tests.subjects.chain.small_cases import case

from ice_eval.errors import DataError
from ice_eval.subjects.chain.subject import step_fills


def test_fills_are_steps_of_others_that_do_not_give_the_answer_away():
    cases = [case("one", ["First.", "Second."]), case("two", ["Third.", "So 3 + 4 = 7.", "Fourth."], answer="9")]
    fills = step_fills(cases, seed=0)
    assert set(fills["one"]) == {"Third.", "Fourth."}, "the sum is the answer of the first problem"
    assert len(fills["two"]) == 3 and set(fills["two"]) <= {"First.", "Second."}
    assert fills == step_fills(cases, seed=0) and fills != step_fills(cases, seed=3)
    with pytest.raises(DataError, match="needs steps of other problems"):
        step_fills(cases[:1], seed=0)
