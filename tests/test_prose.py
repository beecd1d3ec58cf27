"""The search for prose that is hard to read finds it, and says where."""

import pytest
from tools import prose

LONG = " ".join(["word"] * 36)


@pytest.fixture
def found(tmp_path):
    """The text of a file -> the lines and problems that are found in it."""

    def find(text, name="page.md"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return list(prose.problems(path))

    return find


def test_a_long_sentence_is_found_at_its_first_line(found):
    assert [line for line, _ in found(f"# Title\n\nShort one.\nAnother is\nhere. A{LONG}.\n")] == [5]


@pytest.mark.parametrize(
    "text", [f"```sh\n{LONG}\n```", f"`{LONG}` is code.", "| cell | other |\n" * 36, "- item\n" * 36]
)
def test_code_cells_and_items_are_no_long_sentences(found, text):
    assert found(text) == []


def test_a_long_cell_is_found(found):
    assert found(f"| name | {LONG} |\n")[0][0] == 1


def test_a_word_with_a_plainer_one_is_found_unless_it_is_code(found):
    assert found("Use `slopes`.\n\nThe reader\nis told.\n") == [(4, "'told': reported, printed; distinguished")]


def test_docstrings_of_fields_count_and_their_openings_too(found):
    source = f'"""Whether it is."""\n\n\nclass A:\n    """A class."""\n\n    x: int\n    """A{LONG}."""\n'
    assert [(line, problem.partition(":")[0]) for line, problem in found(source, "module.py")] == [
        (1, "a docstring begins with 'Whether'"),
        (8, "36 words"),
    ]


def test_messages_of_errors_are_read(found):
    source = f'def check(x):\n    if x:\n        raise ValueError(f"{{x}} is told. {LONG}")\n'
    assert [line for line, _ in found(source, "module.py")] == [3, 3]


def test_bars_of_tables_and_code_are_no_words():
    text = f"A | table |\n|---|---|\n```sh\n{LONG}\n```\n"
    assert (prose.words(text, code=False), prose.words(text, code=True)) == (2, 39)


def test_pages_and_docstrings_are_easy_to_read():
    assert {str(path): found for path in prose.everything() if (found := list(prose.problems(path)))} == {}


def test_strings_of_several_words_are_read_and_lists_of_words_are_not(found):
    source = f'HELP = "The run is told of it."\nSHOWN = f"{{HELP}} was brought here by somebody."\nWORDS = "{LONG}"\n'
    assert [line for line, _ in found(source, "module.py")] == [1, 2]


def test_templates_are_read_without_their_tags(found):
    source = "{% if told %}<p class='told'>\nThe page\nis told.</p>\n<dl>" + "<dd>word</dd>" * 36 + "</dl>"
    assert [line for line, _ in found(source, "page.html")] == [3]
