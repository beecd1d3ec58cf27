"""Every page that tells a reader to type something is typed."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documents import blocks_of, play
from tests.servers.chat_server import ChatServer, completion

from ice_eval.attributions import attributions
from ice_eval.models import models
from ice_eval.operators import operators
from ice_eval.tasks import tasks

ROOT = Path(__file__).parents[1]
OPERATOR = "plugin/src/ice_eval_example/mask_any.py"
PAGES_OF_FILES = {
    "extending/attribution.md": "extending/pair_occlusion.py",
    "extending/task.md": "extending/urgency.py",
    "extending/model.md": "extending/keyword_rules.py",
}


@pytest.fixture(autouse=True)
def reader(monkeypatch, tmp_path):
    """An empty folder from which modules are imported; names that a page registers are forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    for registry in (attributions, models, operators, tasks):
        registry.names()  # what is in the package is registered for good
        monkeypatch.setattr(registry, "_items", dict(registry._items))
    known = set(sys.modules)
    yield
    for name in {*(Path(file).stem for file in PAGES_OF_FILES.values()), "rules"} - known:
        sys.modules.pop(name, None)


def test_the_quick_start():
    play("quickstart.md")


def test_the_page_of_citations():
    names = play("citations.md")
    assert names["words"]["tower#1"] == "undetermined" and Path("cited/report.html").exists()


def test_the_readme():
    names = play("../README.md")
    assert set(names["run"].summary()["attribution"]) == {"mine", "gradient"}
    assert Path("report.html").stat().st_size > 100_000 and Path("audit/report.html").exists()


def test_contributing_goes_from_a_clone_to_a_tested_operator():
    """In a copy of the tree: the files of the page are written, its tests pass, and its run prints what is shown."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", ".")
    blocks = blocks_of("../CONTRIBUTING.md")
    for file in (block for block in blocks if block.title):
        assert not Path(file.title).exists()
        Path(file.title).write_text(file.text, encoding="utf-8")
    [typed] = [block.text for block in blocks if block.language == "bash" and "pytest" in block.text]
    [tests] = [line.partition("#")[0] for line in typed.splitlines() if "pytest tests" in line]
    [run] = [block.text for block in blocks if block.language == "sh"]
    [shown] = [block.text for block in blocks if block.language == "text" and "mask-any" in block.text]
    assert re.search(r"\b([2-9]|\d\d+) passed", _said(tests.split(maxsplit=1)[1])), "its test and its laws"
    printed = _said("-c 'from ice_eval.cli import main; main()' " + run.removeprefix("ice "))
    assert " ".join(shown.split()) in " ".join(printed.split())


def _said(arguments):
    """What Python prints when it is called with them in this folder, on the package that lies here."""
    call = [sys.executable, *shlex.split(arguments)]
    done = subprocess.run(call, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES_OF_FILES)
def test_a_part_of_ones_own_is_one_file(page):
    play(page)


@pytest.mark.parametrize(
    ("page", "file"),
    [*PAGES_OF_FILES.items(), ("../CONTRIBUTING.md", OPERATOR)],
)
def test_the_file_of_a_page_is_the_one_in_examples(page, file):
    [shown] = [block.text for block in blocks_of(page) if Path(block.title).name == Path(file).name]
    assert shown == (ROOT / "examples" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["audit-a-classifier", "grid-on-a-cluster"])
def test_a_tutorial_on_small_models(page):
    play(f"tutorials/{page}.md", missing={"ray"})


def test_the_tutorial_on_methods_takes_the_texts_of_another():
    [reviews] = [block for block in blocks_of("tutorials/audit-a-classifier.md") if block.title == "reviews.csv"]
    Path(reviews.title).write_text(reviews.text, encoding="utf-8")
    play("tutorials/compare-attributions.md")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray, when it stops
def test_the_tutorial_of_a_cluster():
    pytest.importorskip("ray", reason="needs Ray: pip install 'ice-eval[ray]'")
    play("tutorials/grid-on-a-cluster.md")


@pytest.mark.filterwarnings("ignore")  # of the libraries; ours are checked elsewhere
def test_the_tutorial_of_other_libraries():
    page = "tutorials/shap-and-inseq.md"
    needed = {block.needs for block in blocks_of(page)} - {""}
    missing = {name for name in needed if importlib.util.find_spec(name) is None}
    if needed - missing:
        _write_tiny_models()
    play(page, missing=missing)
    if missing:
        pytest.skip(f"all but the parts of {' and '.join(sorted(missing))}: pip install 'ice-eval[interop]'")


def _write_tiny_models():
    import transformers
    from tests.helpers import save_tiny

    save_tiny(Path("my-classifier"), "bert")
    save_tiny(Path("my-llm"), "gpt2")
    tokenizer = transformers.AutoTokenizer.from_pretrained("my-llm")
    tokenizer.pad_token = tokenizer.bos_token = tokenizer.eos_token  # inseq pads
    tokenizer.save_pretrained("my-llm")


def test_the_page_of_chains_asks_for_nothing_twice():
    pytest.importorskip("openai", reason="needs openai: pip install 'ice-eval[api]'")
    problems = [block.text for block in blocks_of("chain-of-thought.md") if block.title][0]
    with ChatServer(Solver(map(json.loads, problems.splitlines()))) as server:
        names = play("chain-of-thought.md", changes=[("http://localhost:8000/v1", server.url)])
        responses = Path("chains/responses.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(server.requests) == len(responses), "the call from Python continues the command's folder"
    assert names["run"].folder.summary().chains.problems.n_evaluated == 4


class Solver:
    """Writes a step for each cart; knows every second answer by heart, and adds up what it is shown for the others."""

    def __init__(self, problems):
        self._problems = list(problems)

    def __call__(self, request, number):
        asked = request["messages"][-1]["content"]
        [(place, problem)] = [(i, each) for i, each in enumerate(self._problems) if each["question"] in asked]
        if "step by step" not in asked:
            shown = sum(map(int, re.findall(r"^Cart \d brings (\d+)", asked, re.MULTILINE)))
            return completion(f"Answer: {problem['final'] if place % 2 else shown}")
        carts = enumerate(re.findall(r"\d+", problem["question"]), start=1)
        steps = [f"Cart {cart} brings {load}." for cart, load in carts]
        return completion("\n".join([*steps, f"Answer: {problem['final']}"]))
