"""A run that is killed or interrupted keeps what arrived, and the same call continues."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tests.servers.asking import ask, ask_one, question
from tests.servers.chat_server import ChatServer, echo

from ice_eval.errors import ConfigError
from ice_eval.servers import read_responses

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
        if len(seen) == 5:
            raise KeyboardInterrupt

    with ChatServer(pause_s=0.01) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            ask(server, path, [question(i) for i in range(200)], concurrency=2, progress=interrupted)
        assert any("asking again continues" in note for note in caught.value.__notes__)
        n_asked = sum(server.asked.values())
        assert n_asked < 20
        assert len(list(read_responses(path))) >= 5
        assert len(ask(server, path, [question(i) for i in range(20)])) == 20
    assert seen == [1] * 5
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
