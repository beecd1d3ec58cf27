"""`ice run --model openai:NAME --base-url URL`: stopped and continued, within limits, with a key that nobody sees."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.rows import ledger_rows
from tests.servers.bag_server import Bag
from tests.servers.chat_server import ChatServer

import ice_eval
from ice_eval.results import RunFolder
from ice_eval.servers import read_responses

SOURCE = Path(ice_eval.__file__).parent.parent
KEY = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def flags(server, reviews, *more):
    return (
        "run", "--model", "openai:bag", "--base-url", server.url, "--data", reviews, "--prompt",
        "Review: {text}\\nSentiment:", "--labels", "negative,positive", "--unit", "word", "--attributions", "random",
        "--operators", "delete", "--n", 3, "--m", 4, "--out", "run", *more,
    )  # fmt: skip


def answers_in(folder):
    """Keys of all answers that a run keeps; one answer each."""
    keys = [response.key for response in read_responses(folder / "responses.jsonl")]
    assert len(set(keys)) == len(keys)
    return keys


def scores_in(folder):
    return {row.key: row.scores for row in ledger_rows(RunFolder(folder))}


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_run_continues_and_asks_nothing_twice(ice, reviews, tmp_path):
    with ChatServer(Bag()) as calm:
        assert ice(*flags(calm, reviews, "--out", "calm")).code == 0
    with ChatServer(Bag(), pause_s=0.05) as server:
        few = flags(server, reviews, "--concurrency", 2)
        command = [sys.executable, "-c", "from ice_eval.cli import main; main()", *map(str, few)]
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(SOURCE)})
        kept = tmp_path / "run" / "responses.jsonl"
        while not kept.exists() or len(kept.read_bytes().splitlines()) < 8:
            assert child.poll() is None
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
        before, server.pause_s = answers_in(tmp_path / "run"), 0.0
        done = ice(*few)
        assert done.code == 0, done.err
        answers, n_requests = answers_in(tmp_path / "run"), len(server.requests)
        assert answers[: len(before)] == before
        assert n_requests <= len(answers) + 2  # what was in the air when it was killed
        assert ice(*few).code == 0
        assert len(server.requests) == n_requests
        # What is added asks for what is missing, and for nothing else.
        assert ice(*few, "--attributions", "random,occlusion").code == 0
        assert len(server.requests) - n_requests == len(answers_in(tmp_path / "run")) - len(answers) > 0
    found = scores_in(tmp_path / "run")
    assert scores_in(tmp_path / "calm").items() <= found.items()


def test_at_its_limit_a_run_stops_and_a_higher_one_continues(ice, reviews, tmp_path):
    with ChatServer(Bag()) as server:
        done = ice(*flags(server, reviews, "--max-requests", 10))
        assert done.code == 1
        assert "the limit of 10 requests (--max-requests) is reached" in done.err
        assert "the same command with a higher limit continues" in " ".join(done.err.split())
        assert len(server.requests) == 10
        done = ice(*flags(server, reviews, "--max-cost", 1, "--price-in", 1, "--price-out", 2))
        assert done.code == 0
        assert "at most about 0.00" in " ".join(done.err.split())
    assert len(answers_in(tmp_path / "run")) == len(server.requests)
    done = ice("audit-infill", "run")
    assert (done.code, "was evaluated without --tokenizer" in " ".join(done.err.split())) == (2, True)


def test_a_dry_run_says_that_its_pilot_is_charged_for(ice, reviews, tmp_path):
    with ChatServer(Bag()) as server:
        done = ice(*flags(server, reviews, "--dry-run"))
    assert done.code == 0
    said = " ".join(done.err.split())
    assert f"the pilot sends requests to {server.url}: they are charged, and their answers are not kept." in said
    assert not (tmp_path / "run").exists()


def test_the_key_goes_to_the_server_and_into_no_file(ice, reviews, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with ChatServer(Bag()) as server:
        done = ice(*flags(server, reviews, "--api-key-env", "MY_KEY"))
    assert done.code == 0
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert KEY not in done.out + done.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--model", "openai:bag"), "--model openai:bag is served; add its address: --base-url http"),
        (("--model", "toy", "--base-url", "http://127.0.0.1:1/v1"), "--base-url applies only to served models"),
        (("--model", "toy", "--max-cost", 1), "--max-cost applies only to served models, and toy is not one"),
        (("--model", "openai:", "--base-url", "http://127.0.0.1:1/v1"), "names no model; write openai:NAME"),
        (("--model", "openai:bag", "--base-url", "http://127.0.0.1:1/v1"), "can be explained by word only"),
        (
            ("--model", "openai:bag", "--base-url", "http://127.0.0.1:1/v1", "--attributions", "attention"),
            "needs attentions",
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_anybody_is_asked(ice, reviews, tmp_path, given, said):
    done = ice("run", "--task", "demo", "--attributions", "random", "--out", "run", *given)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not (tmp_path / "run").exists()


def test_no_torch_is_loaded_for_a_model_behind_a_server(reviews, tmp_path):
    code = "\n".join(
        [
            "import sys, ice_eval",
            "from tests.servers.bag_server import Bag",
            "from tests.servers.chat_server import ChatServer",
            "with ChatServer(Bag()) as server:",
            "    model = ice_eval.Served('bag', base_url=server.url)",
            "    found = ice_eval.evaluate(model, 'demo', n=2, m=3, unit='word', attributions=['random'])",
            "print(*(name for name in ('torch', 'transformers') if name in sys.modules))",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_further_fields_go_with_every_request_about_texts(ice, reviews):
    with ChatServer(Bag()) as server:
        assert ice(*flags(server, reviews, "--extra-body", '{"top_q": 1}')).code == 0
        assert server.requests and all(request["top_q"] == 1 for request in server.requests)
        done = ice(*flags(server, reviews))
    assert done.code == 2 and "asked with" in done.err and "top_q" in done.err
