"""Chat templates: the frame, the labels and the shots are protected, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from tests.rows import join

from ice_eval.encoding import encode, label_ids
from ice_eval.errors import ConfigError

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def chatty(tiny):
    model = tiny("llama")
    model.codec.tokenizer.chat_template = TEMPLATE
    return model


def text_of(model, item):
    return model.codec.decode([item.ids])[0]


def test_the_prompt_becomes_a_user_turn_and_only_the_field_is_explained(chatty, reviews):
    task = replace(reviews, shots=(), chat=True)
    example = task.examples()[0]
    item = encode(chatty.codec, task, example)
    assert text_of(chatty, item) == f"<user>Review: {example.fields['text']}\nSentiment:<end><assistant>"
    assert "".join(item.texts).replace(" ", "") == example.fields["text"].replace(" ", "")
    empty = chatty.codec.decode([item.empty().ids])[0]
    assert empty.replace(" ", "") == "<user>Review:\nSentiment:<end><assistant>"


def test_shots_and_system_prompt_are_turns_of_their_own(chatty, reviews):
    task = replace(reviews, chat=True, system="Judge reviews.")
    text = text_of(chatty, encode(chatty.codec, task, task.examples()[0]))
    assert text.startswith("<system>Judge reviews.<end><user>Review: ")
    for shot in task.shots:
        assert f"{shot.fields['text']}\nSentiment:<end><assistant>{shot.label}<end>" in text


def test_with_the_whole_prompt_the_frame_may_go_but_no_special_token(chatty, reviews):
    task = replace(reviews, shots=(), chat=True)
    example = task.examples()[0]
    item = encode(chatty.codec, task, example, scope="prompt")
    whole = f"<user>Review: {example.fields['text']}\nSentiment:<end><assistant>"
    assert item.whole == {"whole prompt": whole}
    assert set(chatty.codec.decode([item.empty().ids])) == {"<end>"}
    covered = "".join(item.texts).replace(" ", "").replace("\n", "")
    assert covered == whole.replace("<end>", "").replace(" ", "").replace("\n", "")
    assert np.array_equal(item.ids, encode(chatty.codec, task, example).ids)


def test_labels_follow_the_assistant_header_without_a_space(chatty, reviews):
    codec = chatty.codec
    words = [codec.decode([np.array(ids)])[0] for ids in label_ids(codec, replace(reviews, chat=True))]
    assert words == ["negative", "positive"]
    assert [codec.decode([np.array(ids)])[0] for ids in label_ids(codec, reviews)] == [" negative", " positive"]


def test_scores_follow_the_frame(chatty, reviews):
    task = replace(reviews, chat=True)
    item = encode(chatty.codec, task, task.examples()[0])
    labels = chatty.labels(task)
    assert chatty.check(join([item.full(), item.empty()]), labels, prefix=item.content.start) == []


def test_a_model_without_a_template_is_told_so(tiny, reviews):
    with pytest.raises(ConfigError, match="no chat template; leave out --chat"):
        tiny("llama").labels(replace(reviews, chat=True))
    with pytest.raises(ConfigError, match="is a sequence classifier and has no chat"):
        tiny("bert").labels(replace(reviews, chat=True))


def test_a_template_that_refuses_a_system_turn_is_quoted(chatty, reviews):
    chatty.codec.tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    )
    with pytest.raises(ConfigError, match="the chat template refuses these turns: no system"):
        chatty.labels(replace(reviews, chat=True, system="x"))


def test_a_template_that_hides_or_repeats_the_turn_is_refused(chatty, reviews):
    for template in ("hello", "{{ messages[-1]['content'] }}{{ messages[-1]['content'] }}"):
        chatty.codec.tokenizer.chat_template = template
        with pytest.raises(ConfigError, match="does not show the user's turn just once"):
            chatty.labels(replace(reviews, chat=True))


def test_a_system_prompt_without_a_chat_is_refused(reviews):
    with pytest.raises(ConfigError, match="a system prompt needs a chat"):
        replace(reviews, system="x")
