"""The command `ice` within this process, and what it came to."""

import re
import signal
import sys
from typing import NamedTuple

import pytest

from ice_eval.cli import main

PROMPT = r"Review: {text}\nSentiment:"


def called(*arguments):
    """Run the command, and say how it exits."""
    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ice", *map(str, arguments)])
        try:
            main()
        except SystemExit as exc:
            return exc.code or 0
        finally:
            signal.signal(signal.SIGINT, handler)
    return 0


class Done(NamedTuple):
    code: int
    out: str
    err: str


def assert_refused(done, *words, written_to=None, code=2):
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    message = done.err.strip().split("\n")[-1]
    assert message.startswith("ice: ")
    assert len(re.findall("^ice: ", done.err, re.MULTILINE)) == 1
    for word in words:
        assert word in message
    if written_to is not None:
        assert list(written_to.iterdir()) == []
