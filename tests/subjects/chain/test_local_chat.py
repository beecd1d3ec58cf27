"""A model on this machine answers like a server: once, on disk, and the same in any batch."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from ice_eval.errors import ConfigError, OutOfMemoryError
from ice_eval.servers import Message, Request, ResponseStore, TokenUsage, read_responses
from ice_eval.subjects.chain.model import LocalChat

QUESTIONS = ["a film", "the worst film of the year, and then some more words", "Review: warm?", "and", "very good"]


def requests(*, max_tokens=8, **fields):
    return [
        Request(messages=(Message("user", question),), model="tiny", max_tokens=max_tokens, **fields)
        for question in QUESTIONS
    ]


@pytest.fixture
def store(tmp_path):
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        yield store


@pytest.fixture
def fresh(tmp_path):
    """Ask with an empty file, and close it."""
    count = iter(range(1000))

    def ask(model, asked, **how):
        with ResponseStore(tmp_path / str(next(count)) / "responses.jsonl") as store:
            return LocalChat(model, store).ask(asked, **how)

    return ask


def texts(answers):
    return {key: answer.text for key, answer in answers.items()}


def prompt_ids(model, question):
    text = f"<user>{question}<end><assistant>"
    return model.codec.tokenizer(text, add_special_tokens=False)["input_ids"]


def by_hand(model, question, n):
    """The likeliest token, n times, from whole forward passes."""
    ids = prompt_ids(model, question)
    start = len(ids)
    for _ in range(n):
        with torch.no_grad():
            ids.append(int(model.model(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] in {model.codec.special.end, model.model.generation_config.eos_token_id}:
            return model.codec.tokenizer.decode(ids[start:-1]), len(ids) - start, "stop"
    return model.codec.tokenizer.decode(ids[start:]), n, "length"


def test_the_likeliest_token_is_taken_at_every_step_in_any_batch_and_order(chatty, fresh):
    asked = requests()
    together = fresh(chatty, asked)
    for request, question in zip(asked, QUESTIONS, strict=True):
        answer = together[request.key]
        text, n_written, finish = by_hand(chatty, question, 8)
        assert (answer.text, answer.finish_reason) == (text, finish)
        assert answer.usage == answer.billed == TokenUsage(len(prompt_ids(chatty, question)), n_written)
        assert texts(fresh(chatty, [request])) == {request.key: text}
    assert texts(fresh(chatty, asked[::-1])) == texts(together)


def test_a_temperature_of_nought_is_none(chatty, fresh):
    greedy, nought = fresh(chatty, requests()), fresh(chatty, requests(temperature=0.0))
    assert [answer.text for answer in greedy.values()] == [answer.text for answer in nought.values()]


def test_draws_belong_to_the_request_whatever_is_asked_beside_it(chatty, fresh):
    asked = [replace(each, repeat=repeat) for each in requests(temperature=0.9) for repeat in (0, 1)]
    together = texts(fresh(chatty, [*asked, *requests()]))
    backwards = texts(fresh(chatty, asked[::-1]))
    for request in asked:
        assert together[request.key] == backwards[request.key] == texts(fresh(chatty, [request]))[request.key]


def test_repeats_draw_anew(chatty, fresh):
    [first, *_] = requests(temperature=1.5)
    others = [*(replace(first, repeat=repeat) for repeat in (1, 2, 3)), replace(first, temperature=1.4)]
    assert len({*texts(fresh(chatty, [first, *others])).values()}) == 5


def test_tokens_are_drawn_as_often_as_they_are_likely(chatty, fresh):
    temperature, n = 0.7, 400
    [first, *_] = requests(temperature=temperature, max_tokens=1)
    answers = fresh(chatty, [replace(first, repeat=repeat) for repeat in range(n)])
    with torch.no_grad():
        logits = chatty.model(torch.tensor([prompt_ids(chatty, QUESTIONS[0])])).logits[0, -1].double()
    shares = torch.softmax(logits / temperature, dim=-1).numpy()
    spelled = [chatty.codec.tokenizer.decode([token], skip_special_tokens=True) for token in range(len(shares))]
    drawn = [answer.text for answer in answers.values()]
    for token in np.argsort(shares)[-5:]:
        alike = sum(share for share, text in zip(shares, spelled, strict=True) if text == spelled[token])
        error = np.sqrt(alike * (1 - alike) / n)
        assert abs(drawn.count(spelled[token]) / n - alike) < 4 * error


def test_every_request_ends_at_its_own_limit_or_before(chatty, fresh):
    asked = [replace(request, max_tokens=limit) for request, limit in zip(requests(), (1, 2, 9, 5, 3), strict=True)]
    for request, question in zip(asked, QUESTIONS, strict=True):
        answer = fresh(chatty, asked)[request.key]
        text, n_written, finish = by_hand(chatty, question, request.max_tokens)
        assert (answer.text, answer.usage.completion, answer.finish_reason) == (text, n_written, finish)
        assert answer.status == ("truncated" if finish == "length" else "ok" if text.strip() else "empty")


def test_an_answer_that_ends_at_once_is_empty_and_one_that_ends_is_ok(chatty, fresh):
    asked = requests()
    tokens = []
    for question in QUESTIONS[:2]:
        with torch.no_grad():
            tokens.append(int(chatty.model(torch.tensor([prompt_ids(chatty, question)])).logits[0, -1].argmax()))
    chatty.model.generation_config.eos_token_id = [tokens[0]]
    answers = fresh(chatty, asked)
    first = answers[asked[0].key]
    assert (first.status, first.text, first.usage.completion) == ("empty", "", 1)
    assert {answer.status for answer in answers.values()} > {"empty"}


def test_what_is_in_the_file_is_not_asked_again_and_an_interruption_loses_nothing_else(chatty, store, monkeypatch):
    monkeypatch.setattr("ice_eval.models.generate._CPU_CHAT_TOKENS", 1)  # batches of one
    asked, seen = requests(), []

    def interrupt(n_new):
        seen.append(n_new)
        if len(seen) == 2:
            raise KeyboardInterrupt

    chat = LocalChat(chatty, store)
    with pytest.raises(KeyboardInterrupt) as caught:
        chat.ask(asked, progress=interrupt)
    assert "asking again continues" in caught.value.__notes__[0]
    assert seen == [1, 1]
    assert len(list(read_responses(store.path))) == 2
    assert (chat.plan(asked).n_requests, chat.plan(asked).n_to_ask) == (5, 3)

    converse, n_chats = chatty.converse, []
    monkeypatch.setattr(chatty, "converse", lambda chats: n_chats.append(len(chats)) or converse(chats))
    answers = chat.ask(asked)
    assert n_chats == [3]
    assert chat.ask(asked) == answers
    assert n_chats == [3]
    assert chat.plan(asked).tokens == TokenUsage(0, 0)


def test_repeats_that_nothing_is_drawn_for_are_computed_once(chatty, store, monkeypatch):
    converse, n_chats = chatty.converse, []
    monkeypatch.setattr(chatty, "converse", lambda chats: n_chats.append(len(chats)) or converse(chats))
    [first, *_] = requests()
    repeats = [replace(first, repeat=repeat) for repeat in range(4)]
    steps = []
    answers = LocalChat(chatty, store).ask(repeats[:3], progress=steps.append)
    later = LocalChat(chatty, store).ask(repeats[3:])
    assert n_chats == [1, 0]
    assert steps == [1, 1, 1]
    assert len({answer.text for answer in (*answers.values(), *later.values())}) == 1
    assert [answer.repeat for answer in (*answers.values(), *later.values())] == [0, 1, 2, 3]
    assert store.billed == answers[first.key].usage
    drawn = [replace(each, temperature=1.0) for each in repeats]
    LocalChat(chatty, store).ask(drawn)
    assert n_chats == [1, 0, 4]


def test_a_response_says_which_model_gave_it(chatty, tmp_path):
    [request, *_] = requests()
    with ResponseStore(tmp_path / "responses.jsonl") as store:
        LocalChat(chatty, store).ask([request])
    line = json.loads((tmp_path / "responses.jsonl").read_text(encoding="utf-8"))
    assert (line["model"], line["fingerprint"]) == (chatty.name, chatty.fingerprint)
    assert (line["key"], line["request"], line["error"]) == (request.key, request.hash, None)


def test_turns_are_written_by_the_chat_template(chatty, fresh, monkeypatch):
    seen, generate = [], chatty.model.generate
    monkeypatch.setattr(chatty.model, "generate", lambda ids, **how: seen.append(ids) or generate(ids, **how))
    messages = (Message("system", "s"), Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    fresh(chatty, [Request(messages=messages, model="tiny", max_tokens=1)])
    written = "<system>s<end><user>a<end><assistant>b<end><user>c<end><assistant>"
    assert chatty.codec.decode([seen[0][0].numpy()]) == [written]


def test_a_chat_that_does_not_fit_has_no_answer_and_the_others_have(chatty, store):
    short, *_ = requests()
    long = replace(short, messages=(Message("user", "a film " * 200),))
    answers = LocalChat(chatty, store).ask([long, short])
    assert answers[long.key].status == "too_long"
    assert "tokens, and the model takes 256 in all" in answers[long.key].error
    assert answers[short.key].answered
    assert LocalChat(chatty, store).plan([long, short]).n_to_ask == 0, "it will never fit"


def test_the_window_of_the_model_cuts_what_does_not_end(chatty, fresh):
    [request, *_] = requests(max_tokens=10_000)
    answer = fresh(chatty, [request])[request.key]
    assert answer.finish_reason == "stop" or sum(answer.usage) == 256


def test_a_batch_that_memory_does_not_reach_for_is_halved(chatty, fresh, monkeypatch):
    asked = [*requests(), *requests(temperature=0.8)]
    whole, generate, sizes = texts(fresh(chatty, asked)), chatty.model.generate, []

    def small(ids, **how):
        sizes.append(len(ids))
        if len(ids) > most:
            raise torch.OutOfMemoryError("too large")
        return generate(ids, **how)

    monkeypatch.setattr(chatty.model, "generate", small)
    most = 3
    assert texts(fresh(chatty, asked)) == whole
    assert sizes == [10, 5, 2, 3, 5, 2, 3]
    most = 0
    with pytest.raises(OutOfMemoryError, match="too large"):
        fresh(chatty, asked)


def test_a_model_that_does_not_chat_is_refused(plain_model, toy, store):
    for model in (plain_model, toy):
        with pytest.raises(ConfigError, match=f"'{model.name}' has no chat template, so it cannot answer"):
            LocalChat(model, store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": {"top_p": 0.9}}, "does not support the request field 'top_p'"),
        ({"temperature": -1.0}, "the temperature is -1.0"),
    ],
)
def test_what_it_has_not_is_refused_before_anything_is_asked(chatty, store, change, message):
    first, second, *_ = requests()
    with pytest.raises(ConfigError, match=message):
        LocalChat(chatty, store).ask([first, replace(second, **change)])
    assert list(read_responses(store.path)) == []


@pytest.mark.smollm2
@pytest.mark.slow
def test_a_real_model_answers_alike_alone_and_in_a_batch(smollm2, fresh):
    asked = [
        Request(messages=(Message("user", question),), model="smollm2", max_tokens=40, temperature=temperature)
        for question in (
            "A shelf holds 4 rows of 6 jars. How many jars is that?",
            "Name a colour.",
            "Tom has 12 eggs and breaks 5 of them. He then buys half as many as are left. How many eggs has he now?",
        )
        for temperature in (None, 0.8)
    ]
    together = texts(fresh(smollm2, asked))
    assert all(text.strip() for text in together.values())
    assert together == {key: text for request in asked for key, text in texts(fresh(smollm2, [request])).items()}
