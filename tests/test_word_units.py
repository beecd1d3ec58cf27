"""Word units and necessity, end to end on the toy model and with pieces of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import ledger_rows

import ice_eval as ice
from ice_eval.encoding import Tokens, encode
from ice_eval.records import PROTECTED, Example, SpecialIds
from ice_eval.words import character_starts, word_spans

LABELS = {"negative": " negative", "positive": " positive"}


class Pieces:
    """A tokenizer that cuts a text into pieces of three UTF-8 bytes, as a byte-level one might."""

    reads_pairs = False
    max_tokens = 100_000
    special = SpecialIds()

    def writes_special(self, text):
        return False

    def tokenize(self, text, pair=None, *, framed=False):
        owner = [index for index, character in enumerate(text) for _ in character.encode()]
        cuts = range(0, len(owner), 3)
        start = np.array([owner[i] for i in cuts], dtype=np.int64)
        end = np.array([owner[min(i + 3, len(owner)) - 1] + 1 for i in cuts], dtype=np.int64)
        none = np.zeros(len(start), dtype=np.int64)
        ids = [int.from_bytes(b"\x01" + text.encode()[i : i + 3]) for i in cuts]
        return Tokens(np.array(ids, dtype=np.int64), segments=none, sequence=none, start=start, end=end)

    def decode(self, rows):
        return [b"".join(int(i).to_bytes(4).lstrip(b"\0")[1:] for i in row).decode() for row in rows]


def item_of(text, unit):
    task = ice.Task(data=ice.Records([]), prompt="{text}\n\n\nLabel:", label_words=LABELS)
    return encode(Pieces(), task, Example("0", {"text": text}), unit=unit)


def test_pieces_of_one_word_are_one_unit_and_words_that_share_a_piece_too():
    # aaa|aaa|aa |bbb|bb, and the template apart: \n\n\n|Lab…
    assert item_of("aaaaaaaa bbbbb", "token").texts == ("aaa", "aaa", "aa", "bbb", "bb")
    assert item_of("aaaaaaaa bbbbb", "word").texts == ("aaaaaaaa", "bbbbb")
    assert item_of("aaaa bbbb", "word").texts == ("aaaa bbbb",)  # aaa|a b|bbb


def test_spaces_that_are_tokens_of_their_own_go_with_the_word_before_them():
    assert item_of("aaa   bbb", "token").texts == ("aaa", "   ", "bbb")
    item = item_of("aaa   bbb", "word")
    assert item.texts == ("aaa", "bbb")
    assert item.unit_of[:3].tolist() == [0, 0, 1]


@given(st.text(st.characters(exclude_categories=("Cs",))), st.sampled_from(["token", "word"]))
def test_units_never_split_a_character_or_a_word_and_stand_in_order(text, unit):
    item = item_of(text, unit)
    starts = character_starts(text)
    inside = {start: end for start, end in word_spans(text)}
    place = 0
    for span in item.spans:
        assert span.start >= place
        assert starts[span.start] == span.start
        place = span.end
        if unit == "word" and span.start in inside:
            assert span.end >= inside[span.start]
    units = item.unit_of[item.unit_of != PROTECTED]
    assert units.tolist() == sorted(units)
    assert set(units.tolist()) == set(range(item.n_units))


def reviews(n=6):
    texts = ["a gorgeous well-made film, with a slow start", "it's an awful mess and the end isn't good at all"]
    return ice.Task(
        data=ice.Records([{"text": f"{texts[i % 2]} {i}", "label": i % 2} for i in range(n)]),
        prompt="Review: {text}\nSentiment:",
        label_words=LABELS,
    )


def test_a_run_with_word_units_explains_words():
    run = ice.evaluate("toy", reviews(), unit="word", m=10, attributions=["gradient"])
    text = run.folder.inputs(0)[0]
    shown = [text.fields["text"][span.start : span.end] for span in text.spans]
    assert shown[:4] == ["a", "gorgeous", "well-made", "film"]


def test_removing_the_decisive_word_hurts_most():
    planted = {
        "best": lambda item: [float(text in {"gorgeous", "awful"}) for text in item.texts],
        "worst": lambda item: [float(text in {"slow", "good"}) for text in item.texts],
    }
    run = ice.evaluate(
        "toy", reviews(), attributions=planted, operators=["delete"], directions=["sufficiency", "necessity"], k=0.1
    )
    rates = run.summary().set_index(["attribution", "direction"])["win_rate"]
    assert rates["best", "necessity"] == rates["best", "sufficiency"] == 1
    assert rates["worst", "necessity"] == rates["worst", "sufficiency"] == 0


def test_necessity_keeps_the_complement_of_the_same_sets():
    run = ice.evaluate("toy", reviews(), m=8, operators=["delete"], directions=["sufficiency", "necessity"])
    rows = {row.key: row for row in ledger_rows(run.folder, 0)}
    sizes = {row.example_id: len(row.spans) for row in run.folder.inputs(0)}
    kept = [(key, row.kept) for key, row in rows.items() if key.direction == "sufficiency"]
    assert kept
    for key, units in kept:
        other = rows[key._replace(direction="necessity")].kept
        assert sorted((*units, *other)) == list(range(sizes[key.example_id]))


def test_random_rationales_are_no_more_necessary_than_chance():
    rng = np.random.default_rng(0)
    words = ["good", "bad", "great", "awful", "fun", "dull", "witty", "rude", "warm", "cold", "best", "slow"]
    data = ice.Records([{"text": " ".join(rng.permutation(words)), "label": i % 2} for i in range(300)])
    task = ice.Task(data=data, prompt="Review: {text}\nSentiment:", label_words=LABELS)
    run = ice.evaluate("toy", task, attributions=["random"], operators=["delete"], directions=["necessity"], m=20)
    [line] = run.summary().to_dict("records")
    assert line["p_value"] > 0.001
    assert line["win_rate"] == pytest.approx(0.5, abs=0.07)
