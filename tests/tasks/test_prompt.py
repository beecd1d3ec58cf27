import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.errors import ConfigError
from ice_eval.tasks import Piece, Template


def test_a_prompt_is_literal_text_and_fields_in_order():
    template = Template.parse("Premise: {premise}\nClaim: {claim}")
    assert template.parts == (
        Piece("Premise: "),
        Piece("premise", "premise"),
        Piece("\nClaim: "),
        Piece("claim", "claim"),
    )
    assert template.fields == ("premise", "claim")


def test_a_field_that_occurs_twice_is_named_once():
    assert Template.parse("{text} or {other} or {text}").fields == ("text", "other")


def test_rendering_puts_the_fields_in_and_remembers_where_they_are():
    pieces = Template.parse("Review: {text}\n").render({"text": "fine", "unused": "x"})
    assert pieces == [Piece("Review: "), Piece("fine", "text"), Piece("\n")]


def test_doubled_braces_stand_for_braces():
    pieces = Template.parse('{{"review": {text}}}').render({"text": "fine"})
    assert "".join(piece.text for piece in pieces) == '{"review": fine}'


@given(st.text())
def test_what_a_field_holds_is_never_read_as_a_template(text):
    pieces = Template.parse("a {text} b").render({"text": text})
    assert pieces == [Piece("a "), Piece(text, "text"), Piece(" b")]


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("Review: {text", "expected '}' before end of string"),
        ("Review: text}", "Single '}' encountered in format string"),
        ("Review: {text} {", "Single '{' encountered in format string"),
        ("{} is it?", "'{}' is not a field name"),
        ("{0}", "'{0}' is not a field name"),
        ("{text.upper}", "'{text.upper}' is not a field name"),
        ("{text[0]}", "'{text[0]}' is not a field name"),
        ("{text!r}", "'{text}' is not a field name"),
        ("{text:>10}", "'{text}' is not a field name"),
        ("{the text}", "'{the text}' is not a field name"),
    ],
)
def test_a_brace_that_opens_no_field_is_refused(prompt, reason):
    with pytest.raises(ConfigError) as caught:
        Template.parse(prompt)
    assert str(caught.value) == (
        f"the prompt {prompt!r} cannot be read: {reason}. Write fields as {{text}}, braces as {{{{ and }}}}."
    )


@pytest.mark.parametrize("prompt", ["", "Review:", "{{text}}"])
def test_a_prompt_without_a_field_is_refused(prompt):
    with pytest.raises(ConfigError, match=r"has no field; put the text to explain in it, as in 'Review: \{text\}"):
        Template.parse(prompt)
