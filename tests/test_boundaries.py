"""No token holds characters of both template and content, in any input; only a space may go with the word after it."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz.laws import Rows, check_template_characters, example_of, fills_for, task_of
from tests.fuzz.odd_texts import texts
from tests.rows import ledger_rows
from tests.small_runs import Waves, run
from tests.small_tokenizers import byte_level, joining, sentence_piece

from ice_eval.encoding import encode, encode_text
from ice_eval.models.codec import HFCodec
from ice_eval.pipeline.checks import _about_tokens
from ice_eval.records import PROTECTED, Example
from ice_eval.tasks import Piece, Records, Shot, Task

TOKENIZERS = {
    "joining": joining,
    "byte level": byte_level,
    "bpe": lambda: sentence_piece("bpe"),
    "unigram": lambda: sentence_piece("unigram"),
}
PROMPTS = (
    "Review: {text}\nSentiment:", "{text}\n\nSentiment:", "{first}\n{second}\n", '("{first}")\n\n\t{second}:\n',
    "{first}{second}\n", "a{text}b", "Review:{text}", "Text:\n{text}", "<{first}> <{second}>",
)  # fmt: skip
ENDS = ("", ".", "!\n", '."', "?)", " ", ". ", "…", "。", "\n", "3", "a")
OPERATORS = ("delete", "infill", "mask-unk", "mask-pad")
CHAT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n<|stop|>\n{% endfor %}<|assistant|>\n"


@cache
def codec_of(name):
    return HFCodec(TOKENIZERS[name](), reads_pairs=False, max_tokens=100_000)


def review(text, codec, prompt="Review: {text}\nSentiment:", **changes):
    labels = {"negative": " negative", "positive": " positive"}
    task = Task(data=Records([]), prompt=prompt, label_words=labels, **changes)
    return encode(codec, task, Example("0", {"text": text}))


def spelled(codec, item, kept=None):
    """The tokens of an item, each as text."""
    ids = item.ids if kept is None else item.ids[kept]
    return codec.decode(list(ids[:, None]))


def test_the_tokenizer_of_these_tests_joins_marks_and_line_breaks():
    codec = codec_of("joining")
    whole = codec.tokenize("the film.\nSentiment:")
    assert ".\n" in codec.decode(list(whole.ids[:, None]))


def test_the_line_break_after_a_text_is_protected():
    codec = codec_of("joining")
    item = review("the film.", codec)
    assert "\n" in spelled(codec, item, item.unit_of == PROTECTED)
    assert item.texts[-1] == "." and item.divided
    assert codec.decode([item.empty().ids])[0].split(":")[1].strip(" ") == "\nSentiment"
    assert not review("the film", codec).divided


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("prompt", PROMPTS)
@settings(max_examples=25, derandomize=True, database=None)
@given(
    text=texts(max_pieces=5),
    other=texts(max_pieces=3),
    end=st.sampled_from(ENDS),
    unit=st.sampled_from(["token", "word"]),
    seed=st.integers(0, 99),
)
@example(text="the good film", other="was it", end=".", unit="token", seed=0)
@example(text='"a', other='"', end='."', unit="word", seed=0)
def test_every_input_shows_the_whole_template(name, prompt, text, other, end, unit, seed):
    codec, task = codec_of(name), task_of(prompt)
    item = encode(codec, task, example_of(task, text + end, other + end), unit=unit)
    keep = np.random.default_rng(seed).random((4, item.n_units)) < 0.5
    fills = fills_for(codec, task, item, unit=unit, scope="content", seed=seed)
    check_template_characters(codec, task, [item.full(), item.empty()], exact=True)
    for operator in OPERATORS if fills is not None else OPERATORS[:1]:
        check_template_characters(codec, task, Rows(item, operator, keep, fills).inputs(), exact=True)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_texts_without_a_token_of_both_keep_the_ids_of_the_tokenizer(name):
    codec = codec_of(name)
    for text in ("the good film", "a very bad café", "naïve"):
        item = review(text, codec)
        assert item.ids.tolist() == codec.tokenize(f"Review: {text}\nSentiment:").ids.tolist()
        assert not item.divided


def test_what_follows_a_text_is_not_marked_as_a_beginning():
    # "▁" before the template's quotation mark would be a space that nobody wrote.
    tokenizer = sentence_piece("bpe")
    tokenizer.add_tokens(['."'])
    codec = HFCodec(tokenizer, reads_pairs=False, max_tokens=1000)
    item = review("a film.", codec, prompt='Review: "{text}" is')
    assert item.divided and item.texts[-1] == "."
    assert codec.decode([item.ids]) == ['Review: "a film." is']


def test_turns_of_a_chat_and_worked_examples_are_kept_apart_from_the_text():
    special = ["<|user|>", "<|assistant|>", "<|stop|>"]
    tokenizer = joining(chat_template=CHAT, additional_special_tokens=special)
    codec = HFCodec(tokenizer, reads_pairs=False, max_tokens=1000)
    shots = (Shot({"text": "warm."}, "positive"),)
    item = review("the film.", codec, prompt='"{text}', chat=True, shots=shots)
    assert item.divided
    assert item.texts[0].startswith("the") and item.texts[-1] == "."
    bare = '<|user|>"warm.\n<|stop|>\n<|assistant|>positive\n<|stop|>\n<|user|>"\n<|stop|>\n<|assistant|>'
    assert codec.decode([item.empty().ids]) == [bare]
    assert np.isin(tokenizer.convert_tokens_to_ids(special), item.empty().ids).all()


def test_a_chain_and_the_words_after_it_are_kept_apart():
    codec = codec_of("joining")
    pieces = [Piece("Think.\n"), Piece("the film was good.", "chain"), Piece("\nAnswer:")]
    item = encode_text(codec, pieces, example_id="0", framed=False)
    assert codec.decode([item.empty().ids]) == ["Think.\n\nAnswer:"]
    assert item.divided


class Joining(Waves):
    """A model whose tokenizer joins full stops and line breaks."""

    def __init__(self):
        super().__init__()
        self.codec = codec_of("joining")


def test_a_run_says_in_how_many_texts_the_tokenizer_joins_template_and_text():
    found = run([f"the good film was warm {i}{'.' if i else ''}" for i in range(4)], model=Joining(), m=4)
    [message] = [each for each in found.folder.manifest().messages if "joins" in each]
    assert message.startswith("in 3 of 4 texts the tokenizer joins the template and the text in one token")
    assert "kept apart" in message and "the tokenizer's own" in message
    texts = Joining().codec.decode([np.array(row.input_ids) for row in ledger_rows(found.folder)])
    assert all(text.endswith("\nSentiment:") for text in texts)


def test_a_run_whose_tokenizer_joins_nothing_says_nothing_of_it():
    found = run(["the good film was warm", "the bad film was cold"], model=Joining(), m=4)
    assert not any("joins" in each for each in found.folder.manifest().messages)


def test_a_server_that_reads_text_may_join_what_was_kept_apart():
    item = review("the film.", codec_of("joining"))
    engine = SimpleNamespace(encode=lambda example: item, model=SimpleNamespace(server={"prompts": "text"}))
    [message] = _about_tokens(engine, [item])
    assert message.endswith(
        "kept apart, but prompts are sent as text, and the server may join what a row keeps of both."
    )
