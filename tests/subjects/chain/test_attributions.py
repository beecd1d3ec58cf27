import numpy as np
import pytest
from tests.subjects.chain.small_cases import case, response

from ice_eval._registry import from_spec
from ice_eval.errors import ConfigError
from ice_eval.subjects.chain import StepLens, Unexplained, step_attributions

STEPS = ["Short.", "This one is long.", "Mid length."]


def attribute(spec, replies=(), steps=STEPS):
    method = from_spec(spec, step_attributions)
    lens = StepLens(list(replies), np.random.default_rng(0))
    return method.attribute(case("p", steps), lens).tolist()


def test_controls_need_no_model():
    assert attribute("position") == [0, 1, 2]
    assert attribute("position:highest=first") == [0, -1, -2]
    assert attribute("length") == [6, 17, 11]
    assert len(set(attribute("random"))) == 3


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
    assert attribute("self-report", [response(text)]) == ratings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1. 3 apples are left.\n2. 4 more.\n3. 7 in all.", "3 of 3 steps are not rated"),
        ("1: 3\n2: 4", "1 of 3 steps are not rated"),
        ("1: 3\n2: 4\n3: 50", "50 is not on the scale"),
        ("", "3 of 3"),
    ],
)
def test_ratings_that_are_not_there_are_no_ratings(text, reason):
    with pytest.raises(Unexplained, match=reason):
        attribute("self-report", [response(text)])


def test_a_rating_that_was_cut_off_is_none():
    with pytest.raises(Unexplained, match="1 of 3 steps are not rated"):
        attribute("self-report", [response("1: 3\n2: 4\n3: 1", status="truncated")])  # perhaps of 10


def test_the_model_is_asked_about_every_step_on_one_line():
    [probe] = step_attributions.get("self-report")().probes(case("p", ["One\nstep.", "Two."]))
    assert "1. One step.\n2. Two." in probe.prompt and probe.kept is None


def test_steps_without_which_the_answer_is_another_one():
    replies = [response("Answer: 7"), response("Answer: 8"), response("Answer: 7.0")]
    assert attribute("leave-one-out", replies) == [0, 1, 0]
    twice = [response(f"Answer: {answer}") for answer in (7, 8, 8, 8, 7, 7)]
    assert attribute("leave-one-out:samples=2", twice) == [0.5, 1, 0]


def test_a_reply_without_a_step_that_cannot_be_read_is_neither_the_same_nor_changed():
    unread, same, changed = response("I do not know."), response("Answer: 7"), response("Answer: 8")
    assert attribute("leave-one-out", [same, unread, changed]) == [0, 0.5, 1]
    assert attribute("leave-one-out:samples=2", [same, unread, changed, unread, unread, unread]) == [0.25, 0.75, 0.5]


def test_replies_that_cannot_be_read_at_all_tell_no_step_from_another():
    with pytest.raises(Unexplained, match="without any one of the steps no answer could be read"):
        attribute("leave-one-out", 3 * [response("I do not know.")])


def test_what_picks_a_step_is_not_what_judges_the_pick():
    probes = step_attributions.get("leave-one-out")(samples=2).probes(case("p", STEPS))
    assert [probe.kept for probe in probes[::2]] == [(1, 2), (0, 2), (0, 1)]
    assert {probe.repeat for probe in probes} == {1, 2}, "rows are asked with repeat 0"


def test_options_are_checked():
    with pytest.raises(ConfigError, match="at least 1"):
        from_spec("leave-one-out:samples=0", step_attributions)
    with pytest.raises(ConfigError, match="the step attribution 'position:highest=middle'"):
        from_spec("position:highest=middle", step_attributions)
    with pytest.raises(ConfigError, match="no step attribution named 'postion'; did you mean 'position'"):
        from_spec("postion", step_attributions)
