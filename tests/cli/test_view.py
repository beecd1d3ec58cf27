"""`ice view`: what it prints, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from tests.toy_runs import run

pytest.importorskip("uvicorn", reason="needs starlette and uvicorn: pip install starlette uvicorn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("viewed")
    run(m=4, n=6, out=root / "one")
    return root


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_serves_until_a_signal_and_ends_cleanly(folder, number):
    command = [sys.executable, "-m", "ice_eval", "view", str(folder), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == f"1 run in {folder} (Ctrl-C stops the server)\n"
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and len(url.partition("?token=")[2]) >= 32
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(url.partition("?")[0], timeout=10)
        link = socket.create_connection(("127.0.0.1", int(url.split(":")[2].partition("/")[0])))  # stays open
        started = time.monotonic()
        server.send_signal(number)
        _, errors = server.communicate(timeout=20)
        link.close()
        assert (server.returncode, errors) == (0, "")
        assert time.monotonic() - started < 10
    finally:
        server.kill()
        server.wait()


def test_the_address_is_printed_as_json(folder):
    command = [sys.executable, "-m", "ice_eval", "view", str(folder), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        printed = "".join(iter(server.stdout.readline, "}\n")) + "}"
        server.send_signal(signal.SIGTERM)
        assert json.loads(printed)["runs"] == 1
    assert server.returncode == 0


def test_a_folder_without_runs_is_one_message(ice, tmp_path):
    done = ice("view", tmp_path)
    assert (done.code, done.out) == (2, "") and "no finished run" in done.err and done.err.count("\n") == 1
    done = ice("view", tmp_path / "nowhere")
    assert (done.code, done.out) == (2, "") and "is not a folder" in done.err


def test_a_port_in_use_is_one_message(ice, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = ice("view", folder, "--no-browser", "--port", taken.getsockname()[1])
    assert (done.code, done.out) == (2, "") and "cannot be used" in done.err and "Traceback" not in done.err


def test_a_missing_extra_is_named(tmp_path, folder):
    (tmp_path / "starlette.py").write_text("raise ImportError('no')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "ice_eval", "view", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "pip install 'ice-eval[view]'" in done.stderr
