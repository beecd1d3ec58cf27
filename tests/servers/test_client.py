"""A run completes through bad weather, asks nothing twice and keeps to its limits."""

import asyncio
import json
from dataclasses import fields, replace
from importlib.resources import files

import jsonschema
import pytest
from tests.servers.asking import KEY, ask, ask_one, hasty, question
from tests.servers.chat_server import FAULTS, ChatServer, completion, echo, error, stormy

from ice_eval.errors import BudgetError, ConfigError
from ice_eval.servers import Budget, Chat, Response, ResponseStore, Server, read_responses
from ice_eval.servers.store import Limiter


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
        [response] = ask(server, path, [question("x", temperature=0.7, repeat=2)]).values()
    assert server.requests == [
        {
            "messages": [{"role": "user", "content": "x"}],
            "model": "m",
            "max_tokens": 20,
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


def test_the_limit_may_have_its_other_name(path):
    with ChatServer() as server, ResponseStore(path) as store:
        server_ = hasty(server, limit_field="max_completion_tokens")
        Chat(server_, store).ask([question("x", extra={"top_p": 0.5})])
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


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "2, 3, 4"},
        {"reasoning": "2, 3, 4"},
        {"thinking": "2, 3, 4"},
        {"content": [{"type": "thinking", "thinking": "2, 3, 4"}, {"type": "text", "text": "4"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "2, 3, 4"}]}, "4"]},
        {"content": [{"type": "reasoning", "summary": [{"text": "2, "}, {"text": "3, 4"}]}, {"text": "4"}]},
        {"content": [{"type": "reasoning", "text": "2, 3, 4"}, {"type": "output_text", "text": "4"}]},
    ],
)
def test_reasoning_is_kept_apart_from_the_text(path, message):
    with ChatServer(lambda request, number: completion("4", message=message)) as server:
        response = ask_one(server, path)
    assert (response.status, response.text, response.reasoning) == ("ok", "4", "2, 3, 4")


def test_hidden_reasoning_shows_in_its_tokens(path):
    usage = {"prompt_tokens": 10, "completion_tokens": 70, "completion_tokens_details": {"reasoning_tokens": 64}}
    with ChatServer(lambda request, number: completion("4", usage=usage)) as server:
        response = ask_one(server, path)
    assert (response.text, response.reasoning, response.reasoning_tokens) == ("4", None, 64)


@pytest.mark.parametrize("content", [3, {"text": "4"}, [3]])
def test_content_of_another_shape_makes_no_sense(path, content):
    with ChatServer(lambda request, number: completion(content)) as server:
        assert "makes no sense" in ask_one(server, path, attempts=1).error


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


def test_concurrency_adapts_to_what_the_server_bears(path, monkeypatch):
    refused, limits, speed_up = [], [], Limiter.speed_up

    def recorded(limiter):
        speed_up(limiter)
        limits.append(limiter.limit)

    def behave(request, number):
        refused.append(server.at_once > 3)
        return error(429, "too many at once") if refused[-1] else echo(request, number)

    monkeypatch.setattr(Limiter, "speed_up", recorded)
    with ChatServer(behave, pause_s=0.03) as server:
        found = ask(server, path, [question(i) for i in range(90)], concurrency=24, attempts=30)
    assert {each.status for each in found.values()} == {"ok"}
    assert server.most_at_once > 12  # it began with all that it was allowed
    assert min(limits) <= 6
    assert max(limits[-45:]) <= 14
    assert sum(refused[len(refused) // 2 :]) < len(refused) / 2 / 3


def test_it_works_where_an_event_loop_runs_already(path):
    async def notebook():
        return ask_one(server, path)

    with ChatServer() as server:
        assert asyncio.run(notebook()).status == "ok"


def test_progress_counts_the_answers_that_arrive(path):
    steps = []
    with ChatServer() as server:
        ask(server, path, [question("a")])
        ask(server, path, [question("a"), question("b"), question("c")], progress=steps.append)
    assert steps == [1, 1]


def test_repeats_may_differ(path):
    with ChatServer(lambda request, number: completion(f"answer {number}")) as server:
        requests = [replace(question("x"), repeat=repeat) for repeat in range(3)]
        found = ask(server, path, requests, concurrency=1)
    assert [each.text for each in found.values()] == ["answer 1", "answer 2", "answer 3"]


def test_a_store_that_is_not_open_is_noticed_before_anything_is_paid_for(path):
    with ChatServer() as server, pytest.raises(AssertionError, match="enter the store first"):
        Chat(hasty(server), ResponseStore(path)).ask([question("x")])
    assert not server.asked


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://secret/v1", "http://", "http://[secret/v1", "http://me:secret/v1", "me:secret"]
)
def test_what_is_no_address_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError, match="is no address; expected one as http://localhost:8000/v1") as caught:
        Server(base_url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@host/v1", "me:secret@host", "https://host/v1?key=secret", "https://host/v1#secret",
        "https://host/sk-secret/v1", "sk-secret", "https://host/v1/hf_secret",
    ],
)  # fmt: skip
def test_an_address_with_a_secret_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError, match="holds a password or a query") as caught:
        Server(base_url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("change", [{"concurrency": 0}, {"attempts": 0}, {"timeout_s": 0.0}])
def test_numbers_that_make_no_sense_are_refused(change):
    with pytest.raises(ConfigError, match="must be at least 1"):
        Server(base_url="http://host/v1", **change)


@pytest.mark.parametrize(
    ("url", "named", "key"),
    [
        ("https://host/v1", None, KEY),
        ("http://localhost:1/v1", None, KEY),
        ("http://127.0.0.1:1/v1", None, KEY),
        ("http://[::1]:1/v1", None, KEY),
        ("http://host/v1", None, None),  # in clear text, to another machine: only when asked for
        ("http://host/v1", "OPENAI_API_KEY", KEY),
        ("http://host/v1", "MINE", "my-own-key"),
    ],
)
def test_which_key_goes_where(monkeypatch, url, named, key):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("MINE", "my-own-key")
    assert Server(base_url=url, api_key_env=named).key() == key


def test_without_a_key_none_is_sent_unless_one_was_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert Server(base_url="https://host/v1").key() is None
    with pytest.raises(ConfigError, match=r"the environment variable ICE_NO_SUCH \(--api-key-env\) is not set"):
        Server(base_url="https://host/v1", api_key_env="ICE_NO_SUCH").key()


def test_a_limit_has_one_of_two_names():
    with pytest.raises(ConfigError, match="--limit-field 'tokens': max_tokens or max_completion_tokens is expected"):
        Server(base_url="https://host/v1", limit_field="tokens")


@pytest.mark.parametrize("key", ["sk-planted \n X-Header: 1", "sk-plänted"])
def test_what_is_no_key_is_refused_and_not_repeated(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds no key") as caught:
        Server(base_url="https://host/v1").key()
    assert "sk-" not in str(caught.value)


def test_the_key_is_no_part_of_the_record(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server(base_url="https://host/v1")
    server.key()
    assert KEY not in repr(server) + repr(vars(server))
