import pytest

from ice_eval.report.colours import FILLS, INKS, OPERATOR_COLOURS, WORD_COLOURS, operator_colour
from ice_eval.stats import ANTI_FAITHFUL, PATTERNS, POSITIVE, RANDOM, TAXONOMY, WORDS


def luminance(colour: str) -> float:
    """As WCAG 2.1 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_word_has_a_colour_and_text_that_can_be_read_on_it():
    assert set(WORD_COLOURS) == {*TAXONOMY, *WORDS, *PATTERNS}
    assert set(FILLS) == set(INKS)
    for word, fill in FILLS.items():
        assert contrast(fill, INKS[word]) >= 4.5


@pytest.mark.parametrize("words", [(*TAXONOMY,), (RANDOM, "weakly faithful", "faithful"), (ANTI_FAITHFUL, RANDOM)])
def test_neighbouring_words_differ_in_lightness_too(words):
    fills = [WORD_COLOURS[word] for word in words]
    assert all(contrast(one, other) >= 1.3 for one, other in zip(fills, fills[1:], strict=False))


def test_a_stronger_word_is_darker():
    fills = [WORD_COLOURS[word] for word in (RANDOM, *POSITIVE)]
    assert all(luminance(one) > luminance(other) for one, other in zip(fills, fills[1:], strict=False))
    assert all(contrast(one, other) >= 1.15 for one, other in zip(fills, fills[1:], strict=False))


@pytest.mark.parametrize("page", ["#ffffff", "#1c1c1c"])
def test_marks_of_operators_are_seen_on_a_light_and_a_dark_page(page):
    assert all(contrast(colour, page) >= 3 for colour in OPERATOR_COLOURS.values())


def test_an_operator_of_a_plug_in_is_grey():
    assert operator_colour("delete") == operator_colour("delete@prefill") == OPERATOR_COLOURS["delete"]
    assert operator_colour("their-own") == "#7a7a7a"
