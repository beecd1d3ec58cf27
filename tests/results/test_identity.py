import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.results import slug


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("sst2/minimal", "sst2-minimal"),
        ("org/Model-7B_v1.5", "org-Model-7B_v1.5"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "run"),
        ("", "run"),
        (".hidden", "hidden"),
        ("a\x00b\x1b[31m\nc", "a-b--31m-c"),
        ("C:\\x", "C--x"),
        ("con", "run-con"),
        ("NUL.txt", "run-NUL.txt"),
        ("console", "console"),
        ("\ud800x", "x"),
        ("电影", "电影"),
    ],
)
def test_a_name_as_a_part_of_a_file_name(name, part):
    assert slug(name) == part


@given(st.text(st.characters(), max_size=300))
def test_any_name_is_a_part_that_any_file_system_takes(name):
    part = slug(name)
    assert 0 < len(os.fsencode(part)) <= 84
    assert part == os.path.basename(part) and not part.startswith(".") and not part.endswith((".", " "))
    assert not set(part) & set('/\\:*?"<>|\x00')
