"""`ice run` on chains of thought."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.commands import assert_refused
from tests.servers.chat_server import ChatServer
from tests.subjects.chain.reasoners import Reasoner, loads, records

from ice_eval.report.provenance import command
from ice_eval.results import RunFolder

SERVED = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
FEW = ("--n", "6", "--attributions", "position,random")


@pytest.fixture
def server():
    with ChatServer(Reasoner()) as asked:
        yield asked


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "crates.jsonl"
    path.write_text("\n".join(map(json.dumps, records(6))), encoding="utf-8")
    return path


def written(index):
    """The steps that the reasoner writes."""
    return [f"Load {place} brings {load} crates." for place, load in enumerate(loads(index, 6), start=1)]


def test_a_server_is_asked_and_the_steps_are_judged(ice, server, problems):
    flags = ("run", "--base-url", server.url, "--model", "openai:scripted", "--task", "gsm8k", "--data", problems, *FEW)
    done = ice(*flags, "--out", "run", "--json")
    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert content["chains"]["capacity"][0]["taxonomy"] == "genuine"
    assert "plan, for chains of six steps: " in done.err
    assert re.search(r"^6 chains in \d+ s \(\d+ chains/s\)$", done.err, re.MULTILINE)
    assert re.search(r"^6 examples, \d+ rows in \d+ s \(\d+ rows/s\)$", done.err, re.MULTILINE)
    n_asked = len(server.requests)
    printed = ice(*flags, "--out", "run")
    assert printed.code == 0 and len(server.requests) == n_asked
    assert "nothing left to score: all rows are in the folder." in printed.err
    assert "genuine" in printed.out and "report.html" in printed.out


def test_chains_that_are_there_are_not_asked_for(ice, server, tmp_path):
    given = [{**record, "steps": written(index), "gold": record["final"]} for index, record in enumerate(records(6))]
    path = tmp_path / "given.jsonl"
    path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    done = ice(
        "run", "--base-url", server.url, "--model", "openai:m", "--responses", path, *FEW, "--out", "run", "--json"
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["chains"]["problems"]["accuracy"] == 1
    assert not any("step by step" in request["messages"][0]["content"] for request in server.requests)


@pytest.mark.parametrize(
    "options",
    [
        ("--attributions", "none", "--operators", "delete,truncate", "--k", "0.2,0.5", "--temperature", "server"),
        ("--attributions", "random", "--worked-example", "--answer-step", "keep", "--m", "3", "--seed", "4"),
    ],
)
def test_the_report_names_the_command_that_continues_the_run(ice, server, problems, options):
    served = ("--base-url", server.url, "--model", "openai:m", "--task", "gsm8k", "--data", problems, "--n", "3")
    assert ice("run", *served, *options, "--out", "run").code == 0
    named = command(RunFolder.existing(Path("run")).manifest())
    n_asked = len(server.requests)
    assert named in html.unescape(Path("run/report.html").read_text(encoding="utf-8"))
    again = ice(*shlex.split(named.replace("\\\n", ""))[1:], "--out", "run")
    assert again.code == 0, again.err
    assert len(server.requests) == n_asked


def test_a_plan_asks_nothing(ice, problems):
    flags = ("run", *SERVED, "--task", "gsm8k", "--data", problems, "--dry-run")
    prices = ("--price-in", "1", "--price-out", "2")
    assert "six steps are assumed" in ice(*flags).out
    plan = json.loads(ice(*flags, *prices, "--json").out)
    assert plan["n_requests"] > 100 and plan["cost"] > 0
    assert json.loads(ice(*flags, "--operators", "delete,truncate", "--json").out)["n_requests"] > plan["n_requests"]


def test_a_plan_says_which_chains_are_skipped_and_why(ice, tmp_path):
    usable = {
        "question": "What is 3 + 4, doubled, less 5?",
        "steps": ["3 + 4 = 7", "7 * 2 = 14", "14 - 5 = 9"],
        "final": 9,
    }
    short = {"question": "What is 3 + 4, doubled?", "steps": ["3 + 4 = 7", "7 * 2 = 14"], "final": 14}
    path = tmp_path / "given.jsonl"
    path.write_text("\n".join(map(json.dumps, [usable, short])), encoding="utf-8")
    flags = ("run", *SERVED, "--responses", path, "--dry-run")
    reason = "fewer than 2 steps besides those that state the answer"
    assert ice(*flags).out.startswith(f"1 of 2 chains are skipped: {reason} (1)\n")
    plan = json.loads(ice(*flags, "--json").out)
    assert (plan["n_problems"], plan["skipped"]) == (2, {reason: 1})
    assert "are skipped" not in ice(*flags, "--answer-step", "keep").out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--task", "gsm9k"), "no task named 'gsm9k'; did you mean 'gsm8k'"),
        ((), "without --task, --data, --prompt, --labels must be given too"),
        (("--task", "gsm8k", "--k", "0.2,half"), "--k 0.2,half: numbers between 0 and 1"),
        (("--task", "gsm8k", "--k", "2"), "a share between 0 and 1"),
        (("--task", "gsm8k", "--k", "dynamic"), "for steps shares between 0 and 1 are expected"),
        (("--task", "gsm8k", "--temperature", "warm"), "a number from 0 on is expected, or 'server'"),
        (("--task", "gsm8k", "--temperature", "-1"), "a number from 0 on is expected, or 'server'"),
        (("--task", "gsm8k", "--repeats", "0"), "repeats = 0: at least 1 is needed"),
        (("--task", "gsm8k", "--null", "position"), "--null is about texts, and the task 'gsm8k' is about chains"),
        (("--task", "gsm8k", "--prompt", "{x}"), "--prompt is about texts, and the task 'gsm8k' is about chains"),
        (("--task", "gsm8k", "--operators", "shuffle"), "an operator that keeps some steps is needed"),
        (("--task", "gsm8k", "--operators", "remove"), "no operator named 'remove'"),
        (("--task", "gsm8k", "--answer-step", "hide"), "answer-step 'hide'. Expected: drop, keep"),
        (
            ("--task", "gsm8k", "--attributions", "attention"),
            "needs attentions, which the model 'openai:m' does not offer",
        ),
        (("--task", "gsm8k", "--levels"), "which a server does not show"),
        (("--task", "gsm8k", "--max-cost", "1"), "price"),
        (("--task", "gsm8k", "--limit-field", "tokens"), "max_tokens or max_completion_tokens is expected"),
        (("--task", "gsm8k", "--extra-body", "[1]"), "--extra-body '[1]': a JSON object is expected"),
        (("--task", "gsm8k", "--extra-body", '{"stream": true}'), "a field that ICE sets itself"),
        (("--task", "gsm8k", "--chain-from", "hidden"), "chain-from 'hidden'. Expected: auto, visible, thinking"),
        (("--task", "gsm8k", "--data", "none.jsonl"), "no such file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(ice, server, problems, flags, message):
    data = () if "--data" in flags or "--task" not in flags else ("--data", problems)
    done = ice("run", "--base-url", server.url, "--model", "openai:m", *data, *flags, "--out", "run")
    assert_refused(done, message)
    assert not server.requests


def test_a_limit_needs_a_server_and_is_kept(ice, server, problems):
    flags = ("run", "--task", "gsm8k", "--data", problems, "--max-requests", "10", "--out", "run")
    assert_refused(ice(*flags, "--model", "toy"), "applies only to served models")
    served = ("--base-url", server.url, "--model", "openai:m")
    assert "This exceeds the limit of 10 requests (--max-requests)" in " ".join(
        ice(*flags, *served, "--dry-run").out.split()
    )
    assert not server.requests
    done = ice(*flags, *served)
    said = " ".join(done.err.split())
    assert done.code == 1 and "The limit is 10 requests (--max-requests), so no request was sent." in said
    assert len(server.requests) == 6, "the chains, and nothing about their steps"


def test_further_fields_may_come_from_a_file(ice, server, problems, tmp_path):
    options = {"model": "openai:m", "base_url": server.url, "task": "gsm8k", "data": str(problems)}
    options |= {
        "n": 2,
        "m": 2,
        "attributions": "none",
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
    }
    (tmp_path / "run.yaml").write_text(json.dumps(options), encoding="utf-8")
    done = ice("run", "--config", tmp_path / "run.yaml", "--out", "run")
    assert done.code == 0, done.err
    assert {json.dumps(request["chat_template_kwargs"]) for request in server.requests} == {
        '{"enable_thinking": false}'
    }


def test_what_can_be_named_is_listed(ice):
    assert "gsm8k" in ice("list", "tasks").out
    assert json.loads(ice("list", "tasks", "--json").out)["gsm8k"]["about"] == "chains of thought"
    assert re.search(r"^replace .*\n +works on steps$", ice("list", "operators").out, re.MULTILINE)
    assert "leave-one-out" in ice("list", "attributions").out


def test_a_plan_of_chains_has_no_power(ice, problems):
    flags = ("plan", *SERVED, "--task", "gsm8k", "--data", problems)
    assert "six steps are assumed" in ice(*flags).out
    assert_refused(ice(*flags, "--width", "0.05"), "need a pilot, and a plan of chains of thought asks nothing")


def test_a_model_that_does_not_chat_is_refused(ice, problems):
    assert_refused(ice("run", "--model", "toy", "--task", "gsm8k", "--data", problems), "has no chat template")
