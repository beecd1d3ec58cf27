"""Python and commands that the guides show run as they stand, on small runs."""

import importlib.util
import json
from pathlib import Path

import pytest
from tests.documents import DOCS, blocks_of, play
from tests.small_grids import content, write_reviews

import ice_eval as ice

PLAYED = {"chain-of-thought.md", "citations.md", "concepts.md", "quickstart.md"}
"""Run whole, as the tutorials and the pages on extending are."""
ELSEWHERE = {
    "architecture.md": "tests/test_architecture.py runs it",
    "bring-your-own.md": "needs shap, captum, inseq and interpreto; tutorials/shap-and-inseq.md runs the same calls",
    "chain-measures.md": "tests/subjects/chain/test_problems.py runs it",
    "models.md": "needs a server; tests/models/test_served.py runs the same call",
}
"""Pages whose Python needs more than this package, and where the same calls are run."""
GUIDES = {
    "bench.md": lambda names: len(names["folder"].records()) == 2,
    "compare.md": lambda names: (
        "m" in str(names["frame"].attrs["settings"])
        and len(names["frame"]) > 0
        and Path("C.html").exists()
        and list(Path("data").glob("*.csv"))
    ),
    "measures.md": lambda names: names["found"].parts[0].lines,
    "reproduce.md": lambda names: (
        names["cell"].win_rate > 0
        and names["cells"]
        and Path("ice-reproduce/tables/tab-ksweep.tex").exists()
        and list(Path("DIR").glob("*.svg"))
    ),
    "report.md": lambda names: (
        list(Path("paper/figures").glob("*.svg"))
        and names["drawn"]
        and Path("report.html").exists()
        and list(Path("data").glob("*.csv"))
    ),
    "results-format.md": lambda names: (
        set(names["ledger"].query("kind == 'rationale'").attribution) == {"attention", "random"}
    ),
}
"""Pages whose Python is run, and what it comes to."""
ON_TOYS = "--models toy --n 2 --m 5 --data-dir DATA"
COMMANDS = {
    "compare.md": [("RUN RUN", "before after"), ("RUN", "before"), ("vendor", "attention")],
    "report.md": [("RUN RUN2", "before after"), ("RUN", "before")],
    "reproduce.md": [
        ("reproduce all --dry-run", f"reproduce k-sweep {ON_TOYS} --dry-run"),
        ("reproduce tab:ksweep", f"reproduce tab:ksweep {ON_TOYS}"),
        ("reproduce all --models smollm2 --n 40 --data-dir DATA", f"reproduce k-sweep {ON_TOYS}"),
    ],
}
"""Pages whose commands are run too, and what replaces their names of folders, models and attributions."""
CLOSED = {"not distinguishable from random"}
"""Words of `--fail-if` that the verdict on twelve texts has."""


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
def test_what_a_guide_shows_runs(page, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(json.dumps(content(write_reviews(tmp_path / "reviews.jsonl"))))
    for name, run in finished.items():
        (tmp_path / name).symlink_to(run.folder.path)
    run = finished["before"]
    known = {"ice": ice, "run": run, "runs": [run], "folder": run.folder.path}
    if page in COMMANDS:
        Path("DATA").mkdir()
        for language in ("french", "german"):
            write_reviews(Path("DATA") / f"{language}.jsonl")
        missing = {name for name in ("typst",) if importlib.util.find_spec(name) is None}
        names = play(page, names=known, changes=COMMANDS[page], missing=missing, fails=CLOSED)
    else:
        names = _run_python(page, known)
    assert GUIDES[page](names)


def _run_python(page, names):
    for block in blocks_of(page):
        if block.language == "python":
            exec(compile(block.text, page, "exec"), names)
    return names


def test_every_guide_with_python_is_tried():
    shown = {page.name for page in DOCS.glob("*.md") if any(b.language == "python" for b in blocks_of(page.name))}
    assert shown == {*GUIDES, *PLAYED, *ELSEWHERE}
