import pytest

from ice_eval.errors import ConfigError
from ice_eval.subjects.chain import NumberAnswer, Unreadable, reasoning_steps, split_steps

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


def test_another_policy_is_refused():
    with pytest.raises(ConfigError, match="'mark': drop or keep is expected"):
        kept("mark")
