"""`scope="prompt"` for models that read a text and its pair."""

import numpy as np

from ice_eval.encoding import encode
from ice_eval.records import PROTECTED, Example
from ice_eval.tasks import Records, Task

TASK = Task(
    data=Records([]),
    prompt="{premise} {hypothesis}",
    classifier_prompt="first: {premise} second: {hypothesis}",
    label_words={"negative": " negative", "positive": " positive"},
)
PAIR = Example("0", {"premise": "the room was warm", "hypothesis": "it was not cold"})


def test_both_texts_are_units_and_special_tokens_are_not(tiny):
    codec = tiny("bert").codec
    item = encode(codec, TASK, PAIR, scope="prompt", unit="word")
    assert item.whole == {"whole prompt": "first: the room was warm", "whole pair": "second: it was not cold"}
    assert item.texts == ("first", ":", "the", "room", "was", "warm", "second", ":", "it", "was", "not", "cold")
    assert item.segments[item.unit_of == item.n_units - 1].tolist() == [1] * (item.unit_of == item.n_units - 1).sum()
    bare = item.ids[item.unit_of == PROTECTED]
    assert codec.tokenizer.convert_ids_to_tokens(bare.tolist()) == ["[CLS]", "[SEP]", "[SEP]"]


def test_the_content_is_cut_and_never_the_template(tiny):
    codec = tiny("bert").codec
    long = Example("0", {**PAIR.fields, "premise": "the room was warm " * 40})
    content, prompt = (encode(codec, TASK, long, scope=scope) for scope in ("content", "prompt"))
    assert np.array_equal(content.ids, prompt.ids)
    assert len(prompt.ids) <= codec.max_tokens
    assert prompt.truncated
    assert prompt.whole["whole pair"] == "second: it was not cold"
