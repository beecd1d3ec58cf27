"""The page that follows one text through the code: its lines are executed, and its counts are counted."""

import doctest
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def test_every_line_of_the_page_is_true():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 30 and found.failed == 0


def test_every_file_that_it_names_exists():
    source = ROOT / "src" / "ice_eval"
    named = {
        word.strip("`.,") for word in PAGE.read_text(encoding="utf-8").split() if word.strip("`.,").endswith(".py")
    }
    known = [name for name in named if (source / name).is_file() or (ROOT / name).is_file()]
    assert len(named) > 8 and sorted(known) == sorted(named)


@pytest.fixture(scope="module")
def counts():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import counts as module
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module.counted(ROOT / "src")


def test_the_way_to_the_model_has_eight_calls_and_is_the_one_that_is_described(counts):
    way = [hop.rpartition(":")[2].rpartition(".")[2] for hop in counts["way"]]
    way = way[way.index("run") :]
    assert way == ["run", "evaluate", "score", "score_parts", "map", "start_part", "ask", "submit", "submit"]


def test_the_help_of_a_run_fits_on_two_screens(counts):
    assert counts["help_lines"] <= 50 and counts["help_options"] <= 30
