"""`ice cot run`."""

import json
import re

import pytest
from tests.cli.commands import assert_refused
from tests.servers.chat_server import ChatServer
from tests.subjects.chain.reasoners import Reasoner, loads, records

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
    flags = ("cot", "run", "--base-url", server.url, "--model", "scripted", "--task", "gsm8k", "--data", problems, *FEW)
    done = ice(*flags, "--out", "run", "--json")
    assert done.code == 0, done.err
    content = json.loads(done.out)
    assert content["chains"]["capacity"][0]["taxonomy"] == "genuine"
    assert done.err.startswith("plan, for chains of six steps: "), "the plan is told first"
    assert re.search(r"^\d+ requests in \d+ s \(\d+ requests/s\)$", done.err, re.MULTILINE)
    assert "rows" not in done.err
    n_asked = len(server.requests)
    printed = ice(*flags, "--out", "run")
    assert printed.code == 0 and len(server.requests) == n_asked
    assert "nothing left to ask: all replies are in the folder." in printed.err
    assert "genuine" in printed.out and "report.html" in printed.out


def test_chains_that_are_there_are_not_asked_for(ice, server, tmp_path):
    given = [{**record, "steps": written(index), "gold": record["final"]} for index, record in enumerate(records(6))]
    path = tmp_path / "given.jsonl"
    path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    done = ice(
        "cot", "run", "--base-url", server.url, "--model", "m", "--responses", path, *FEW, "--out", "run", "--json"
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["chains"]["problems"]["accuracy"] == 1
    assert not any("step by step" in request["messages"][0]["content"] for request in server.requests)


def test_a_plan_asks_nothing(ice, problems):
    flags = ("cot", "run", "--model", "m", "--task", "gsm8k", "--data", problems, "--dry-run")
    prices = ("--price-in", "1", "--price-out", "2")
    assert "six steps are assumed" in ice(*flags).out
    plan = json.loads(ice(*flags, *prices, "--json").out)
    assert plan["n_requests"] > 100 and plan["cost"] > 0
    assert json.loads(ice(*flags, "--operators", "delete,truncate", "--json").out)["n_requests"] > plan["n_requests"]


def test_a_plan_says_which_chains_take_no_part_and_why(ice, tmp_path):
    usable = {
        "question": "What is 3 + 4, doubled, less 5?",
        "steps": ["3 + 4 = 7", "7 * 2 = 14", "14 - 5 = 9"],
        "final": 9,
    }
    short = {"question": "What is 3 + 4, doubled?", "steps": ["3 + 4 = 7", "7 * 2 = 14"], "final": 14}
    path = tmp_path / "given.jsonl"
    path.write_text("\n".join(map(json.dumps, [usable, short])), encoding="utf-8")
    flags = ("cot", "run", "--model", "m", "--responses", path, "--dry-run")
    reason = "fewer than 2 steps besides those that state the answer"
    assert ice(*flags).out.startswith(f"1 of 2 chains take no part: {reason} (1)\n")
    plan = json.loads(ice(*flags, "--json").out)
    assert (plan["n_problems"], plan["skipped"]) == (2, {reason: 1})
    assert "take no part" not in ice(*flags, "--answer-step", "keep").out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--task", "gsm9k"), "no cot task named 'gsm9k'; did you mean 'gsm8k'"),
        ((), "no task is named; choose one of ag_news"),
        (("--task", "gsm8k", "--k", "0.2,half"), "--k '0.2,half': shares between 0 and 1"),
        (("--task", "gsm8k", "--k", "2"), "shares between 0 and 1"),
        (("--task", "gsm8k", "--temperature", "warm"), "a number is expected, or 'server'"),
        (("--task", "gsm8k", "--operators", "shuffle"), "an operator that keeps some steps is needed"),
        (("--task", "gsm8k", "--operators", "remove"), "no step operator named 'remove'"),
        (("--task", "gsm8k", "--answer-step", "hide"), "drop or keep is expected"),
        (("--task", "gsm8k", "--attributions", "attention"), "looks into the model, which a server does not show"),
        (("--task", "gsm8k", "--levels"), "which a server does not show"),
        (("--task", "gsm8k", "--max-cost", "1"), "price"),
        (("--task", "gsm8k", "--limit-field", "tokens"), "max_tokens or max_completion_tokens is expected"),
        (("--task", "gsm8k", "--data", "none.jsonl"), "no such file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(ice, server, problems, flags, message):
    data = () if "--data" in flags or "--task" not in flags else ("--data", problems)
    done = ice("cot", "run", "--base-url", server.url, "--model", "m", *data, *flags, "--out", "run")
    assert_refused(done, message)
    assert not server.requests


def test_a_limit_needs_a_server_and_is_kept(ice, server, problems):
    flags = ("cot", "run", "--task", "gsm8k", "--data", problems, "--max-requests", "10", "--out", "run")
    assert_refused(ice(*flags, "--model", "toy"), "needs a server")
    done = ice(*flags, "--base-url", server.url, "--model", "m")
    assert done.code == 1 and "--max-requests" in done.err
    assert len(server.requests) <= 10


def test_what_can_be_named_is_listed(ice):
    assert "gsm8k" in ice("list", "cot-tasks").out
    assert "replace" in ice("list", "cot-operators").out
    assert "leave-one-out" in ice("list", "cot-attributions").out
