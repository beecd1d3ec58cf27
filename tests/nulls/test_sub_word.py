import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nulls.examples import ITEMS, Bytes, class_of, item_of

from ice_eval.nulls.sub_word import words_of
from ice_eval.words import word_spans


def spelled(item):
    return [tuple(item.texts[unit] for unit in word) for word in words_of(item)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("so warm!", [("so",), ("war", "m!")]),  # a unit of two words belongs to the first
        ("unhappy  un happy", [("unh", "app", "y"), ("un",), ("hap", "py")]),
        ("a,b", [("a,b",)]),
        ("don't wait", [("don", "'t"), ("wai", "t")]),
        ("电影好看", [("电",), ("影",), ("好",), ("看",)]),
        ("naïvely", [("naïve", "ly")]),
        ("🙂🙂 ok", [("🙂🙂",), ("ok",)]),
        ("well-made...", [("wel", "l-m", "ade"), ("...",)]),
    ],
)
def test_a_unit_belongs_to_the_word_of_its_first_character(text, words):
    assert spelled(item_of(text, codec=Bytes())) == words


def test_units_of_spaces_stand_alone():
    class Spaces(Bytes):
        def tokenize(self, text, pair=None, *, framed=False):
            return super().tokenize(text.replace("\t", "~"), pair, framed=framed)

    assert spelled(item_of("abcdef\t\t\tghijkl", codec=Spaces())) == [("abc", "def"), ("\t\t\t",), ("ghi", "jkl")]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20), st.sampled_from(["token", "word"]))
def test_every_unit_is_in_one_word_and_words_are_those_of_the_text(text, unit):
    item = item_of(text, codec=Bytes(), unit=unit)
    words = words_of(item)
    assert list(itertools.chain(*words)) == list(range(item.n_units))
    place_of = {place: word for word in word_spans(text) for place in range(*word)}
    homes = [place_of.get(item.spans[unit].start, unit) for word in words for unit in word[:1]]
    assert len(set(homes)) == len(words)
    for home, word in zip(homes, words, strict=True):
        assert all(place_of.get(item.spans[unit].start, unit) == home for unit in word)


def test_words_do_not_run_on_from_one_field_into_the_next():
    assert spelled(ITEMS["two-fields"])[3:5] == [("music",), ("he",)]
    assert len(words_of(ITEMS["three-lines"])) == 9


@pytest.mark.parametrize("name", ["pieces", "bytes", "prompt", "two-fields"])
def test_sets_take_as_many_pieces_from_as_many_words_of_as_many_pieces(name):
    item = ITEMS[name]
    words = words_of(item)

    def histogram(units):
        return Counter((len(word), len(set(word) & set(units))) for word in words)

    for size in (1, 3, 4):
        sets = list(itertools.combinations(range(item.n_units), size))
        for rationale in sets[::17]:
            expected = [units for units in sets if histogram(units) == histogram(rationale)]
            assert sorted(class_of("sub-word", item, rationale).every()) == expected


@pytest.mark.parametrize("name", ["word-units", "byte-words"])
def test_word_units_are_matched_on_their_number_of_tokens(name):
    item = ITEMS[name]
    tokens = [len(ids) for ids in item.unit_ids()]
    assert len(set(tokens)) > 1
    sets = list(itertools.combinations(range(item.n_units), 3))
    for rationale in sets:
        ours = sorted(tokens[unit] for unit in rationale)
        expected = [units for units in sets if sorted(tokens[unit] for unit in units) == ours]
        assert sorted(class_of("sub-word", item, rationale).every()) == expected


def test_where_tokens_are_whole_words_token_and_word_units_have_one_class():
    text = "a gorgeous film with a warm and witty cast"
    tokens, words = (class_of("sub-word", item_of(text, unit=unit), (1, 4)) for unit in ("token", "word"))
    assert tokens == words
    assert tokens.count == 36


def test_a_key_says_what_is_taken_of_how_many_words_of_which_shape():
    item = ITEMS["han"]  # 电 影 好 看 naïve|ly ugl|y 🙂 naïve|st, where naïve and 🙂 have two tokens
    assert class_of("sub-word", item, (0, 4, 7, 10)).key == (
        (((1, 1),), (1,), 1),
        (((1, 1), (2, 1)), (0, 1), 1),
        (((1, 1), (2, 1)), (1, 0), 1),
        (((1, 2),), (1,), 1),
    )
