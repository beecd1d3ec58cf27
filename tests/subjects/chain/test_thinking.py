"""Models that think before they answer, replies that are cut off, and plans of long chains."""

import json
import re

import pytest
from tests.results.test_schemas import assert_conforms
from tests.servers.chat_server import ChatServer, completion, error
from tests.subjects.chain.reasoners import Reasoner, asked_of, records

from ice_eval.api import evaluate, plan
from ice_eval.errors import BudgetError, ConfigError, ModelError
from ice_eval.pipeline import Silent
from ice_eval.report import chain_verdict
from ice_eval.report.chains import cot_notes
from ice_eval.report.provenance import command
from ice_eval.servers import read_responses
from ice_eval.tasks import Records

FEW = {"n": 2, "m": 2, "attributions": ()}
THOUGHT = "Let me see. I had better add them all up again."


def about_steps(request):
    return "worked out already" in request["messages"][-1]["content"]


def tagged(opening, closing):
    return lambda text: completion(f"{opening}{THOUGHT}{closing}{text}")


FORMS = {
    "reasoning_content": lambda text: completion(text, message={"reasoning_content": THOUGHT}),
    "reasoning": lambda text: completion(text, message={"reasoning": THOUGHT}),
    "parts": lambda text: completion([{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": text}]),
    "hidden": lambda text: completion(
        text,
        usage={"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}},
    ),
    "<think>": tagged("<think>", "</think>\n"),
    "no opening tag": tagged("", "</think>\n"),
    "[THINK]": tagged("[THINK]", "[/THINK]"),
    "<seed:think>": tagged("<seed:think>", "</seed:think>"),
    "channels": tagged("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
}


class Thinker(Reasoner):
    """Adds everything up anew whatever steps it is given, and writes its thoughts in some form."""

    def __init__(self, form, **options):
        super().__init__(genuine=0, **options)
        self.form = form

    def __call__(self, request, number):
        said = super().__call__(request, number)
        return FORMS[self.form](said["choices"][0]["message"]["content"]) if about_steps(request) else said


class Heard(Silent):
    """Keeps messages, each with the number of requests about steps that the server had seen."""

    def __init__(self, server):
        self.server, self.said = server, []

    def say(self, message):
        self.said.append((sum(map(about_steps, self.server.requests)), message))

    def named(self, words):
        return [(count, message) for count, message in self.said if words in message]


def run(server, out, *, served=None, steps=6, **settings):
    heard, given = Heard(server), {**FEW, **settings}
    data = Records(records(given["n"], steps=steps))
    model = asked_of(server, **(served or {}))
    return evaluate(model, "gsm8k", data=data, out=out, reporter=heard, **given).folder, heard


class Enough(Exception):
    """Ends a run as soon as it has said what a test waits for."""


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_reasons_anew_is_recognised_within_ten_replies(form, tmp_path, monkeypatch):
    def say(self, message):
        if "reasoned again" in message:
            raise Enough(message)

    monkeypatch.setattr(Heard, "say", say)
    with ChatServer(Thinker(form)) as server, pytest.raises(Enough, match="10 of the first 10 replies .*steps matter"):
        run(server, tmp_path / "run")
    assert sum(map(about_steps, server.requests)) == 10


def test_a_model_that_reasons_anew_is_not_judged(tmp_path):
    with ChatServer(Thinker("<think>")) as server:
        folder, heard = run(server, tmp_path / "run")
    [(n_replies, message)] = heard.named("reasoned again")
    assert n_replies == 10 < sum(map(about_steps, server.requests)) and '"enable_thinking": false' in message
    about = folder.manifest().chains
    assert about.replies_thought == about.rows_read["read"] == sum(about.rows_read.values()) == 16
    summary = folder.summary()
    assert "undetermined (the replies reasoned anew)" in chain_verdict(summary).title
    [note] = [note for note in cot_notes(summary) if "reasoned again before" in note]
    assert note.startswith("16 of 16 replies")
    assert_conforms(folder.path)


def test_a_model_that_answers_at_once_is_judged(tmp_path):
    with ChatServer(Reasoner()) as server:
        folder, heard = run(server, tmp_path / "run")
    assert not heard.named("reasoned") and folder.manifest().chains.replies_thought == 0
    assert "reasoned" not in chain_verdict(folder.summary()).title + " ".join(cot_notes(folder.summary()))


class Wordy(Reasoner):
    """Needs more tokens than it may write for some of the replies."""

    def __init__(self, is_long, *, tokens=500, **options):
        super().__init__(**options)
        self.is_long, self.tokens = is_long, tokens

    def __call__(self, request, number):
        if self.is_long(request) and request["max_tokens"] < self.tokens:
            return completion("Let me think about the", finish_reason="length")
        return super().__call__(request, number)


def test_more_answer_tokens_in_the_same_folder_ask_only_for_what_was_cut_off(tmp_path):
    def without_the_first(request):
        return about_steps(request) and "Load 1 " not in request["messages"][-1]["content"]

    asked = {"attributions": ("self-report", "random")}
    with ChatServer(Wordy(without_the_first)) as server:
        before, _ = run(server, tmp_path / "run", **asked)
        n_cut = before.manifest().chains.responses["truncated"]
        assert before.manifest().chains.rows_read["the reply was cut off"] > 0
        n_asked = len(server.requests)
        run(server, tmp_path / "run", **asked)
        assert len(server.requests) == n_asked, "with the same limit nothing is asked again"
        usual, end = server.behave, n_asked + 3
        server.behave = lambda request, number: usual(request, number) if number <= end else error(401, "no")
        with pytest.raises(ConfigError, match="status 401"):  # some replies come, and their rows are not written
            run(server, tmp_path / "run", answer_tokens=512, served={"concurrency": 1}, **asked)
        server.behave = usual
        del server.requests[end:]
        grown, heard = run(server, tmp_path / "run", answer_tokens=512, **asked)
        new = server.requests[n_asked:]
        assert len(new) == n_cut and all(map(without_the_first, new)) and {r["max_tokens"] for r in new} == {512}
        [(_, about)] = heard.named("about the chains: at most ")
        assert n_cut - 3 <= int(re.search(r": (\d+) to ask", about)[1]) <= n_cut + 5, "rationales may ask, too"
        kept, _ = run(server, tmp_path / "run", **asked)
        assert len(server.requests) == n_asked + n_cut, "whole replies hold under a smaller limit, too"
        whole, _ = run(server, tmp_path / "whole", answer_tokens=512, **asked)
    assert set(grown.manifest().chains.rows_read) == {"read"}
    for folder in (grown, kept):
        assert (folder.path / "summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()
    assert_conforms(kept.path)


def test_chains_that_were_cut_off_are_written_again_with_more_tokens(tmp_path):
    def first(request):
        return not about_steps(request) and "warehouse 0 " in request["messages"][-1]["content"]

    with ChatServer(Wordy(first, tokens=2000)) as server:
        folder, _ = run(server, tmp_path / "run", n=3)
        assert folder.summary().chains.problems.n_evaluated == 2
        n_asked = len(server.requests)
        grown, _ = run(server, tmp_path / "run", n=3, max_tokens=4096)
        assert sum(not about_steps(each) for each in server.requests[n_asked:]) == 1
        whole, _ = run(server, tmp_path / "whole", n=3, max_tokens=4096)
    assert (grown.path / "summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()


@pytest.mark.parametrize(
    ("is_long", "message"),
    [
        (about_steps, "10 of 10 replies to some of the steps were cut off at 128 tokens .* --answer-tokens 2048 cont"),
        (lambda request: True, "2 of 2 chains were cut off at 1024 tokens .* --max-tokens 4096 continues"),
    ],
)
def test_a_run_whose_replies_are_all_cut_off_ends_early_and_names_the_option(tmp_path, is_long, message):
    with ChatServer(Wordy(is_long, tokens=10**6)) as server:
        with pytest.raises(ModelError, match=f"no chain can be evaluated: {message}"):
            run(server, tmp_path / "run")
        assert len(server.requests) <= FEW["n"] + 10


def test_where_most_replies_are_cut_off_the_run_says_so(tmp_path):
    def most(request):
        return about_steps(request) and request["messages"][-1]["content"].count("Load") < 6

    with ChatServer(Wordy(most)) as server:
        folder, heard = run(server, tmp_path / "run")
    assert folder.manifest().status == "complete"
    (_, early), (_, late) = heard.named("were cut off at 128 tokens")
    assert "--answer-tokens 2048" in early and re.match(r"\d+ of \d\d+ replies", late)


def test_further_fields_of_requests_arrive_and_define_the_run(tmp_path):
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    with ChatServer(Reasoner()) as server:
        folder, _ = run(server, tmp_path / "run", served={"extra_body": extra})
        assert all(extra.items() <= request.items() for request in server.requests)
        with pytest.raises(ConfigError, match=r"extra_body is '.*enable_thinking.*' there and None here"):
            run(server, tmp_path / "run")
    written = folder.manifest()
    assert json.loads(written.chains.extra_body) == json.loads(written.identity["extra_body"]) == extra
    assert_conforms(folder.path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[1]", "a JSON object is expected"),
        ("{", "a JSON object is expected"),
        ([], "a JSON object is expected"),
        ('{"messages": []}', "'messages', a field that ICE sets itself"),
        ({"temperature": 1}, "'temperature', a field that ICE sets itself"),
    ],
)
def test_further_fields_that_make_no_sense_are_refused(given, message):
    class Somewhere:
        url = "http://127.0.0.1:1/v1"

    with pytest.raises(ConfigError, match=message):
        asked_of(Somewhere, extra_body=given)


def test_one_request_that_is_too_long_does_not_end_the_run(tmp_path):
    def behave(request, number):
        shown = request["messages"][-1]["content"]
        if "warehouse 0 " in shown and (shown.count("Load") == 6 or "step by step" in shown):
            return error(400, "maximum context length is 2048 tokens", code="context_length_exceeded")
        return Reasoner()(request, number)

    with ChatServer(behave) as server:
        folder, _ = run(server, tmp_path / "run", n=3)
        n_asked = len(server.requests)
        again, _ = run(server, tmp_path / "run", n=3)
    assert len(server.requests) == n_asked, "it is settled"
    about = again.manifest().chains
    assert about.responses["too_long"] == 1 and about.n_charged == n_asked - 1
    reason = "the answer cannot be read: the request is longer than the model reads"
    assert again.summary().chains.problems.skipped == {reason: 1}


def test_where_every_request_is_too_long_a_smaller_limit_helps_in_the_same_folder(tmp_path):
    def behave(request, number):
        long = request["max_tokens"] > 500
        return error(400, "maximum context length is 512 tokens") if long else Reasoner()(request, number)

    with ChatServer(behave) as server:
        with pytest.raises(ModelError, match=r"longer than the model reads \(status 400: max.* a smaller --max-tokens"):
            run(server, tmp_path / "run")
        assert len(server.requests) == 2
        folder, _ = run(server, tmp_path / "run", max_tokens=300)
    assert folder.summary().chains.problems.n_evaluated == 2


def test_one_row_that_is_too_long_is_unreadable(tmp_path):
    def behave(request, number):
        long = about_steps(request) and request["messages"][-1]["content"].count("Load") == 6
        return error(413, "too large") if long else Reasoner()(request, number)

    with ChatServer(behave) as server:
        folder, _ = run(server, tmp_path / "run")
        n_asked = len(server.requests)
        run(server, tmp_path / "run")
    assert len(server.requests) == n_asked
    assert folder.manifest().chains.rows_read["the request is longer than the model reads"] == 2 * 3


def test_gold_answers_that_cannot_be_read_are_reported(tmp_path):
    rows = records(3)
    rows[1]["final"] = "many"
    with ChatServer(Reasoner()) as server:
        folder = evaluate(asked_of(server), "gsm8k", data=Records(rows), out=tmp_path / "run", **{**FEW, "n": 3}).folder
    assert folder.summary().chains.problems.n_gold == 2 and folder.summary().chains.problems.n_evaluated == 3
    [message] = [each for each in folder.manifest().messages if "gold" in each]
    assert message.startswith("1 of 3 gold answers cannot be read as a number (the first: 'many', problem 'p1')")


LONG = {"n": 3, "m": 20, "attributions": ("position", "random")}


def test_long_chains_are_planned_again_and_a_limit_stops_before_their_steps(tmp_path):
    data = Records(records(3, steps=40))
    with ChatServer(Reasoner(steps=40)) as server:
        guess = plan(asked_of(server, max_requests=100), "gsm8k", data=data, **LONG)
        assert "This is an estimate" in str(guess) and "at most" not in str(guess)
        with pytest.raises(BudgetError) as caught:
            run(server, tmp_path / "run", served={"max_requests": guess.n_requests}, steps=40, **LONG)
        assert len(server.requests) == 3, "the chains, and nothing about their steps"
        needed = int(re.search(r"up to (\d+) requests are needed about the steps", str(caught.value))[1])
        assert f"beside 3 so far. The limit is {guess.n_requests} requests (--max-requests)" in str(caught.value)
        assert "the same command with a higher limit continues" in str(caught.value)
        folder, heard = run(server, tmp_path / "run", served={"max_requests": 3 + needed}, steps=40, **LONG)
        assert guess.n_requests < len(server.requests) <= 3 + needed
    [(_, about)] = heard.named("about the chains: at most ")
    assert f"{needed:,} to ask" in about
    assert len(list(read_responses(folder.path / "responses.jsonl"))) == len(server.requests)


def test_a_plan_of_given_chains_is_a_limit_and_names_what_it_exceeds(tmp_path):
    path = tmp_path / "chains.jsonl"
    steps = [f"Load {place} brings {place} crates." for place in range(1, 41)]
    path.write_text(json.dumps({"question": "In warehouse 0?", "steps": steps, "final": 5}), encoding="utf-8")
    with ChatServer(Reasoner(steps=40)) as server:
        found = plan(asked_of(server, max_requests=20), responses=path, m=20)
        assert "at most about" in str(found) and "estimate" not in str(found)
        assert str(found).endswith(
            "This exceeds the limit of 20 requests (--max-requests): the run stops, before it asks about any step."
        )
        with pytest.raises(BudgetError, match="up to .* requests are needed about the steps of the chains, beside 0"):
            evaluate(asked_of(server, max_requests=20), responses=path, m=20, out=tmp_path / "run")
        assert not server.requests
        assert "exceeds" not in str(plan(asked_of(server, max_requests=500), responses=path, m=20))


def test_the_command_of_a_run_names_what_defines_it(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(map(json.dumps, records(2))), encoding="utf-8")
    extra = {"reasoning_effort": "minimal"}
    with ChatServer(Reasoner()) as server:
        model = asked_of(server, extra_body=extra)
        run_ = evaluate(model, "gsm8k", data=path, out=tmp_path / "run", chain_from="visible", **FEW)
    written = command(run_.folder.manifest())
    assert "--chain-from visible" in written and '--extra-body \'{"reasoning_effort": "minimal"}\'' in written
