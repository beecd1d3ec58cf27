"""Answers in which a model lists words, in the ways in which models write lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.attributions.self_explanation import named_units
from ice_eval.encoding import encode
from ice_eval.models import load_model
from ice_eval.records import Example
from ice_eval.tasks import Records, Task

TEXT = "The soup was cold , and it 's a well-made mess : cold soup with no plot !"
NONE = "no word that the model's answer names is in the text ({} named)"
CHINESE = "这部电影很好看,但是结尾太差。"


@pytest.fixture(scope="module")
def read():
    """An answer, and the texts of an example -> the encoded example, and what the answer says of its units."""
    # Its words are those of `words.py`, so that unspaced scripts have units of one character.
    codec = load_model(lambda texts: [[0.5, 0.5]] * len(texts), device="cpu").codec

    def read(answer, **fields):
        prompt = " ".join(f"{{{name}}}" for name in fields)
        task = Task(data=Records([]), prompt=prompt, label_words={"bad": " bad", "good": " good"})
        item = encode(codec, task, Example("0", fields))
        return item, named_units(answer, item)

    return read


@pytest.mark.parametrize(
    "answer",
    [
        "cold, mess, plot",
        "cold,mess,plot.",
        "Cold; MESS; Plot",
        "cold\nmess\nplot",
        "cold | mess | plot",
        "cold，mess、plot。",
        "1. cold\n2. mess\n3. plot",
        "1) cold 2) mess 3) plot",
        "(1) cold (2) mess (3) plot",
        "a) cold\nb) mess\nc) plot",
        "- cold\n- mess\n- plot",
        "* cold\n* mess\n* plot",
        "• cold\n• mess\n• plot",
        '"cold", "mess", "plot"',
        "'cold', 'mess', 'plot'",
        "“cold”, ‘mess’, «plot»",
        "`cold`, `mess`, `plot`",
        "**cold**, **mess**, **plot**",
        '["cold", "mess", "plot"]',
        "['cold', 'mess', 'plot']",
        '[\n  "cold",\n  "mess",\n  "plot"\n]',
        '"cold, mess, plot"',
        "cold and mess and plot",
        "cold, mess, and plot",
        "cold, mess & plot",
        "1. **Cold**: it says that the soup is bad\n2. **mess**: so is the rest\n3. **plot**",
        "cold - as a word for food\nmess – a strong word\nplot — it is missing",
        "cold (negative), mess (negative), plot (neutral)",
        "The most important words are: cold, mess, plot",
        'I would say "cold", followed by "mess" and "plot".',
        'The words "cold" and "mess" and finally "plot" matter most.',
        "cold, cold, mess, cold, plot, plot",
        "  cold ,  mess ,  plot  \n\n",
    ],
)
def test_a_list_is_read_however_it_is_written(read, answer):
    item, found = read(answer, text=TEXT)
    assert {text: value for text, value in zip(item.texts, found.values, strict=True) if value} == {
        "cold": 3,
        "mess": 2,
        "plot": 1,
    }
    assert (found.n_named, found.n_absent, found.problem) == (3, 0, None)


@pytest.mark.parametrize(
    ("answer", "problem", "n_absent"),
    [
        ("", "the model's answer names no word", 0),
        ("\n \n", "the model's answer names no word", 0),
        ("... - , ;", "the model's answer names no word", 0),
        ("1. 2. 3.", NONE.format(1), 1),
        ("warm, nice", NONE.format(2), 2),
        (
            "I'm sorry, but I cannot help with that.",
            "no word that the model's answer names is in the text (2 named)",
            2,
        ),
        ("As a language model I have no opinion", NONE.format(1), 1),
        ("col, mes, lot, so", NONE.format(4), 4),
        (TEXT, "the model's answer repeats the whole text", 0),
        (f'The text is "{TEXT}"', "the model's answer repeats the whole text", 0),
    ],
)
def test_what_names_no_word_of_the_text_has_no_numbers(read, answer, problem, n_absent):
    _, found = read(answer, text=TEXT)
    assert (found.values, found.n_named, found.n_absent, found.problem) == (None, 0, n_absent, problem)


def places(item, found):
    return {index: value for index, value in enumerate(found.values) if value}


def test_words_that_are_not_in_the_text_are_counted_and_take_no_place(read):
    item, found = read("awful, cold, terrible, Awful, plot", text="a cold film without a plot")
    assert places(item, found) == {1: 2, 5: 1}
    assert (found.n_named, found.n_absent) == (2, 2)


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("good or not good", "good", {0: 1, 3: 1}),
        ("a not so good film", "not so good, film", {1: 2, 2: 2, 3: 2, 4: 1}),
        ("bad and good film", "bad and good", {0: 1, 1: 1, 2: 1}),
        ("not nothing , nothing not", "not, nothing", {0: 2, 4: 2, 1: 1, 3: 1}),
        ("a well-made film", "made", {1: 1}),
        ("made of well-made parts", "made", {0: 1}),
        ("it 's n't fun", "it's, n't", {0: 2, 1: 2, 2: 2, 3: 1}),
        ("they don’t care", "don't", {1: 1}),
        ("wait ! what ?", "!, ?", {1: 2, 3: 1}),
        ("fine 👍🏽 film", "👍🏽, film", {1: 2, 2: 1}),
        ("rated 5 of 10", "10, 5", {3: 2, 1: 1}),
        ("a 3.5 out of 4", "1. 3.5\n2. 4", {1: 2, 4: 1}),
    ],
)
def test_occurrences_share_a_number_and_whole_words_come_first(read, text, answer, expected):
    assert places(*read(answer, text=text)) == expected


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("une soirée déçue", "DE\u0301C\u0327UE", {2: 1}),
        ("une soire\u0301e de\u0301c\u0327ue", "déçue, soirée", {2: 2, 1: 1}),
        ("ＣＯＬＤ soup", "cold", {0: 1}),
        ("die Straße hier", "STRASSE", {1: 1}),
        ("ein schöner Film", "„schöner“", {1: 1}),
        (CHINESE, "好看、差", {5: 2, 6: 2, 13: 1}),
        (CHINESE, "1. 太差\n2. 好看", {12: 2, 13: 2, 5: 1, 6: 1}),
        (CHINESE, "最重要的词是“好看”和“差”。", {5: 2, 6: 2, 13: 1}),
        (CHINESE, "「好看」「差」", {5: 2, 6: 2, 13: 1}),
        ("फिल्म अच्छी नहीं", "अच्छी, फिल्म", {1: 2, 0: 1}),
        ("पद् अच्छा", "“पद्”", {0: 1}),
        ("الفيلم جميل جدا", "جميل، الفيلم", {1: 2, 0: 1}),
    ],
)
def test_any_script_and_any_form_of_unicode_is_found(read, text, answer, expected):
    assert places(*read(answer, text=text)) == expected


def test_words_are_found_in_every_explained_text(read):
    item, found = read("dog, cat", premise="a dog runs", hypothesis="a cat and a dog")
    assert [item.texts[unit] for unit in places(item, found)] == ["dog", "cat", "dog"]
    assert list(places(item, found).values()) == [2, 1, 2]


def test_a_text_without_a_word_takes_any_answer(read):
    _, found = read("cold, mess", text="! ?")
    assert found.problem == NONE.format(2)


@given(st.text(alphabet="cold mes,;:.-\n\"'()[]12*和and", max_size=40))
def test_any_answer_is_either_read_or_said_to_be_unreadable(read, answer):
    item, found = read(answer, text=TEXT)
    assert (found.values is None) == (found.problem is not None) == (found.n_named == 0)
    if found.values is not None:
        assert set(np.unique(found.values)) <= set(range(found.n_named + 1)) and found.values.any()
