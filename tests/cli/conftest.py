import json
import shutil

import pytest
from tests.cli.commands import PROMPT, Done, called


@pytest.fixture
def ice(monkeypatch, capsys, tmp_path):
    """Run the command `ice` in an empty folder: `ice("list", "tasks").out`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def call(*arguments):
        return Done(called(*arguments), *capsys.readouterr())

    return call


def write_reviews(path):
    """Eight labelled reviews."""
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


@pytest.fixture
def reviews(tmp_path_factory):
    """A file of eight labelled reviews."""
    return write_reviews(tmp_path_factory.mktemp("data") / "reviews.jsonl")


@pytest.fixture
def run(ice, reviews, tmp_path):
    """`ice run` of the toy model on the file of reviews; later options replace earlier ones."""

    def call(*more, data=reviews, prompt=PROMPT, labels="negative,positive", out=tmp_path / "run"):
        options = {"--model": "toy", "--data": data, "--prompt": prompt, "--labels": labels, "--m": 6, "--out": out}
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        return ice("run", *given, *more)

    return call


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """What `ice run` of the toy model on the file of reviews writes; nobody may change it."""
    folder = tmp_path_factory.mktemp("once")
    data = write_reviews(folder / "reviews.jsonl")
    options = ("--model", "toy", "--prompt", PROMPT, "--labels", "negative,positive", "--m", 6)
    assert called("run", "--data", data, *options, "--out", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def finished(run_once, tmp_path):
    """The folder of a finished run, to do with as one likes."""
    return shutil.copytree(run_once, tmp_path / "run")
