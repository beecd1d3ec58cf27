import pytest
from hypothesis import given
from hypothesis import strategies as st

from ice_eval.words import character_starts, sentence_spans, word_spans

JOINING = st.sampled_from("ab1 '\n\u0301\u0308\u0d4e\u0600\u0e33กक\u094d\u200d\u200b🏽👍🇫电\U000e0067")
"""Few characters, most of which join what stands beside them."""


def words(text):
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't stop, it's 3.14!", ["don't", "stop", ",", "it's", "3.14", "!"]),
        ("a well-made (good/bad) film...", ["a", "well-made", "(", "good", "/", "bad", ")", "film", ".", ".", "."]),
        ("电影很好。ok", ["电", "影", "很", "好", "。", "ok"]),
        ("映画はいい", ["映", "画", "は", "い", "い"]),
        ("ที่นี่ดี", ["ที่", "นี่", "ดี"]),
        ("भारत में अच्छी", ["भारत", "में", "अच्छी"]),
        ("فيلم رائع، جدا", ["فيلم", "رائع", "،", "جدا"]),
        ("nice 👍🏽 👨\u200d👩\u200d👧", ["nice", "👍🏽", "👨\u200d👩\u200d👧"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("a \u0301x", ["a", " \u0301x"]),  # the accent stands on the space
        ("a🏽b", ["a🏽", "b"]),
        ("\u0d4e a", ["\u0d4e ", "a"]),  # a letter that takes what follows along
        (" \n ", []),
    ],
)
def test_words_are_what_a_reader_would_count(text, expected):
    assert words(text) == expected


@given(st.one_of(st.text(), st.text(JOINING, max_size=20)))
def test_words_cover_every_character_but_spaces_once_and_in_order(text):
    covered = [index for start, end in word_spans(text) for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert all(character.isspace() for index, character in enumerate(text) if index not in set(covered))


@given(st.text(JOINING, max_size=20))
def test_a_word_never_splits_a_character(text):
    whole = {*character_starts(text).tolist(), len(text)}
    assert all(start in whole and end in whole for start, end in word_spans(text))


def test_accents_and_skin_tones_belong_to_what_they_stand_on():
    assert character_starts("ae\u0301b").tolist() == [0, 1, 1, 3]
    assert character_starts("👍🏽!").tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats sleep. Dogs bark!  Why?", ["Cats sleep.", "Dogs bark!", "Why?"]),
        ("one line\n\n  another \r\nlast\u2028end", ["one line", "another", "last", "end"]),
        ("Dr. Smith paid $3.50 in the U.S. market.", ["Dr. Smith paid $3.50 in the U.S. market."]),
        ("John F. Kennedy (b. 1917. In May) won. He did.", ["John F. Kennedy (b. 1917. In May) won.", "He did."]),
        ("Steps: 1. Add it. 2. Stop", ["Steps: 1. Add it.", "2. Stop"]),
        ("- One - Two", ["- One", "- Two"]),
        ("猫は眠る。犬は吠える。", ["猫は眠る。", "犬は吠える。"]),
        ("वह सोया। वह उठा।", ["वह सोया।", "वह उठा।"]),
        (" \n\t ", []),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_stop(text, expected):
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a fun film.The cast is good!Watch it", ["a fun film.", "The cast is good!", "Watch it"]),
        ("good movie. i liked it. bad acting, though", ["good movie.", "i liked it.", "bad acting, though"]),
        ("I like Gap Inc. for it. It is Mr. Bean's", ["I like Gap Inc. for it.", "It is Mr. Bean's"]),
        ("I waited... Then I left… early.", ["I waited...", "Then I left… early."]),
        ("In Roe v. Wade of Jan. 22 he won. OK.", ["In Roe v. Wade of Jan. 22 he won.", "OK."]),
        ("See www.imdb.com/Title.Html now. It is 3.5.", ["See www.imdb.com/Title.Html now.", "It is 3.5."]),
        ("房间很大.服务不错!会再来", ["房间很大.", "服务不错!", "会再来"]),
        ("好。看www.ctrip.com吧。好", ["好。", "看www.ctrip.com吧。", "好"]),
        ("यह अच्छी है।मुझे पसंद आई।", ["यह अच्छी है।", "मुझे पसंद आई।"]),
        ("هذا جميل؟!نعم", ["هذا جميل؟!", "نعم"]),
        ("Am 3. Mai z. B. kostet es ca. 5 Euro. Gut!", ["Am 3. Mai z. B. kostet es ca. 5 Euro.", "Gut!"]),
        ("Il va à 300 km/h. Il y en a. Oui", ["Il va à 300 km/h.", "Il y en a.", "Oui"]),
        ("M. Dupont est là. « Bonjour ! » dit-il.", ["M. Dupont est là.", "« Bonjour ! » dit-il."]),
        ("Er war da. „Gut.“ Dann ging er.", ["Er war da.", "„Gut.“", "Dann ging er."]),
        ("¡Sí! El Sr. López vino. EE. UU. ganó.", ["¡Sí!", "El Sr. López vino.", "EE. UU. ganó."]),
        ("ကောင်းတယ်။ ကြိုက်တယ်။", ["ကောင်းတယ်။", "ကြိုက်တယ်။"]),
        ("ጥሩ ነው። ወደድኩት።", ["ጥሩ ነው።", "ወደድኩት።"]),
        ("Danke! #NichtNurMeckern", ["Danke!", "#NichtNurMeckern"]),
    ],
)
def test_sentences_of_a_document_end_as_people_write_on_the_web(text, expected):
    assert [text[start:end] for start, end in sentence_spans(text, loose=True)] == expected


@pytest.mark.parametrize("loose", [False, True])
@given(text=st.text("aB1. \n\r\u2028\x1c?()[]-•:\ue001。।", max_size=40))
def test_sentences_hold_every_character_but_spaces_once_and_in_order(loose, text):
    spans = sentence_spans(text, loose=loose)
    covered = [index for start, end in spans for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert all(character.isspace() for index, character in enumerate(text) if index not in set(covered))
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
