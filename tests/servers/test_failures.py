"""What goes wrong at the other end: what is tried again, what ends the run, and what is said."""

import os
import sys
import time

import pytest
from tests.servers.asking import ask, ask_one, hasty, question
from tests.servers.chat_server import ChatServer, Say, echo, error

from ice_eval.errors import ConfigError, MissingExtraError, ModelError, StorageError
from ice_eval.servers import Budget, Chat, Message, Request, ResponseStore, Server, read_responses


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_no_retry_mends_stops_at_once_with_the_servers_words(path, status):
    def refuse(request, number):
        return error(status, "no\nsuch\x1b[31m luck") if number > 1 else echo(request, number)

    with ChatServer(refuse) as server, pytest.raises(ConfigError) as caught:
        ask(server, path, [question(i) for i in range(50)], concurrency=1)
    assert str(caught.value).startswith(f"{server.url} refuses: status {status}: no such[31m luck")
    assert sum(server.asked.values()) == 2
    assert [each.status for each in read_responses(path)] == ["ok"]


@pytest.mark.parametrize(
    ("said", "extra", "remedy"),
    [
        (
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            {},
            "--limit-field max_c",
        ),
        (
            "max_tokens is too large: 9000. This model supports 4096 tokens",
            {},
            "lower --max-tokens and --answer-tokens",
        ),
        ("'temperature' does not support 0 with this model.", {}, "--temperature server"),
        ("Unrecognized request argument supplied: top_q", {"top_q": 1}, "comes from --extra-body"),
        ("no such luck", {}, "no such luck"),
    ],
)
def test_a_refused_field_names_the_option_that_helps(path, said, extra, remedy):
    with ChatServer(lambda request, number: error(400, said)) as server, pytest.raises(ConfigError, match=remedy):
        ask(server, path, [question("x", temperature=0.0, extra=extra)])


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000.", None),
        (400, "Too much.", "context_length_exceeded"),
        (400, "the request exceeds the available context size, try increasing it", 400),
        (400, "The input (5000 tokens) is longer than the model's context.", None),
        (400, "prompt is too long: 208310 tokens > 200000 maximum", "invalid_request_error"),
        (422, "The input token count exceeds the maximum number of tokens allowed", None),
        (413, "Payload Too Large", None),
    ],
)
def test_a_request_that_is_too_long_is_settled_and_the_others_go_on(path, status, said, code):
    def behave(request, number):
        return error(status, said, code=code) if request["messages"][0]["content"] == "0" else echo(request, number)

    requests = [question(i) for i in range(3)]
    with ChatServer(behave) as server:
        found = ask(server, path, requests, concurrency=1, budget=Budget(max_requests=2))
        assert [each.status for each in found.values()] == ["too_long", "ok", "ok"], "what was not read costs nothing"
        ask(server, path, requests)
    assert sum(server.asked.values()) == 3, "it is not asked again"
    [first] = [each for each in found.values() if each.status == "too_long"]
    assert said.split(",")[0][:20] in first.error and first.billed == (0, 0)


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [(400, "x", "content_filter"), (400, "Content Exists Risk", None), (403, "flagged by content policy", None)],
)
def test_a_filter_of_the_server_is_a_refusal_of_one_request(path, status, said, code):
    with ChatServer(lambda request, number: error(status, said, code=code)) as server:
        assert ask_one(server, path).status == "refusal"


def test_an_empty_account_is_no_reason_to_wait(path):
    with ChatServer(lambda request, number: error(429, "pay first", code="insufficient_quota")) as server:
        with pytest.raises(ConfigError, match="status 429: pay first"):
            ask_one(server, path)
    assert sum(server.asked.values()) == 1


def test_no_redirection_is_followed(path):
    with ChatServer() as other:
        elsewhere = Say(307, "", {"Location": f"{other.url}/chat/completions"})
        with ChatServer(lambda request, number: elsewhere) as server:
            with pytest.raises(ConfigError, match="status 307"):
                ask_one(server, path)
        assert not other.asked


def test_a_wrong_address_is_noticed_soon_and_leaves_nothing(path):
    with ChatServer() as server:
        pass
    with pytest.raises(ConfigError, match=r"no server can be reached at http://127.*start it or correct --base-url"):
        ask(server, path, [question(i) for i in range(20)])
    assert path.read_bytes() == b""


@pytest.mark.parametrize("url", ["http://é..com/v1", "http://lo\ncal/v1"])
def test_an_address_that_the_sdk_takes_for_none_is_told_in_one_sentence(tmp_path, url):
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        with pytest.raises(ConfigError, match="is no address; expected one as http://localhost:8000/v1"):
            Chat(Server(base_url=url), store).ask([Request(messages=(Message("user", "?"),), model="m", max_tokens=1)])


def test_a_request_that_never_works_is_an_error_and_asked_again_next_time(path):
    def behave(request, number):
        return "broken" if request["messages"][0]["content"] == "bad" else echo(request, number)

    requests = [question("good"), question("bad")]
    with ChatServer(behave) as server:
        good, bad = ask(server, path, requests, attempts=3).values()
        assert (good.status, bad.status, bad.error) == ("ok", "error", "status 500: out of order")
        assert server.asked == {"good": 1, "bad": 3}
        server.behave = echo
        good, bad = ask(server, path, requests).values()
        assert (good.status, bad.status) == ("ok", "ok")
    assert server.asked == {"good": 1, "bad": 4}


def test_a_server_that_answers_nobody_any_more_ends_the_run(path):
    with ChatServer(lambda request, number: echo(request, number) if number <= 3 else "broken") as server:
        with pytest.raises(ModelError, match=r"answered none of the last 5 requests, each tried 2 times \(status 500"):
            ask(server, path, [question(i) for i in range(100)], attempts=2, concurrency=1)
    assert sum(server.asked.values()) == 3 + 5 * 2


@pytest.mark.parametrize("status", [429, 500])
def test_a_pause_that_the_server_asks_for_is_kept(path, status):
    moments = []

    def behave(request, number):
        moments.append(time.monotonic())
        return error(status, "wait", retry_after=0.3) if number == 1 else echo(request, number)

    with ChatServer(behave) as server:
        assert ask_one(server, path).status == "ok"
    assert 0.3 <= moments[1] - moments[0] < 1.5


def test_a_very_long_pause_ends_the_run(path):
    with ChatServer(lambda request, number: error(429, "tomorrow", retry_after=86400)) as server:
        with pytest.raises(ModelError, match=r"asks for a pause of 86400 seconds; .* run the same command later"):
            ask_one(server, path)


def test_a_reason_to_stop_does_not_wait_for_pauses(path):
    said = [error(429, "wait", retry_after=100), error(500, "x"), error(500, "x"), error(401, "no")]

    def behave(request, number):
        return said[number - 1]

    began = time.monotonic()
    with ChatServer(behave, pause_s=0.1) as server, pytest.raises(ConfigError, match="status 401: no"):
        ask(server, path, [question(i) for i in range(9)], concurrency=4, first_backoff_s=100.0, most_backoff_s=100.0)
    assert time.monotonic() - began < 20


def test_a_disk_that_is_full_ends_the_run_with_a_message(path, monkeypatch):
    with ChatServer() as server, ResponseStore(path) as store:
        monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StorageError, match="cannot be written: No space left on device"):
            Chat(hasty(server, concurrency=2), store).ask([question(i) for i in range(50)])
    assert sum(server.asked.values()) <= 4


def test_without_the_sdk_the_pip_command_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with ChatServer() as server, pytest.raises(MissingExtraError, match=r"pip install 'ice-eval\[api\]'"):
        ask_one(server, path)
