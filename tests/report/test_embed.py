import json

import pytest

from ice_eval.report.browser import script_json
from ice_eval.report.page import content_policy, script_text

HOSTILE = ["</script><script>alert(1)</script>", "<!--", "a & b > c", "line\u2028sep\u2029", "'\"\\", "😀 مرحبا 你好"]


def test_json_in_a_page_comes_back_as_it_was():
    assert json.loads(script_json(HOSTILE)) == HOSTILE


def test_json_in_a_page_holds_nothing_that_a_parser_looks_for():
    assert not set(script_json(HOSTILE)) & set("<>&\u2028\u2029")


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])


def test_a_script_cannot_end_its_element():
    assert script_text('x = "</script>";\r\n') == 'x = "<\\/script>";\n'
    with pytest.raises(ValueError, match="<!--"):
        script_text("<!-- old")


def test_a_policy_names_each_script_by_its_hash():
    # The hash of the empty text is well known.
    assert "script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; " in content_policy([""])
