"""Python that the guides show runs as it stands, on a small run."""

import json

import pytest
from tests.documents import DOCS, blocks_of
from tests.servers.chat_server import ChatServer, completion
from tests.small_grids import content, write_reviews

import ice_eval as ice

PLAYED = {"concepts.md", "quickstart.md"}
"""Run whole, as the tutorials and the pages on extending are."""
ELSEWHERE = {
    "bring-your-own.md": "needs shap, captum, inseq and interpreto; tutorials/shap-and-inseq.md runs the same calls",
    "chain-of-thought.md": "needs a server and SmolLM2; below",
    "scaling.md": "needs a cluster; tests/executors runs the same call on Ray of this machine",
    "served-models.md": "needs a server; tests/models/test_served.py runs the same call",
    "tasks.md": "its data set is made up; extending/task.md runs a task of the same shape",
}
"""Pages whose Python needs more than this package, and where the same calls are run."""
GUIDES = sorted(
    page.name
    for page in DOCS.glob("*.md")
    if any(block.language == "python" for block in blocks_of(page.name)) and page.name not in {*PLAYED, *ELSEWHERE}
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two runs of one task."""
    folder = tmp_path_factory.mktemp("runs")
    data = write_reviews(folder / "reviews.jsonl", n=12, rationale=[[4, 8]])
    return {
        name: ice.evaluate("toy", "sst2", data=data, m=m, attributions=["attention", "random"], out=folder / name)
        for name, m in {"before": 5, "after": 8}.items()
    }


@pytest.mark.parametrize("page", GUIDES)
def test_the_python_of_a_guide_runs(page, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(json.dumps(content(write_reviews(tmp_path / "reviews.jsonl"))))
    for name, run in finished.items():
        (tmp_path / name).symlink_to(run.folder.path)
    run = finished["before"]
    names = {"ice": ice, "run": run, "runs": [run], "folder": run.folder.path}
    _run_python(page, names)


@pytest.mark.smollm2
def test_the_python_of_the_page_of_chains_runs(tmp_path, monkeypatch):
    pytest.importorskip("openai", reason="needs openai: pip install 'ice-eval[api]'")
    monkeypatch.chdir(tmp_path)
    question = {"id": "q", "question": "2 + 3 + 4?", "answer": "9"}
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps(question) + "\n")
    solved = completion("Two are red.\nThree are blue.\nThe 4 others are green.\nAnswer: 9")
    with ChatServer(lambda request, number: solved) as server:
        changes = [("http://localhost:8000/v1", server.url), ("max_tokens=256", "max_tokens=8"), ("m=50", "m=5")]
        names = _run_python("chain-of-thought.md", {}, changes=changes)
    assert names["run"].folder.summary()["cot"]["capacity"][0]["verdict"] != "genuine", "the server always says 9"
    assert str(names["answer"]) == "Answer(value='840', by='marker')"


def _run_python(page, names, *, changes=()):
    for block in blocks_of(page):
        if block.language == "python":
            text = block.text
            for old, new in changes:
                text = text.replace(old, new)
            exec(compile(text, page, "exec"), names)
    return names


def test_every_guide_with_python_is_tried():
    assert GUIDES == ["bench.md", "compare.md", "measures.md", "paper.md", "report.md", "results-format.md"]
