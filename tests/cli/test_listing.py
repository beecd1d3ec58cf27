"""`ice list`."""

import json
import re

import pytest
from tests.cli.commands import assert_refused


def test_an_unknown_list_exits_2(ice):
    assert_refused(ice("list", "operator"), "cannot list 'operator'; did you mean 'operators'? Known: tasks, models")


LISTS = {
    "tasks": "demo", "models": "toy", "attributions": "random", "operators": "infill", "nulls": "size",
    "formats": "jsonl", "measures": "eraser", "executors": "local", "presets": "quick",
}  # fmt: skip
"""Everything that can be listed, and a name in it."""


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_names_everything_with_a_line_on_each(ice, kind):
    plain, as_json = ice("list", kind), ice("list", kind, "--json")
    assert plain.code == as_json.code == 0
    found = json.loads(as_json.out)
    lines = {name: entry if isinstance(entry, str) else entry["description"] for name, entry in found.items()}
    assert LISTS[kind] in lines and all(lines.values())
    for name, line in lines.items():
        assert re.search(rf"^{re.escape(name)} +{re.escape(line)}$", plain.out, re.MULTILINE)


def test_all_that_can_be_listed_is_named_by_help_and_by_the_refusal_of_what_cannot(ice):
    refused = re.search("Known: (.*)\\.", ice("list", "nothing").err)
    assert set(refused[1].split(", ")) == set(LISTS)
    assert set(LISTS) <= set(re.findall(r"[a-z-]+", ice("list", "--help").out))


def test_list_without_a_kind_gives_all_names(ice):
    done = ice("list")
    assert done.code == 0 and re.search(r"^operators: +blank, delete, .*truncate$", done.out, re.MULTILINE)
    assert json.loads(ice("list", "--json").out)["executors"] == ["local", "ray"]
