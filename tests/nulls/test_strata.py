"""The nulls that take as many units from each part: size, position, frequency and words."""

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nulls.examples import ITEMS, Bytes, class_of, item_of

from ice_eval.errors import DataError
from ice_eval.nulls import matched_sets, unit_counts
from ice_eval.nulls.strata import Frequency, Strata, words_of
from ice_eval.words import word_spans


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=9), st.data())
def test_strata_hold_the_sets_with_as_many_units_of_each(stratum_of, data):
    units = range(len(stratum_of))
    rationale = tuple(sorted(data.draw(st.sets(st.sampled_from(units)))))
    alike = Strata.of(stratum_of, rationale)
    ours = sorted(stratum_of[unit] for unit in rationale)
    expected = [
        chosen
        for chosen in itertools.combinations(units, len(rationale))
        if sorted(stratum_of[unit] for unit in chosen) == ours
    ]
    assert sorted(alike.every()) == expected
    assert alike.count == len(expected)


def test_size_is_the_null_of_the_paper():
    alike = class_of("size", ITEMS["words"], (1, 2, 5))
    assert alike.key == (9, 3)
    assert alike.count == math.comb(9, 3)


@pytest.mark.parametrize(
    ("n", "strata"),
    [
        (1, [(0,)]),
        (2, [(0,), (1,)]),
        (5, [(0, 1), (2,), (3,), (4,)]),
        (8, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (10, [(0, 1, 2), (3, 4), (5, 6, 7), (8, 9)]),
    ],
)
def test_a_text_has_four_quarters_or_as_many_as_it_has_units(n, strata):
    assert list(class_of("position", item_of(" ".join(["film"] * n)), (0,)).strata) == strata


def test_position_takes_as_many_units_from_each_quarter():
    alike = class_of("position", item_of("one two three four five six seven eight"), (0, 1, 4))
    assert alike.key == (2, 2, 2, 0, 2, 1, 2, 0)
    assert sorted(alike.every()) == [(0, 1, 4), (0, 1, 5)]


def test_frequency_bands_are_whole_powers_of_four():
    words = "unseen once thrice four fifteen sixteen lots"
    counts = {"once": 1, "thrice": 3, "four": 4, "fifteen": 15, "sixteen": 16, "lots": 4**30}
    alike = Frequency().class_of(item_of(words), (1, 3), counts=counts)
    assert alike.strata == ((0,), (1, 2), (3, 4), (5,), (6,))
    assert sorted(alike.every()) == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_units_are_counted_over_all_examples_whatever_their_case_and_spaces():
    assert unit_counts([("The", " the", "film"), ["THE ", "straße"], []]) == {"the": 3, "film": 1, "strasse": 1}


def test_frequency_looks_units_up_as_they_were_counted():
    item = item_of("The STRASSE film")
    alike = Frequency().class_of(item, (0,), counts=unit_counts([["the"], ["Straße"], ["more"]]))
    assert alike.strata == ((2,), (0, 1))


def test_frequency_without_counts_is_refused():
    with pytest.raises(DataError, match="the null 'frequency' needs to know how often units occur"):
        matched_sets("frequency", ITEMS["words"], (1,), 5, seed=0, counts={})


# --- words ---------------------------------------------------------------------------------------------------------


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
