"""Positions of tokens from what they spell."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.subjects.alignment import BYTE_ALPHABET, Spans, align, are_plausible, spelled

LETTERS = {byte: letter for letter, byte in BYTE_ALPHABET.items()}
TEXT = "naïve 🙂 film"


def byte_level(data):
    return "".join(LETTERS[byte] for byte in data)


def sentence_pieces(part):
    """Whole characters as they are, others byte by byte."""
    try:
        return [(part, part.decode().replace(" ", "▁"))]
    except UnicodeDecodeError:
        return [(bytes([byte]), f"<0x{byte:02X}>") for byte in part]


@st.composite
def split_texts(draw):
    """A text, and its bytes cut anywhere."""
    text = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
    data = text.encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(len(data) - 1, 1)))) if len(data) > 1 else [])
    return text, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def spans(*pairs):
    return Spans(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T)


def pairs(found):
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def assert_exact(text, parts, found):
    """Every part covers just the characters whose bytes it holds."""
    owner = [index for index, character in enumerate(text) for _ in character.encode()]
    place = 0
    for part, (start, end) in zip(parts, pairs(found), strict=True):
        held = owner[place : place + len(part)]
        assert (start, end) == ((held[0], held[-1] + 1) if held else (start, start))
        place += len(part)


@given(split_texts())
def test_bytes_cut_anywhere_cover_just_their_characters(split):
    text, parts = split
    found = spelled(text, [byte_level(part) for part in parts])
    assert_exact(text, parts, found)
    assert are_plausible(text, found, [byte_level(part) for part in parts])


@given(split_texts())
def test_pieces_and_bytes_of_sentencepiece_cover_just_their_characters(split):
    text, parts = split
    written = [pair for part in parts for pair in sentence_pieces(part)]
    assert_exact(text, [part for part, _ in written], spelled(text, [piece for _, piece in written]))


@given(split_texts())
def test_a_space_put_before_the_text_is_no_character_of_it(split):
    text, parts = split
    found = spelled(text, [byte_level(part) for part in [b" ", *parts]])
    if text.isspace() or not text:
        return
    assert pairs(found)[0] == (0, 0)
    assert_exact(text, parts, Spans(found.start[1:], found.end[1:]))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_pieces_cover_letter_and_accent(form):
    text = unicodedata.normalize(form, "café noir")
    pieces = [byte_level(part.encode()) for part in ("caf", "é", " noir")]
    found = spelled(text, pieces)
    assert [text[a:b] for a, b in pairs(found)] == [text[:3], unicodedata.normalize(form, "é"), " noir"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda s: Spans(s.start, s.start),  # seen with Llama 3
        lambda s: Spans(s.start, s.end + 1),
        lambda s: Spans(s.start + 1, s.end + 1),
        lambda s: Spans(np.maximum(s.start - 1, 0), np.maximum(s.end - 1, 0)),
        lambda s: Spans(s.start * 0, s.end * 0),
        lambda s: Spans(s.start[::-1], s.end[::-1]),
        lambda s: Spans(s.start - 1, s.end),
    ],
    ids=["empty", "too long", "shifted", "shifted back", "nowhere", "reversed", "before the text"],
)
@pytest.mark.parametrize("spells", [True, False])
def test_wrong_positions_are_seen(broken, spells):
    pieces = [byte_level(part.encode()) for part in ("na", "ï", "ve", " 🙂", " film")]
    right = spelled(TEXT, pieces)
    shown = pieces if spells else ["na", "i", "##ve", "[UNK]", "film"]
    assert are_plausible(TEXT, right, shown)
    assert not are_plausible(TEXT, broken(right), shown)


def test_spaces_may_or_may_not_belong_to_a_token():
    pieces = ["a", "Ġ", "Ġb", "Ċ"]
    for reported in (((0, 1), (1, 2), (2, 4), (4, 5)), ((0, 1), (2, 2), (3, 4), (0, 0))):
        assert are_plausible("a  b\n", spans(*reported), pieces)
    assert not are_plausible("a  b\n", spans((0, 1), (1, 4), (3, 4), (4, 5)), pieces)


def test_a_border_between_the_wrong_letters_is_seen_though_the_text_is_covered():
    assert are_plausible("ab cd", spans((0, 2), (2, 5)), ["ab", "Ġcd"])
    assert not are_plausible("ab cd", spans((0, 1), (1, 5)), ["ab", "Ġcd"])


@pytest.mark.parametrize(
    ("text", "pieces", "reported"),
    [
        ("Café!", ["cafe", "!"], ((0, 4), (4, 5))),
        ("Cafe\u0301!", ["cafe", "!"], ((0, 4), (5, 6))),  # BERT leaves the accent out
        ("zero\u200bwidth\ufffd", ["zerowidth"], ((0, 10),)),
        ("①②", ["▁1", "2"], ((0, 1), (1, 2))),
        ("İstanbul", ["istanbul"], ((0, 8),)),
        ("x ☃ y", ["x", "[UNK]", "y"], ((0, 1), (2, 3), (4, 5))),
        ("a☃b", ["a", "b"], ((0, 1), (2, 3))),  # no unknown token: the character is not read at all
    ],
)
def test_tokenizers_that_normalise_are_believed(text, pieces, reported):
    assert are_plausible(text, spans(*reported), pieces)


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("Un-usual  film", ["un", "-", "usual", "film"], ["Un", "-", "usual", "film"]),
        ("playing it", ["play", "##ing", "it"], ["play", "ing", "it"]),
        ("playing it", ["play@@", "ing", "it"], ["play", "ing", "it"]),
        ("playing it", ["play", "ing</w>", "it</w>"], ["play", "ing", "it"]),
        ("Été  là", ["ete", "la"], ["Été", "là"]),
        ("a \n b", ["▁a", "▁b"], ["a", "b"]),
        ("ａ　ｂ", ["▁a", "▁b"], ["ａ", "ｂ"]),
        ("<end>a b", ["<end>", "▁a", "▁b"], ["<end>", "a", "b"]),
        ("a  b", ["▁a", "▁", "▁", "▁", "▁b"], ["a", "  ", "  ", "  ", "b"]),
        ("x ☃ y", ["x", None, "y"], ["x", "☃", "y"]),
        ("☃☃ y ☃", [None, None, "y", None], ["☃☃", "☃☃", "y", "☃"]),
        ("☃", [None], ["☃"]),
        ("", [], []),
    ],
)
def test_pieces_are_found_where_they_do_not_spell_the_text_exactly(text, pieces, expected):
    found = align(text, pieces)
    assert [text[a:b] for a, b in pairs(found)] == expected


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a film", ["a", "book"]),
        ("a film", ["a"]),
        ("a", ["a", None]),
        ("☃a a ☃ b", [None, "a", None, "b"]),  # which of the two?
        ("a b", ["a", None, "c", None, "b"]),
    ],
)
def test_what_cannot_be_told_is_not_guessed(text, pieces):
    assert align(text, pieces) is None
