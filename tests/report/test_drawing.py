import sys
from types import SimpleNamespace

import pytest

import ice_eval
from ice_eval.report import page
from ice_eval.report.page import drawings

pytest.importorskip("altair", reason="needs the extra 'figures'")


@pytest.fixture(scope="module")
def folder():
    return ice_eval.evaluate("toy", "demo", n=4, m=5).folder


@pytest.fixture
def bundles(monkeypatch, tmp_path):
    """A stand-in for vl-convert, whose real bundle takes seconds; it notes what it is asked for."""
    asked = []

    def javascript_bundle(snippet, vl_version):
        asked.append(vl_version)
        return f"/* {vl_version} */ {snippet}"

    monkeypatch.setitem(
        sys.modules, "vl_convert", SimpleNamespace(__version__="1.2", javascript_bundle=javascript_bundle)
    )
    monkeypatch.setenv("ICE_CACHE", str(tmp_path / "cache"))
    page._library.cache_clear()
    yield asked
    page._library.cache_clear()


def test_the_library_is_put_together_once_and_kept(folder, bundles, tmp_path):
    first = drawings([folder])
    page._library.cache_clear()  # as in another process
    assert drawings([folder]).library == first.library
    assert len(bundles) == 1
    [kept] = (tmp_path / "cache").iterdir()
    assert kept.name == f"vega-lite-{bundles[0]}-by-1.2.js"
    assert kept.read_text(encoding="utf-8") == first.library


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(folder, bundles, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder", encoding="utf-8")
    assert "vegaEmbed" in drawings([folder]).library


def test_figures_come_with_their_captions_and_two_themes(folder, bundles):
    found = drawings([folder])
    assert found.missing == "" and set(found.themes) == {"light", "dark"}
    for figure in found.figures:
        assert set(figure) == {"name", "title", "caption", "spec"}
        assert "config" not in figure["spec"] or not figure["spec"]["config"].get("background")
    assert len({figure["name"] for figure in found.figures}) == len(found.figures) > 0


def test_versions_that_do_not_fit_cost_the_figures_and_not_the_report(folder, bundles, monkeypatch):
    def refuse(snippet, vl_version):
        raise RuntimeError("Unsupported Vega-Lite version string\n\nStack backtrace:")

    monkeypatch.setattr(sys.modules["vl_convert"], "javascript_bundle", refuse)
    found = drawings([folder])
    assert found.figures == ()
    assert "vl-convert 1.2 says: Unsupported Vega-Lite version string. Install both anew" in found.missing


def test_without_altair_the_page_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert drawings([folder]).missing == (
        "No figures: 'altair' is not installed, and is needed to draw figures. Install it: pip install 'altair'"
    )
