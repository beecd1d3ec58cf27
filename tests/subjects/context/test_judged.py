"""Servers without log-probabilities of a prompt: rows ask the model to answer again, and claims are compared."""

import re

import pytest
from tests.models.test_served import quick  # noqa: F401 - a fixture
from tests.models.test_served_texts import ANSWER, FACTS, QUESTION, ROWS, Reader, run, served
from tests.servers.chat_server import ChatServer, completion
from tests.small_runs import shown_rows

import ice_eval as ice
from ice_eval.errors import BudgetError, ConfigError, ModelError
from ice_eval.servers import read_responses
from ice_eval.subjects.context.judged import is_stated
from ice_eval.subjects.context.tasks import PROMPT

STATED, MISSING = (0.0, -1000.0), (-1000.0, 0.0)
NEEDS = {"a#1": 1, "a#2": 3}
"""Claim -> the passage without which the model does not state it."""


def copied(prompt):
    """A reply that states what the sources say, in other letters, with citations."""
    said = {1: "ROME lies  in Italy [1].", 3: "Lima is by the sea [2], and is dry!"}
    return " ".join(text for unit, text in said.items() if FACTS[unit] in prompt) or "I do not know."


def prompt_of(row):
    passages = "".join(f"[{unit + 1}] {FACTS[unit]}\n\n" for unit in row.kept)
    return PROMPT.format(passages=passages, question=QUESTION)


def assert_stated(found, states=lambda row: NEEDS[row.key.example_id] in row.kept):
    rows = shown_rows(found.folder)
    assert len(rows) > 10
    for row in rows:
        assert row.scores == (STATED if states(row) else MISSING)
    return rows


@pytest.mark.parametrize("lacks", [{"echo": None}, {"echo": "shifted"}, {"completions": False}], ids=str)
def test_without_a_trusted_echo_each_row_is_answered_again(lacks):
    with ChatServer(Reader(reply=copied, **lacks)) as server:
        found = run(served(server))
    rows = assert_stated(found)
    chats = [request for request in server.requests if "messages" in request]
    asked = [request["messages"] for request in chats]
    assert {turns[-1]["content"] for turns in asked} == {prompt_of(row) for row in rows}
    assert {request["temperature"] for request in chats} == {0.0}
    manifest = found.folder.manifest()
    assert manifest.labels == ("stated", "missing")
    assert (manifest.server.echo, manifest.server.top_logprobs) == (False, 0)
    assert manifest.server.said.fingerprint == "fp_1"
    [said] = [each for each in manifest.messages if "answer again" in each]
    assert "no log-probabilities of a prompt's tokens" in said
    assert said.endswith("claims are compared exactly.")
    # Equal masks of both claims are asked once, and once more where noise is measured.
    kept = list(read_responses(found.path / "responses.jsonl"))
    assert len(kept) == len({each.key for each in kept}) == server.answered.total()
    assert sum(each.repeat for each in kept) <= 8


def test_a_server_that_names_no_tokens_answers_again():
    def silent(request, number):
        found = Reader(reply=copied)(request, number)
        if "prompt" in request:
            found["choices"][0]["logprobs"] = None
        return found

    with ChatServer(silent) as server:
        assert_stated(run(served(server)))


def test_words_of_the_summary_are_about_probabilities():
    with ChatServer(Reader(echo=None, reply=copied)) as server:
        found = run(served(server), directions=["sufficiency", "necessity"])
    claims = found.folder.summary().citations.claims
    assert [(claim.score_full, claim.score_empty, claim.score_kept, claim.preserved) for claim in claims] == [
        (1.0, 0.0, 1.0, 1.0)
    ] * 2
    assert [claim.win_rate for claim in claims] == [1.0, 1.0]


def test_a_judge_decides_what_a_reply_states(tmp_path):
    seen = []

    def judge(claim, reply):
        seen.append((claim, reply))
        return "do not know" not in reply

    with ChatServer(Reader(reply=copied)) as server:  # the echo would be right
        found = run(served(server), judge=judge, out=tmp_path / "run")
        assert not any("prompt" in request for request in server.requests)
    assert_stated(found, lambda row: {1, 3} & set(row.kept))
    assert {claim for claim, _ in seen} == {"Rome lies in Italy.", "Lima is by the sea and is dry."}
    assert len(seen) == len(set(seen))
    assert any(each.endswith("claims are compared by your judge.") for each in found.folder.manifest().messages)
    with pytest.raises(ConfigError, match="holds another run"):
        run(served(server), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("judge", "said"),
    [(lambda claim, reply: 1 / 0, "judge failed: ZeroDivisionError"), (lambda claim, reply: None, "returned None")],
)
def test_a_judge_that_fails_is_named(judge, said):
    with ChatServer(Reader(reply=copied)) as server, pytest.raises(ModelError, match=said):
        run(served(server), judge=judge)


def test_a_judge_without_replies_to_compare_is_refused():
    for model, task in (("toy-reader", "citations"), ("toy", "demo")):
        data = {"data": ice.Records(ROWS)} if task == "citations" else {}
        with pytest.raises(ConfigError, match="`judge` compares claims with the replies of a model behind a server"):
            ice.evaluate(model, task, judge=is_stated, attributions=["random"], operators=["delete"], **data)


def test_what_is_answered_is_not_asked_again(tmp_path):
    with ChatServer(Reader(echo=None, reply=copied)) as server:
        run(served(server), out=tmp_path / "run")
        n_asked = len(server.requests)
        run(served(server), out=tmp_path / "run")
        assert len(server.requests) == n_asked
        found = run(served(server), attributions=["cited", "random", "occlusion"], out=tmp_path / "run")
    assert_stated(found)
    run(served(server), out=tmp_path / "run")  # the server is gone
    kept = list(read_responses(found.path / "responses.jsonl"))
    assert len(kept) == len({each.key for each in kept}) == server.answered.total()


def test_a_limit_of_requests_stops_the_run_which_then_goes_on(tmp_path):
    with ChatServer(Reader(completions=False, reply=copied)) as server:
        with pytest.raises(BudgetError, match=r"limit of 4 requests \(--max-requests\) is reached.*higher limit cont"):
            run(served(server, max_requests=4, concurrency=1), out=tmp_path / "run")
        assert sum("messages" in request for request in server.requests) == 4
        assert_stated(run(served(server, max_requests=90), out=tmp_path / "run"))
        with pytest.raises(BudgetError, match="--max-cost"):
            prices = {"price_in": 1e6, "price_out": 1e6}
            run(served(server, max_cost=1.0, **prices), out=tmp_path / "other")


def test_the_number_of_requests_is_said_before_rows_are_asked():
    said = []

    class Shown(ice.pipeline.Silent):
        def say(self, message):
            said.append((message, sum("messages" in request for request in server.requests)))

    with ChatServer(Reader(completions=False, reply=copied)) as server:
        run(served(server), reporter=Shown())
    [(message, n_asked)] = [each for each in said if "requests to" in each[0]]
    assert re.match(r"about \d+ requests to http.*tokens to read and [\d,]+ to write; equal rows", message)
    assert n_asked == 0


def test_a_claim_that_is_not_stated_with_all_passages_is_skipped():
    with ChatServer(Reader(echo=None, reply=lambda prompt: copied(prompt).replace("dry", "wet"))) as server:
        found = run(served(server))
    reasons = {line.example_id: line.error for line in found.folder.examples()}
    assert reasons["a#1"] is None
    assert reasons["a#2"] == "asked again with all passages, the model does not state the claim"
    assert {row.key.example_id for row in shown_rows(found.folder)} == {"a#1"}


def test_a_reply_that_was_cut_off_says_nothing_about_claims_that_it_lacks():
    def cut(request, number):
        if "messages" not in request:
            return Reader(echo=None)(request, number)
        text = copied(request["messages"][-1]["content"])
        return completion(text, finish_reason="length" if "know" in text else "stop")

    with ChatServer(cut) as server, pytest.raises(ModelError, match="full or the empty input is not finite"):
        run(served(server))


def test_thoughts_state_nothing():
    def thinks(prompt):
        return f"<think>{ANSWER}</think>{copied(prompt)}"

    with ChatServer(Reader(echo=None, reply=thinks)) as server:
        assert_stated(run(served(server)))


def test_answers_that_the_server_wrote_are_its_replies_to_all_passages(tmp_path):
    rows = [{name: value for name, value in ROWS[0].items() if name != "answer"}]
    with ChatServer(Reader(echo=None, reply=copied)) as server:
        found = run(served(server), rows, system="Be brief.", chat=True)
    full = [each["messages"] for each in server.requests if "messages" in each]
    assert [turn["role"] for turn in full[0]] == ["system", "user"]
    assert len(shown_rows(found.folder)) > 10
    asked = [turns[-1]["content"] for turns in full]
    assert asked.count(asked[0]) <= 2  # written once, and perhaps asked once more for noise


@pytest.mark.parametrize(
    ("claim", "reply", "stated"),
    [
        ("Rome is old.", "It is said that ROME  is old [1, 2], and large.", True),
        ("Rome is old.", "Rome [1] is old.", True),
        ("Rome is old.", "Rome【3】 is—old¹", True),
        ("Rome is old.", "Rome is older.", False),
        ("Rome is old.", "Old is Rome.", False),
        ("It isn't 3.5 km", "it isn’t 3.5 km away", True),
        ("It is 3.5 km", "It is 35 km", False),
        ("罗马很古老。", "据说罗马很古老[1]。", True),
        ("Café", "cafe\u0301s and a cafe\u0301", True),
        ("?!", "?!", False),
    ],
)
def test_words_decide_whether_a_claim_is_stated(claim, reply, stated):
    assert is_stated(claim, reply) is stated
