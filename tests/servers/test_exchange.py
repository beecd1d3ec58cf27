import json
from dataclasses import replace

import pytest

from ice_eval.errors import ConfigError, DataError
from ice_eval.servers import Message, Request, Response, TokenUsage

QUESTION = Request(messages=(Message("user", "2 + 2?"),), model="m", max_tokens=5, temperature=0.0)


def test_the_key_of_a_request_never_changes():
    # Written down once: another value would ask, and pay for, everything again.
    assert QUESTION.key == "f7660b14ad70f75d75b754f070e0c2b32767bbae5c2bb36f99eb6115326bab9c-0"


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "2 + 2?"),)},
        {"messages": (Message("user", "2 + 2"),)},
        {"model": "n"},
        {"max_tokens": 6},
        {"temperature": 0.5},
        {"temperature": None},
        {"extra": {"top_p": 0.5}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_the_server_sees_is_in_the_hash(change):
    assert replace(QUESTION, **change).hash != QUESTION.hash


def test_a_repeat_is_the_same_question_with_another_key():
    again = replace(QUESTION, repeat=1)
    assert again.hash == QUESTION.hash
    assert again.key != QUESTION.key


def test_what_is_left_to_the_server_is_not_sent():
    assert replace(QUESTION, temperature=None).body() == {
        "messages": [{"role": "user", "content": "2 + 2?"}],
        "model": "m",
        "max_tokens": 5,
    }


def test_the_estimate_counts_bytes_and_all_tokens_that_are_allowed():
    assert replace(QUESTION, messages=(Message("user", "abcd"), Message("user", "é" * 3))).most_tokens() == (12, 5)


def test_a_response_survives_its_file():
    response = Response(
        key="k-0",
        request="k",
        repeat=0,
        status="ok",
        text="four\n",
        usage=TokenUsage(3, 1),
        time="t",
        billed=TokenUsage(6, 2),
    )
    assert Response.from_json(json.loads(json.dumps(response.to_json()))) == response


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"repeat": -1}])
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match="a request needs max_tokens ≥ 1 and repeat ≥ 0"):
        replace(QUESTION, **wrong)


def test_what_no_server_could_read_is_refused():
    with pytest.raises(DataError, match="half a character"):
        replace(QUESTION, messages=(Message("user", "\ud800"),))
