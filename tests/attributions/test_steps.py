"""Attributions of steps, with replies that are given."""

import numpy as np
import pytest

from ice_eval.attributions import Lens, method_of
from ice_eval.attributions.steps import rating_request
from ice_eval.errors import ConfigError
from ice_eval.models import Generated
from ice_eval.records import Encoded, Span

STEPS = ("Short.", "This one is long.", "Mid length.")
SAME, CHANGED, UNREAD = 1000.0, -1000.0, 0.0


def chain(steps=STEPS):
    n = len(steps)
    fields = {"question": "How many?", "answer": "7"}
    ids = np.arange(n + 1)
    return Encoded("p", ids, np.zeros_like(ids), np.arange(-1, n), (Span("chain", 0, 1),) * n, tuple(steps), fields)


class Replies:
    """Stands for a model in a lens: answers a prompt with a text."""

    chat = True

    def __init__(self, text):
        self.model, self.text, self.asked = self, text, []

    def generate(self, prompts, *, turns, max_tokens, stop):
        self.asked += prompts
        return [Generated(self.text, 9) for _ in prompts]


def attribute(spec, *, text="", odds=(), steps=STEPS):
    """The numbers of one chain, and the problem if there are none."""
    method, asked = method_of(spec), []

    def prober(batch, masks, repeat):
        asked.append((repeat, [np.flatnonzero(~keep).tolist() for keep in masks[0]]))
        return [np.array(odds[len(asked) - 1], dtype=float)]

    lens = Lens(Replies(text), method.needs, 0, spec, prober=prober)
    [values] = method.attribute(lens, [chain(steps)])
    answer = lens.answers.get("p")
    problem = None if answer is None else answer.problem
    assert (problem is None) == bool(np.isfinite(values).all())
    return values.tolist() if problem is None else problem, asked


def test_controls_need_no_model():
    assert attribute("position")[0] == [0, 1, 2]
    assert attribute("position:highest=first")[0] == [0, -1, -2]
    assert attribute("length")[0] == [6, 17, 11]
    assert len(set(attribute("random")[0])) == 3


@pytest.mark.parametrize(
    ("text", "ratings"),
    [
        ("1: 3\n2: 10\n3: 0", [3, 10, 0]),
        ("Step 1: 3/10\n**Step 2**: 9.5\n3. 7", [3, 9.5, 7]),
        ("<think>1: 9\n2: 9\n3: 9</think>1: 3\n2: 4\n3: 5", [3, 4, 5]),
        ("Here are my ratings:\n- 1: 3 (sets up)\n- 2: 4\n(3): 5", [3, 4, 5]),
    ],
)
def test_ratings_are_read(text, ratings):
    assert attribute("self-report", text=text)[0] == ratings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1. 3 apples are left.\n2. 4 more.\n3. 7 in all.", "3 of 3 steps are not rated"),
        ("1: 3\n2: 4", "1 of 3 steps are not rated"),
        ("1: 3\n2: 4\n3: 50", "a rating of 50 is not on the scale from 0 to 10"),
        ("", "3 of 3 steps are not rated"),
    ],
)
def test_ratings_that_are_not_there_are_no_ratings(text, reason):
    assert attribute("self-report", text=text)[0] == reason


def test_the_model_is_asked_about_every_step_on_one_line():
    prompt, limit = rating_request(chain(("One\nstep.", "Two.")))
    assert "1. One step.\n2. Two." in prompt and 'answered "7"' in prompt
    assert rating_request(chain())[1] == limit, "most chains are asked about together"
    assert rating_request(chain(("One.",) * 40))[1] > 40 * 12


def test_steps_without_which_the_answer_is_another_one():
    assert attribute("leave-one-out", odds=[(SAME, CHANGED, SAME)])[0] == [0, 1, 0]
    twice = [(SAME, CHANGED, SAME), (CHANGED, CHANGED, SAME)]
    assert attribute("leave-one-out:samples=2", odds=twice)[0] == [0.5, 1, 0]


def test_a_reply_without_a_step_that_cannot_be_read_is_neither_the_same_nor_changed():
    assert attribute("leave-one-out", odds=[(SAME, UNREAD, CHANGED)])[0] == [0, 0.5, 1]
    twice = [(SAME, CHANGED, UNREAD), (UNREAD, UNREAD, UNREAD)]
    assert attribute("leave-one-out:samples=2", odds=twice)[0] == [0.25, 0.75, 0.5]


def test_replies_that_cannot_be_read_at_all_tell_no_step_from_another():
    found, _ = attribute("leave-one-out", odds=[(UNREAD,) * 3])
    assert found == "without any one of the steps no answer could be read"


def test_what_picks_a_step_is_not_what_judges_the_pick():
    _, asked = attribute("leave-one-out:samples=2", odds=[(SAME,) * 3] * 2)
    assert [removed for _, removed in asked] == [[[0], [1], [2]]] * 2
    assert [repeat for repeat, _ in asked] == [1, 2], "rows are asked with repeat 0"


def test_options_are_checked():
    with pytest.raises(ConfigError, match="at least 1"):
        method_of("leave-one-out:samples=0")
    with pytest.raises(ConfigError, match="the attribution 'position:highest=middle'"):
        method_of("position:highest=middle")
