"""What no terminal, page or file may get."""

import pytest

from ice_eval.errors import without_controls

TURNS = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@pytest.mark.parametrize("character", ["\x1b", "\x00", "\r", "\x9b", "\udcff", *TURNS])
def test_names_get_no_character_that_a_terminal_obeys_or_that_turns_numbers(character):
    assert without_controls(f"a{character}b 52 %\n\t") == "a\ufffdb 52 %\n\t"


@pytest.mark.parametrize("text", ["שלום 52 %", "ن\u200cم 👨\u200d👩\u200d👧", "a\u200e\u200f\u061cb", "é\u0301 \u00a0"])
def test_other_scripts_their_joiners_and_marks_stay(text):
    assert without_controls(text) == without_controls(text, is_text=True) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("قال \u2067a b\u2069 ثم \u202bc\u202c.", None), ("\u2067a\u2069b\u202ec", "\u2067a\u2069b\ufffdc"),
     ("a\u2067b", "a\ufffdb"), ("a\u2069\u202c", "a\ufffd\ufffd"), ("\u202ea\u202c", "\ufffda\ufffd"),
     ("\u2067a\u2067b\u2069c\u2069", None)],
)  # fmt: skip
def test_in_a_text_what_is_closed_stays(text, shown):
    assert without_controls(text, is_text=True) == (shown or text)
