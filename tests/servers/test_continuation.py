"""Text completions: what is asked, and the log-probabilities that come back in either shape."""

import json
from dataclasses import replace

import pytest
from tests.servers.chat_server import ChatServer, continuation, error

from ice_eval.errors import DataError, RefusedError
from ice_eval.servers import Chat, Continuation, Logprobs, Response, ResponseStore, Server, TokenUsage

PROMPT = "Review: fine\nSentiment:"
ASKED = Continuation(prompt=PROMPT, model="m", logprobs=5)


def ask(server, tmp_path, question=ASKED):
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        chat = Chat(Server(base_url=server.url, first_backoff_s=0.01, most_backoff_s=0.02, attempts=3), store)
        [response] = chat.ask([question]).values()
    return response


def test_the_key_of_a_continuation_never_changes():
    # Written down once: another value would ask, and pay for, everything again.
    assert ASKED.key == "d0cba213fd92cea6ef9a5928b07744ecc417ff15125bf2d9add905b8e0f770e5-0"


@pytest.mark.parametrize(
    "change",
    [{"prompt": (1, 2)}, {"model": "n"}, {"max_tokens": 2}, {"temperature": None}, {"logprobs": 6}, {"echo": True},
     {"extra": {"min_tokens": 1}}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_everything_that_the_server_sees_is_in_the_hash(change):
    assert replace(ASKED, **change).hash != ASKED.hash


def test_tokens_are_counted_where_they_are_known_and_estimated_elsewhere():
    assert replace(ASKED, prompt=(1, 2, 3)).most_tokens() == TokenUsage(3, 1)
    assert replace(ASKED, prompt="abcd").most_tokens() == TokenUsage(2, 1)


def test_half_a_character_is_refused():
    with pytest.raises(DataError, match="lone surrogate"):
        replace(ASKED, prompt="\ud800")


@pytest.mark.parametrize("prompt", [PROMPT, (5, 6, 7)])
def test_what_goes_to_the_server_and_where(tmp_path, prompt):
    with ChatServer(lambda request, number: continuation({" good": -0.5, " bad": -1.0})) as server:
        response = ask(server, tmp_path, replace(ASKED, prompt=prompt))
    sent = prompt if isinstance(prompt, str) else list(prompt)
    assert server.paths == ["/v1/completions"]
    assert server.requests == [{"prompt": sent, "model": "m", "max_tokens": 1, "temperature": 0.0, "logprobs": 5}]
    assert response.logprobs == Logprobs((" good",), (-0.5,), {" good": -0.5, " bad": -1.0})


SHAPES = {
    "of completions": {
        "tokens": ["x", " good"],
        "token_logprobs": [None, -0.5],
        "top_logprobs": [None, {" good": -0.5}],
    },
    "of chats": {
        "content": [
            {"token": "x", "logprob": None},
            {"token": " good", "logprob": -0.5, "top_logprobs": [{"token": " good", "logprob": -0.5, "bytes": [1]}]},
        ]
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_log_probabilities_are_read_in_either_shape(tmp_path, shape):
    with ChatServer(lambda request, number: continuation({}, text=" good", logprobs=SHAPES[shape])) as server:
        response = ask(server, tmp_path)
    assert response.logprobs == Logprobs(("x", " good"), (None, -0.5), {" good": -0.5})


@pytest.mark.parametrize("nothing", [None, {}, {"content": []}, {"tokens": [], "top_logprobs": []}])
def test_where_a_server_names_no_tokens_there_are_none(tmp_path, nothing):
    with ChatServer(lambda request, number: continuation({}, text=" good", logprobs=nothing)) as server:
        response = ask(server, tmp_path)
    assert response.text == " good"
    assert response.logprobs is None or response.logprobs == Logprobs((), (), {})


def test_what_is_not_finite_is_no_number(tmp_path):
    said = continuation({" good": -0.5, " bad": float("-inf")}, tokens=["a", "b"], values=[float("nan"), -0.5])
    with ChatServer(lambda request, number: said) as server:
        response = ask(server, tmp_path)
    assert response.logprobs == Logprobs(("a", "b"), (None, -0.5), {" good": -0.5})


def test_a_number_that_no_float_holds_makes_no_sense(tmp_path):
    said = continuation({" good": -(10**400)}, tokens=[" good"], values=[-0.5])
    with ChatServer(lambda request, number: said) as server:
        response = ask(server, tmp_path)
    assert response.status == "error"
    assert "the answer makes no sense" in response.error


def test_log_probabilities_survive_the_file():
    response = Response(
        key="k-0", request="k", repeat=0, status="ok", time="t", logprobs=Logprobs(("a",), (None,), {" b": -1.5})
    )
    assert Response.from_json(json.loads(json.dumps(response.to_json()))) == response
    plain = replace(response, logprobs=None)
    assert Response.from_json(json.loads(json.dumps(plain.to_json()))) == plain


@pytest.mark.parametrize("status", [400, 422])
def test_a_request_that_the_server_does_not_take_is_told_from_other_failures(tmp_path, status):
    with ChatServer(lambda request, number: error(status, "prompts are texts")) as server:
        with pytest.raises(RefusedError, match=f"refuses: status {status}: prompts are texts"):
            ask(server, tmp_path, replace(ASKED, prompt=(1, 2)))
    assert len(server.requests) == 1
