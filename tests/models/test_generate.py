"""Text that language models write: greedy, bounded, and the same in any batch."""

import numpy as np
import pytest
import torch
from tests.helpers import CAUSAL, CLASSIFIERS

from ice_eval.errors import OutOfMemoryError

PROMPTS = ["a film", "the worst film of the year, and then some more words", "Review: warm\nSentiment:"]
PLAIN = {"turns": None, "stop": None}


def by_hand(model, prompt, n):
    """The likeliest token, n times, from whole forward passes."""
    ids = model.codec.tokenize(prompt).ids.tolist()
    start = len(ids)
    for _ in range(n):
        with torch.no_grad():
            token = int(model.model(torch.tensor([ids])).logits[0, -1].argmax())
        if token in {model.codec.special.end, model.codec.special.pad}:
            break
        ids.append(token)
    return model.codec.decode([np.array(ids[start:], dtype=np.int64)])[0].strip(), len(ids)


@pytest.mark.parametrize("family", CAUSAL)
def test_the_likeliest_token_is_written_at_every_step_in_any_batch(tiny, family):
    model = tiny(family)
    together = model.generate(PROMPTS, max_tokens=6, **PLAIN)
    assert together == [by_hand(model, prompt, 6) for prompt in PROMPTS]
    assert together == [model.generate([prompt], max_tokens=6, **PLAIN)[0] for prompt in PROMPTS]


@pytest.fixture
def model(tiny):
    return tiny("llama")


def test_settings_of_a_model_that_ask_for_samples_are_not_followed(model):
    plain = model.generate(PROMPTS, max_tokens=6, **PLAIN)
    own = model.model.generation_config
    own.do_sample, own.temperature, own.top_k, own.repetition_penalty, own.num_beams = True, 9.0, 3, 5.0, 2
    own.no_repeat_ngram_size, own.min_new_tokens, own.max_length = 1, 4, 3
    assert model.generate(PROMPTS, max_tokens=6, **PLAIN) == plain


def test_an_answer_ends_with_the_text(model):
    [answer] = model.generate(PROMPTS[:1], max_tokens=6, **PLAIN)
    ids = model.codec.tokenize(PROMPTS[0]).ids.tolist()
    with torch.no_grad():
        first = int(model.model(torch.tensor([ids])).logits[0, -1].argmax())
    model.model.generation_config.eos_token_id = [499, first]
    [ended, *_] = model.generate(PROMPTS, max_tokens=6, **PLAIN)
    assert answer.text and ended == ("", len(ids))


def test_an_answer_ends_before_what_it_is_to_stop_at(model):
    whole = [answer.text for answer in model.generate(PROMPTS, max_tokens=12, **PLAIN)]
    letter = whole[1][2]
    cut = model.generate(PROMPTS, max_tokens=12, turns=None, stop=letter)
    assert [answer.text for answer in cut] == [text.partition(letter)[0].strip() for text in whole]
    assert cut[1].tokens < model.generate(PROMPTS, max_tokens=12, **PLAIN)[1].tokens


def test_in_a_chat_a_prompt_is_a_turn(model, monkeypatch):
    model.codec.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}<asst>"
    seen = []
    generate = model.model.generate
    monkeypatch.setattr(model.model, "generate", lambda ids, **how: seen.append(ids) or generate(ids, **how))
    model.generate(["film?"], turns=[("user", "a"), ("assistant", "b")], max_tokens=2, stop=None)
    assert model.codec.decode([seen[0][0].numpy()]) == ["<user>a<end><assistant>b<end><user>film?<end><asst>"]


def test_a_prompt_that_does_not_fit_gets_no_answer_and_the_others_do(model):
    short, long = model.generate(["a film", "a film " * 200], max_tokens=6, **PLAIN)
    assert long == (None, 0)
    assert [short] == model.generate(["a film"], max_tokens=6, **PLAIN)
    n_tokens = len(model.codec.tokenize("a film").ids)
    assert model.generate(["a film"], max_tokens=256 - n_tokens, **PLAIN)[0].text is not None
    assert model.generate(["a film"], max_tokens=257 - n_tokens, **PLAIN)[0].text is None


def test_a_batch_that_does_not_fit_is_halved(model, monkeypatch):
    whole, generate, sizes = model.generate(PROMPTS, max_tokens=4, **PLAIN), model.model.generate, []

    def small(ids, **how):
        sizes.append(len(ids))
        if len(ids) > most:
            raise torch.OutOfMemoryError("too large")
        return generate(ids, **how)

    monkeypatch.setattr(model.model, "generate", small)
    most = 1
    assert model.generate(PROMPTS, max_tokens=4, **PLAIN) == whole
    assert sizes == [3, 1, 2, 1, 1]
    most = 0
    with pytest.raises(OutOfMemoryError, match="too large"):
        model.generate(PROMPTS, max_tokens=4, **PLAIN)


def test_large_batches_are_split(model, monkeypatch):
    monkeypatch.setattr("ice_eval.models.generate._TOKENS", 30)
    split = model.generate(PROMPTS * 2, max_tokens=4, **PLAIN)
    monkeypatch.undo()
    assert split == model.generate(PROMPTS, max_tokens=4, **PLAIN) * 2


def test_no_prompts_no_answers(model):
    assert model.generate([], max_tokens=4, **PLAIN) == []


@pytest.mark.parametrize("family", CLASSIFIERS[:1])
def test_classifiers_write_nothing(tiny, family):
    model = tiny(family)
    assert "generate" not in model.offers
    with pytest.raises(TypeError, match="offers no generate"):
        model.generate(PROMPTS, max_tokens=4, **PLAIN)
