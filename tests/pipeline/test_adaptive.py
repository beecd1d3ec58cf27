"""What goes with fewer random sets, and what does not."""

import pytest
from tests.small_runs import (
    files_of,
    line_of,
    run,
    texts,
)

from ice_eval.errors import ConfigError

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
        assert line_of(found).n == 6
