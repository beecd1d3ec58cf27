"""A run completes through bad weather, pays for nothing twice and tells nobody the key."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import fields, replace
from importlib.resources import files

import jsonschema
import pytest
from tests.servers.chat_server import FAULTS, ChatServer, Say, completion, echo, error, stormy

from ice_eval.errors import BudgetError, ConfigError, MissingExtraError, ModelError, StorageError
from ice_eval.servers import Budget, Chat, Message, Request, Response, ResponseStore, Server, read_responses

KEY = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def question(text, **changes):
    return Request(**{"messages": (Message("user", str(text)),), "model": "m", "max_tokens": 20, **changes})


def hasty(server, **changes):
    """The server's address, with less patience than anybody should have."""
    quick = {"first_backoff_s": 0.005, "most_backoff_s": 0.05, "timeout_s": 20.0, "concurrency": 8}
    return Server(base_url=server.url, **{**quick, **changes})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "responses.jsonl"


def ask(server, path, requests, *, budget=None, progress=None, **changes):
    with ResponseStore(path) as store:
        return Chat(hasty(server, **changes), store, budget=budget).ask(requests, progress=progress)


def ask_one(server, path, **changes):
    [response] = ask(server, path, [question("2 + 2?")], **changes).values()
    return response


def test_bad_weather_changes_no_answer(tmp_path):
    requests = [question(i) for i in range(80)]
    with ChatServer() as calm:
        expected = ask(calm, tmp_path / "calm.jsonl", requests)
    with ChatServer(stormy(0.3, seed=1)) as storm:
        found = ask(storm, tmp_path / "storm.jsonl", requests, attempts=20, timeout_s=0.8, concurrency=16)
    assert set(storm.faults) == set(FAULTS)
    assert {key: (each.status, each.text) for key, each in found.items()} == {
        key: ("ok", each.text) for key, each in expected.items()
    }
    # At least: on a busy machine a good answer may be late, too.
    lost = storm.faults["reset"] + storm.faults["hang"] + storm.faults["malformed"] + storm.faults["cut"]
    assert sum(each.lost for each in found.values()) >= lost


def test_what_a_response_holds(path):
    with ChatServer() as server:
        [response] = ask(server, path, [question("x", seed=3, temperature=0.7, repeat=2)]).values()
    assert server.requests == [
        {
            "messages": [{"role": "user", "content": "x"}],
            "model": "m",
            "max_tokens": 20,
            "seed": 3,
            "temperature": 0.7,
        }
    ]
    assert response.key == f"{response.request}-2"
    assert (response.status, response.finish_reason, response.repeat) == ("ok", "stop", 2)
    assert (response.usage, response.billed, response.lost) == ((10, 5), (10, 5), 0)
    assert (response.model, response.fingerprint, response.content) == ("served", "fp_1", None)
    assert response.time.endswith("+00:00")
    assert [response] == list(read_responses(path))


def test_every_line_of_the_file_is_as_the_published_schema_says(path):
    schema = json.loads((files("ice_eval.results") / "schemas" / "responses.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {field.name for field in fields(Response)}
    with ChatServer(lambda request, number: completion(usage=None) if number == 1 else "cut") as server:
        ask(server, path, [question("x"), question("y")], attempts=2, concurrency=1)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["status"] for line in lines] == ["ok", "error"]
    for line in lines:
        jsonschema.validate(line, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**line, "status": "fine"}, schema)


def test_requests_are_kept_on_request_and_the_limit_may_have_its_other_name(path):
    with ChatServer() as server, ResponseStore(path) as store:
        server_ = hasty(server, limit_field="max_completion_tokens")
        [response] = Chat(server_, store, keep_requests=True).ask([question("x", extra={"top_p": 0.5})]).values()
    assert response.content == question("x", extra={"top_p": 0.5}).body()
    assert server.requests[0] == {
        "messages": [{"role": "user", "content": "x"}],
        "model": "m",
        "top_p": 0.5,
        "max_completion_tokens": 20,
    }


@pytest.mark.parametrize(
    ("said", "status", "text"),
    [
        (completion("4", finish_reason="length"), "truncated", "4"),
        (completion("", finish_reason="length"), "truncated", ""),
        (completion(" \n"), "empty", " \n"),
        (completion(None), "empty", ""),
        (completion(None, message={"refusal": "I won't."}), "refusal", "I won't."),
        (completion("par", finish_reason="content_filter"), "refusal", "par"),
        (error(400, "filtered", code="content_filter"), "refusal", ""),
        (completion("4", usage=None, model=None), "ok", "4"),
        (completion("4", usage={"prompt_tokens": None}), "ok", "4"),
        (completion("4", usage={"prompt_tokens": -1, "completion_tokens": 1e999}), "ok", "4"),
    ],
)
def test_how_an_answer_is_recorded(path, said, status, text):
    with ChatServer(lambda request, number: said) as server:
        response = ask_one(server, path)
        assert (response.status, response.text) == (status, text)
        assert ask_one(server, path) == response
    assert sum(server.asked.values()) == 1


def test_reasoning_is_kept_apart_from_the_text(path):
    with ChatServer(lambda request, number: completion("4", message={"reasoning_content": "2, 3, 4"})) as server:
        response = ask_one(server, path)
    assert (response.text, response.reasoning) == ("4", "2, 3, 4")


def test_without_a_count_of_tokens_the_estimate_counts(path):
    with ChatServer(lambda request, number: completion(usage=None)) as server:
        response = ask_one(server, path)
    assert response.usage is None
    assert response.billed == question("2 + 2?").most_tokens()


def test_equal_requests_are_asked_once_per_repeat(path):
    with ChatServer() as server:
        found = ask(server, path, [question("x"), question("x"), question("x", repeat=1), question("y")])
        assert len(found) == 3
        assert server.asked == {"x": 2, "y": 1}
        ask(server, path, [question("x"), question("z")])
        assert server.asked == {"x": 2, "y": 1, "z": 1}


CHILD = """
import sys
from pathlib import Path
from ice_eval.servers import Chat, Message, Request, ResponseStore, Server

_, path, url, n = sys.argv
requests = [Request(messages=(Message("user", str(i)),), model="m", max_tokens=20) for i in range(int(n))]
with ResponseStore(Path(path)) as store:
    Chat(Server(base_url=url, concurrency=4), store).ask(requests)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and file locks")
def test_a_killed_run_continues_and_repeats_nothing_that_was_answered(path):
    n = 60
    with ChatServer(pause_s=0.05) as server:
        child = subprocess.Popen([sys.executable, "-c", CHILD, path, server.url, str(n)])
        while not path.exists() or len(path.read_bytes().splitlines()) < 10:
            assert child.poll() is None
            time.sleep(0.005)
        with pytest.raises(ConfigError, match="another process is writing"):
            ask_one(server, path)
        child.send_signal(signal.SIGKILL)
        child.wait()
        kept = {each.key for each in read_responses(path)}
        assert 10 <= len(kept) < n
        requests = [question(i) for i in range(n)]
        before = server.asked.copy()
        server.pause_s = 0.0
        assert len(ask(server, path, requests)) == n
    again = server.asked - before
    assert {question(text).key for text in again} == {each.key for each in requests} - kept
    assert set(again.values()) == {1}
    assert sum(server.asked.values()) <= n + 4  # what was in the air, and no more, was asked twice


def test_an_interrupt_keeps_what_arrived_and_says_how_to_go_on(path):
    seen = []

    def interrupted(step):
        seen.append(step)
        if step.n_done == 5:
            raise KeyboardInterrupt

    with ChatServer(pause_s=0.01) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            ask(server, path, [question(i) for i in range(200)], concurrency=2, progress=interrupted)
        assert any("asking again continues" in note for note in caught.value.__notes__)
        n_asked = sum(server.asked.values())
        assert n_asked < 20
        assert len(list(read_responses(path))) >= 5
        assert len(ask(server, path, [question(i) for i in range(20)])) == 20
    assert [step.n_done for step in seen] == [1, 2, 3, 4, 5]
    assert max(server.answered.values()) <= 2


@pytest.fixture
def heard():
    """Ctrl-C interrupts, also where whoever started the tests has it ignored, as a background job is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_control_c_does_not_wait_for_a_server_that_hangs(path, heard):
    def press():
        while sum(server.asked.values()) < 4 or len(path.read_bytes().splitlines()) < 2:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    with ChatServer(lambda request, number: "hang" if number > 2 else echo(request, number)) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            finger.start()
            ask(server, path, [question(i) for i in range(9)], concurrency=2, timeout_s=60.0)
        finger.join()
    assert caught.value.__notes__ == [f"What was answered is kept in {path}; asking again continues."]
    assert sum(server.asked.values()) == 4
    assert len(list(read_responses(path))) == 2


def test_the_limit_on_requests_stops_and_a_higher_one_continues(path):
    requests = [question(i) for i in range(20)]
    with ChatServer() as server:
        for limit in (7, 7, 12):
            with pytest.raises(BudgetError, match=rf"the limit of {limit} requests \(--max-requests\) is reached"):
                ask(server, path, requests, budget=Budget(max_requests=limit))
            assert sum(server.asked.values()) == limit
        assert len(ask(server, path, requests, budget=Budget(max_requests=20))) == 20
    assert set(server.asked.values()) == {1}


def test_the_limit_on_cost_is_never_exceeded_though_prices_are_known_late(path):
    requests = [question(i, max_tokens=50) for i in range(40)]
    # 10 tokens in and 5 out cost 60 each; reserved are 5 + 50 tokens, up to 510.
    budget = Budget(max_cost=1500e-6, price_in=1.0, price_out=10.0)
    with ChatServer() as server:
        with pytest.raises(BudgetError, match=r"the limit of 0\.0015 \(--max-cost\)"):
            ask(server, path, requests, budget=budget)
    with ResponseStore(path) as store:
        spent = budget.cost(store.billed)
        plan = Chat(hasty(server), store, budget=budget).plan(requests)
    assert 1500e-6 - 510e-6 < spent <= 1500e-6
    assert plan.n_answered == sum(server.answered.values()) == round(spent / 60e-6)
    assert plan.n_to_ask == 40 - plan.n_answered
    assert plan.tokens == (5 * plan.n_to_ask, 50 * plan.n_to_ask)
    assert plan.cost_so_far == spent


def test_answers_that_got_lost_count_against_the_limit(path):
    with ChatServer(lambda request, number: "cut") as server:
        with pytest.raises(BudgetError):
            ask(server, path, [question("x")], budget=Budget(max_requests=3))
        assert sum(server.asked.values()) == 3
        with pytest.raises(BudgetError):
            ask(server, path, [question("x")], budget=Budget(max_requests=3))
    assert sum(server.asked.values()) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_no_retry_mends_stops_at_once_with_the_servers_words(path, status):
    def refuse(request, number):
        return error(status, "no\nsuch\x1b[31m luck") if number > 1 else echo(request, number)

    with ChatServer(refuse) as server, pytest.raises(ConfigError) as caught:
        ask(server, path, [question(i) for i in range(50)], concurrency=1)
    assert str(caught.value).startswith(f"{server.url} refuses: status {status}: no such[31m luck")
    assert sum(server.asked.values()) == 2
    assert [each.status for each in read_responses(path)] == ["ok"]


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
        with pytest.raises(ModelError, match=r"wants a pause of 86400 seconds; .* the same command continues later"):
            ask_one(server, path)


def test_concurrency_adapts_to_what_the_server_bears(path):
    refused, steps = [], []

    def behave(request, number):
        refused.append(server.at_once > 3)
        return error(429, "too many at once") if refused[-1] else echo(request, number)

    with ChatServer(behave, pause_s=0.03) as server:
        found = ask(server, path, [question(i) for i in range(90)], concurrency=24, attempts=30, progress=steps.append)
    assert {each.status for each in found.values()} == {"ok"}
    assert server.most_at_once > 12  # it began with all that it was allowed
    assert min(step.concurrency for step in steps) <= 6
    assert max(step.concurrency for step in steps[-45:]) <= 14
    assert sum(refused[len(refused) // 2 :]) < len(refused) / 2 / 3


def test_it_works_where_an_event_loop_runs_already(path):
    async def notebook():
        return ask_one(server, path)

    with ChatServer() as server:
        assert asyncio.run(notebook()).status == "ok"


def test_progress_tells_what_was_spent(path):
    steps = []
    budget = Budget(price_in=1e6, price_out=1e6)
    with ChatServer() as server:
        ask(server, path, [question("a")])
        ask(server, path, [question("a"), question("b"), question("c")], budget=budget, progress=steps.append)
    assert [(step.n_done, step.n_requests, step.cost) for step in steps] == [(2, 3, 30.0), (3, 3, 45.0)]


def test_a_key_is_sent_and_stands_in_no_file_log_or_error(path, tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)

    def parrot(request, number):
        heard = server.headers[-1]["authorization"]
        said = [
            completion(f"you said {heard}", message={"reasoning": heard}, model=heard, system_fingerprint=heard),
            error(500, heard),
            Say(body=f"{{ {heard}"),
        ]
        return said[number - 1] if number <= 3 else error(401, f"Incorrect API key provided: {heard}")

    with ChatServer(parrot) as server:
        with pytest.raises(ConfigError) as caught:
            ask(server, path, [question(i) for i in range(9)], concurrency=1)
        with pytest.raises(ConfigError):
            ask(server, tmp_path / "two.jsonl", [question(i) for i in range(9)], concurrency=1, attempts=1)
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert "status 401: Incorrect API key provided: Bearer [key]" in str(caught.value)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).decode()
    assert "[key]" in written
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    assert "HTTP" in caplog.text, "the log was not listened to"
    for text in (written, shown, repr(caught.value.__context__)):
        assert KEY not in text


def test_a_key_is_blotted_out_however_json_writes_it(path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    body = json.dumps(completion("you said KEY", message={"reasoning": "KEY"}, model="KEY")).replace("KEY", escaped)
    with ChatServer(lambda request, number: Say(body=body)) as server:
        found = ask_one(server, path)
    assert (found.text, found.reasoning, found.model) == ("you said [key]", "[key]", "[key]")
    assert KEY not in path.read_text() and escaped not in path.read_text()


def test_without_a_key_none_is_made_up_from_elsewhere(path, monkeypatch):
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with ChatServer() as server:
        ask_one(server, path)
    assert KEY not in json.dumps(server.headers)


def test_repeats_may_differ(path):
    with ChatServer(lambda request, number: completion(f"answer {number}")) as server:
        requests = [replace(question("x"), repeat=repeat) for repeat in range(3)]
        found = ask(server, path, requests, concurrency=1)
    assert [each.text for each in found.values()] == ["answer 1", "answer 2", "answer 3"]


def test_without_the_sdk_the_pip_command_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with ChatServer() as server, pytest.raises(MissingExtraError, match=r"pip install 'ice-eval\[api\]'"):
        ask_one(server, path)


def test_a_reason_to_stop_does_not_wait_for_pauses(path):
    said = [error(429, "wait", retry_after=100), error(500, "x"), error(500, "x"), error(401, "no")]

    def behave(request, number):
        return said[number - 1]

    began = time.monotonic()
    with ChatServer(behave, pause_s=0.1) as server, pytest.raises(ConfigError, match="status 401: no"):
        ask(server, path, [question(i) for i in range(9)], concurrency=4, first_backoff_s=100.0, most_backoff_s=100.0)
    assert time.monotonic() - began < 20


def test_a_key_is_not_cut_in_half_before_it_is_blotted_out(path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = {"message": "x" * 290 + KEY}, {"message": KEY[:9] + "\x00" + KEY[9:]}
    for body in said:
        with ChatServer(lambda request, number, body=body: Say(401, {"error": body})) as server:
            with pytest.raises(ConfigError) as caught:
                ask_one(server, path)
        assert "sk-pl" not in str(caught.value)


def test_a_store_that_is_not_open_is_noticed_before_anything_is_paid_for(path):
    with ChatServer() as server, pytest.raises(AssertionError, match="enter the store first"):
        Chat(hasty(server), ResponseStore(path)).ask([question("x")])
    assert not server.asked


def test_a_disk_that_is_full_ends_the_run_with_a_message(path, monkeypatch):
    with ChatServer() as server, ResponseStore(path) as store:
        monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StorageError, match="cannot be written: No space left on device"):
            Chat(hasty(server, concurrency=2), store).ask([question(i) for i in range(50)])
    assert sum(server.asked.values()) <= 4


@pytest.mark.parametrize("url", ["http://é..com/v1", "http://lo\ncal/v1"])
def test_an_address_that_the_sdk_takes_for_none_is_told_in_one_sentence(tmp_path, url):
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        with pytest.raises(ConfigError, match="is no address; expected one as http://localhost:8000/v1"):
            Chat(Server(base_url=url), store).ask([Request(messages=(Message("user", "?"),), model="m", max_tokens=1)])
