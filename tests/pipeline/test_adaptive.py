"""What goes with fewer random sets, what does not, and folders of versions that knew neither."""

import json

import pytest
from tests.small_runs import (
    METHODS,
    OPERATORS,
    Waves,
    files_of,
    line_of,
    lines_of,
    results_of,
    run,
    texts,
)

from ice_eval.errors import ConfigError
from ice_eval.results import RunFolder

# Texts of 11 to 14 words have at most 91 sets of two; those of 24 words have 10,626 sets of four.
TEXTS = [*texts(13), *texts(4, words=(24, 24), seed=1)]


REFUSED = {
    "too few": ({"adaptive": "examples", "m": 498}, "m = 498: with adaptive 'examples' m is the most sets .* 499"),
    "unknown": ({"adaptive": "exmples"}, "adaptive 'exmples'; did you mean 'examples'"),
    "released": ({"adaptive": "examples", "protocol": "released"}, "'released' draws random sets of its own"),
    "released too": ({"adaptive": "dataset", "protocol": "released"}, "'released' draws random sets of its own"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_adaptive_is_refused_and_nothing_is_written(tmp_path, name):
    settings, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        run(TEXTS[:3], out=tmp_path / "run", **settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [None, "dataset", "examples"])
def test_a_folder_is_continued_in_its_own_way_only(tmp_path, there):
    run(TEXTS[:3], adaptive=there, m=499, out=tmp_path / "run")
    before = files_of(tmp_path / "run")
    for here in {None, "dataset", "examples"} - {there}:
        with pytest.raises(ConfigError, match=f"adaptive is {there!r} there and {here!r} here"):
            run(TEXTS[:3], adaptive=here, m=499, out=tmp_path / "run")
        assert files_of(tmp_path / "run") == before


def test_the_protocol_of_the_papers_text_goes_with_both():
    for adaptive in ("dataset", "examples"):
        found = run(TEXTS[:6], adaptive=adaptive, protocol="paper")
        assert line_of(found)["n"] == 6


def made_older(path):
    """Take out of a manifest what earlier versions did not know."""
    manifest = json.loads((path / "manifest.json").read_text())
    for part in ("config", "identity"):
        for name in ("nulls", "adaptive"):
            manifest[part].pop(name, None)
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_folder_without_nulls_and_adaptive_is_rescored_reported_and_continued(tmp_path):
    from ice_eval.report import notes, tables

    found = run(TEXTS, operators=OPERATORS, m=9, out=tmp_path / "run")
    results = results_of(found)
    made_older(found.path)
    found.rescore()
    assert results_of(found) == results
    found.report()
    assert [table.title for table in tables([found.folder.summary()])][0] == "Faithfulness"
    assert notes(found.folder.summary())
    model = Waves()
    again = run(TEXTS, model=model, operators=OPERATORS, m=9, out=tmp_path / "run")
    assert results_of(again) == results
    made_older(found.path)
    grown = run(TEXTS, operators=OPERATORS, m=9, nulls=["contiguity"], out=tmp_path / "run")
    assert grown.folder.manifest()["config"]["nulls"] == ["size", "contiguity"]
    assert [line for line in lines_of(grown) if line["null"] == "size"] == [
        json.loads(line) for line in results[1].decode().splitlines()
    ]


def test_a_summary_of_an_earlier_version_is_still_shown(tmp_path):
    from ice_eval.report import formatted, notes, tables

    found = run(TEXTS, attributions=METHODS, operators=OPERATORS, m=9, out=tmp_path / "run")
    summary = found.folder.summary()
    for name in ("robustness", "kappa"):
        summary.pop(name)
    for line in summary["configurations"]:
        for name in ("null", "p_adjusted", "effect_word"):
            line.pop(name)
    for line in summary["agreement"]:
        for name in ("null", "rank_correlation_ceiling", "disagree_rate", "disagree"):
            line.pop(name)
    (found.path / "summary.json").write_text(json.dumps(summary))
    shown = RunFolder.existing(found.path).summary()
    assert [table.title for table in tables([shown])] == ["Faithfulness", "Operator agreement"]
    assert all(formatted(table, style) for table in tables([shown]) for style in ("md", "csv", "latex"))
    assert notes(shown)
    found.report()
