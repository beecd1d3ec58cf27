"""The site of docs/ builds, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    pytest.importorskip("material", reason="needs mkdocs-material: pip install 'ice-eval[dev]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site):
    assert [page for page in PAGES if not (site / page).with_suffix(".html").is_file()] == []


def test_a_browser_loads_nothing_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|img|iframe)\b[^>]*\bsrc=\"?http[^>]*|<link\b[^>]*stylesheet[^>]*\bhttp[^>]*")
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page.name


def test_files_outside_of_docs_come_along(site):
    assert (site / "project/CITATION.cff").read_text("utf-8") == (ROOT / "CITATION.cff").read_text("utf-8")
    assert 'href="project/CONTRIBUTING.html"' in (site / "index.html").read_text("utf-8")
    assert 'href="../report.html"' in (site / "project/CHANGELOG.html").read_text("utf-8")


def test_every_page_has_a_place_in_the_navigation():
    def pages(entry):
        if isinstance(entry, str):
            return [entry]
        return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages(part)]

    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert sorted(pages(nav)) == PAGES
