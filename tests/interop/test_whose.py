"""Whose explanation it is: by id, by text, or by place."""

import unicodedata

import numpy as np
import pytest

from ice_eval.errors import DataError
from ice_eval.interop import Explanation, of_examples
from ice_eval.records import Example

PAIRS = [
    Example("1", {"premise": "a man eats", "hypothesis": "he is hungry"}),
    Example("2", {"premise": "he is hungry", "hypothesis": "a man eats"}),
]


def owner(text, examples=PAIRS):
    return list(of_examples([Explanation(np.ones(1), text=text)], examples, name="mine").by_id)


def test_fields_are_matched_by_name_in_any_order():
    assert owner({"hypothesis": "he is hungry", "premise": "a man eats"}) == ["1"]
    assert owner({"hypothesis": "a man  eats", "premise": "he is hungry "}) == ["2"]
    assert owner("a man eats he is hungry") == ["1"]
    with pytest.raises(DataError, match="none of its 1 explanations belongs to an example"):
        owner({"premise": "a man eats"})


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_are_written_in_one_way_or_another(form):
    examples = [Example("1", {"text": unicodedata.normalize("NFC", "Café naïf 한국")}), Example("2", {"text": "x"})]
    text = unicodedata.normalize(form, "Café naïf 한국")
    assert owner(text, examples) == owner({"text": text}, examples) == ["1"]


def test_a_text_of_several_examples_tells_none():
    with pytest.raises(DataError, match="explanation 0: 2 examples have its text; give ids"):
        owner("x", [Example("1", {"text": "x"}), Example("2", {"text": "x"})])
