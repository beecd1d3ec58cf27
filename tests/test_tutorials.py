"""Every page that tells a reader to type something is typed."""

import sys
from pathlib import Path

import pytest
from tests.documents import blocks_of, play

from ice_eval.attributions import attributions
from ice_eval.models import models
from ice_eval.operators import operators
from ice_eval.tasks import tasks

EXTENDING = Path(__file__).parents[1] / "examples" / "extending"
PAGES_OF_FILES = {
    "extending/operator.md": "mask_fixed.py",
    "extending/attribution.md": "pair_occlusion.py",
    "extending/task.md": "urgency.py",
    "extending/model.md": "keyword_rules.py",
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
    for name in {Path(file).stem for file in PAGES_OF_FILES.values()} - known:
        sys.modules.pop(name, None)


def test_the_quick_start():
    play("quickstart.md")


@pytest.mark.parametrize("page", PAGES_OF_FILES)
def test_a_part_of_ones_own_is_one_file(page):
    play(page)


@pytest.mark.parametrize(("page", "file"), PAGES_OF_FILES.items())
def test_the_file_of_a_page_is_the_one_in_examples(page, file):
    [shown] = [block.text for block in blocks_of(page) if block.title == file]
    assert shown == (EXTENDING / file).read_text(encoding="utf-8")
