import json
import signal
import sys
from typing import NamedTuple

import pytest

from ice_eval.cli import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def ice(monkeypatch, capsys, tmp_path):
    """Run the command `ice` in an empty folder: `ice("list", "tasks").out`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["ice", *map(str, arguments)])
        code, handler = 0, signal.getsignal(signal.SIGINT)
        try:
            main()
        except SystemExit as exc:
            code = exc.code or 0
        finally:
            signal.signal(signal.SIGINT, handler)
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def reviews(tmp_path_factory):
    """A file of eight labelled reviews."""
    path = tmp_path_factory.mktemp("data") / "reviews.jsonl"
    texts = [
        "a gorgeous witty film with a great cast and one dull scene",
        "the worst film of the year boring cold and far too long",
        "warm and fun from the first scene to the very last one",
        "a broken plot a rude cast and a terrible ending to it all",
        "the best thing on any screen this year by a long way",
        "slow and dull with one good joke near the very end of it",
        "I loved the music the light and the delightful old town",
        "an awful mess that even the excellent camera cannot save",
    ]
    path.write_text("".join(json.dumps({"text": t, "label": 1 - i % 2}) + "\n" for i, t in enumerate(texts)))
    return path
