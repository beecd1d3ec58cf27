"""Pieces of any tokenizer come to the same numbers per unit."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.small_tokenizers import byte_level, sentence_piece
from tokenizers import pre_tokenizers

from ice_eval.errors import DataError
from ice_eval.interop import Explanation, TextPart, align
from ice_eval.rationales import top_k

BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
TEXT = "A gorgeous café film 😀!"
WAYS = {
    "words": ["A", "gorgeous", "café", "film", "😀", "!"],
    "pieces with spaces": ["A ", "gorgeous ", "café ", "film ", "😀", "!"],
    "WordPiece": ["[CLS]", "a", "gor", "##geous", "cafe", "film", "[UNK]", "!", "[SEP]"],
    "SentencePiece": ["<s>", "▁A", "▁gor", "geous", "▁café", "▁film", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "!"],
    "byte level": ["<|im_start|>", "A", "Ġgor", "geous", "ĠcafÃ©", "Ġfilm", "ĠðŁĺ", "Ģ", "!", "<|im_end|>"],
    "end of word": ["A</w>", "gor@@", "geous</w>", "café</w>", "film</w>", "😀</w>", "!</w>"],
    "a prompt around it": [
        "Review",
        ":",
        "ĠA",
        "Ġgor",
        "geous",
        "ĠcafÃ©",
        "Ġfilm",
        "ĠðŁĺ",
        "Ģ",
        "!",
        "Ċ",
        "Senti",
        ":",
    ],
}
OWNERS = {"a": 0, "gor": 1, "geous": 1, "caf": 2, "film": 3, "!": 5}


def weight(token):
    """What a token's word gets: known words have theirs in one piece, the emoji has 4 however it is cut."""
    plain = token.strip("Ġ▁# @").removesuffix("</w>").casefold()
    return next((float(10**unit) for text, unit in OWNERS.items() if plain.startswith(text) and unit != 1), 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_tokens_gives_the_same_numbers(aligned, way):
    tokens = WAYS[way]
    inside = [token for token in tokens if token not in {"Review", ":", "Senti", "Ċ"}]
    found = aligned(TEXT, tokens, [weight(t) if t in inside else 99.0 for t in tokens])
    assert found.values.tolist() == [1, 0, 100, 1000, 0, 100000]
    assert found.covered.all() and not found.cut


def test_pieces_of_a_unit_are_summed_and_every_unit_of_a_piece_has_its_score(aligned):
    fine = aligned("a gorgeous film", ["a", "gor", "geous", "film"])
    assert (fine.values.tolist(), fine.is_coarse) == ([1, 5, 4], False)
    coarse = aligned("a gorgeous film", [TextPart("a gorgeous", 0, 10), TextPart(None, 11, 15)], [3, 4])
    assert (coarse.values.tolist(), coarse.is_coarse) == ([3, 3, 4], True)
    assert coarse.parts[0] == coarse.parts[1] != coarse.parts[2]


def test_a_piece_that_ends_inside_a_unit_gives_it_its_share_of_the_shorter_one(aligned):
    found = aligned("gorgeous film", [TextPart(None, 0, 11), TextPart(None, 11, 13)], [10, 4])  # gorgeous fi | lm
    assert found.values.tolist() == [10, 10 * 2 / 4 + 4]


@given(text=st.lists(st.text("abcde", min_size=1, max_size=9), min_size=3, max_size=9), seed=st.integers(0, 99))
def test_a_rationale_takes_the_best_words_of_the_user_and_whole_ones_first(item_of, text, seed):
    """Words of several tokens, many of them with equal scores: only one word is in a rationale in part."""
    rng = np.random.default_rng(seed)
    item = item_of(" ".join(" ".join(word) for word in text))  # every letter is a unit
    edges = np.cumsum([0, *(2 * len(word) for word in text)]).tolist()
    spans = [TextPart(None, start, end - 1) for start, end in itertools.pairwise(edges)]
    scores = rng.integers(-1, 2, size=len(text)).astype(float)
    found = align(Explanation(scores, tuple(spans)), item, {"text": " ".join(" ".join(word) for word in text)})
    word_of = np.repeat(np.arange(len(text)), [len(word) for word in text])
    for size in range(1, item.n_units):
        chosen = top_k(found.values, size, rng=rng, parts=lambda: found.parts)
        counts = np.bincount(word_of[chosen], minlength=len(text))
        lengths = np.bincount(word_of)
        cut = np.flatnonzero((counts > 0) & (counts < lengths))
        whole, left = scores[counts == lengths], scores[counts == 0]
        assert len(cut) <= 1
        assert whole.min(initial=9) >= max(scores[cut].max(initial=-9), left.max(initial=-9))
        assert scores[cut].min(initial=9) >= left.max(initial=-9)


def test_bytes_of_one_emoji_all_count_for_it(aligned):
    found = aligned("so 👍🏽 good", ["so", "ĠðŁĳ", "į", "ðŁı", "½", "Ġgood"])
    assert found.values.sum() == pytest.approx(21)
    assert found.values[-1] == 6


def test_a_token_of_spaces_counts_for_what_follows(aligned):
    assert aligned("a  film", ["a", "Ġ", "Ġfilm"]).values.tolist() == [1, 5]
    assert aligned("a film ", ["a", "Ġfilm", "Ġ"]).values.tolist() == [1, 5]


@pytest.mark.parametrize(
    "text", ["愛は 素晴らしい 映画", "एक अच्छी फिल्म", "فيلم رائع جدا", "e\u0301te\u0301 naïve", "İstanbul ﬁlm"]
)
def test_scripts_and_accents(aligned, text):
    for tokens in (
        [*text],
        text.split(),
        [t for t, _ in BYTES.pre_tokenize_str(text)],
        [f"▁{w}" for w in text.split()],
    ):
        found = aligned(text, tokens)
        assert found.covered.all()
        if found.is_coarse:  # words of several units
            assert [*dict.fromkeys(found.values)] == [*range(1, len(tokens) + 1)]
        else:
            assert found.values.sum() == pytest.approx(len(tokens) * (len(tokens) + 1) / 2)


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("帮一位老外 film", ["[CLS]", "[UNK]", "一", "[UNK]", "[UNK]", "外", "film", "[SEP]"], [2 + 3 + 4 + 5 + 6, 7]),
        ("wow!!! 😀 so", ["wow", "[UNK]", "!", "[UNK]", "[UNK]", "so"], [1, 2, 3, 4, 5, 6]),
        ("an 😀film 😀😀", ["▁an", "▁", "<unk>", "film", "▁", "<unk>"], [1, 5, 4, 11, 6]),
    ],
)
def test_unknown_tokens_cover_what_their_tokenizer_gave_up(aligned, text, tokens, expected):
    assert aligned(text, tokens).values.tolist() == expected


def test_two_fields_one_after_another_or_by_name(aligned):
    fields = {"premise": "a man sleeps", "hypothesis": "a man is awake"}
    whole = ["[CLS]", "a", "man", "sleeps", "[SEP]", "a", "man", "is", "awake", "[SEP]"]
    assert aligned(fields, whole).values.tolist() == [2, 3, 4, 6, 7, 8, 9]
    named = [
        TextPart("is", field="hypothesis"), TextPart("awake", field="hypothesis"), TextPart("man", 2, 5, "premise")
    ]  # fmt: skip
    with pytest.raises(DataError, match="the tokens do not spell the text"):
        aligned(fields, named)
    named = [TextPart(t, field="hypothesis") for t in ("a", "man", "is", "awake")]
    assert aligned(fields, [*named, TextPart("man", 2, 5, "premise")]).values.tolist() == [0, 5, 0, 1, 2, 3, 4]


def test_a_text_is_not_found_inside_a_word_of_another(aligned):
    for tokens in (["the", "Ġgoodness", "Ġof", "Ġit"], ["a", "Ġfeelgood", "Ġfilm"], ["ungood", "ness"]):
        with pytest.raises(DataError, match="the tokens do not spell the text"):
            aligned("good", tokens)
    for tokens in (
        ["a", "gorgeous", "film", "##maker"],
        ["Ġa", "Ġgorgeous", "Ġfilm", "maker"],
        ["a", "gorgeous", "film@@", "maker"],
        ["a</w>", "gorgeous</w>", "film", "maker</w>"],
        ["▁extra", "▁vis", "a", "▁gorgeous", "▁film"],
    ):
        with pytest.raises(DataError, match="the tokens do not spell the text"):
            aligned("a gorgeous film", tokens)
    # A prompt may touch the text, and hold it inside a word elsewhere.
    assert aligned("a film", ["Say", "Ġit:", '"a', "Ġfilm", '"', "Ġ?"], [0, 0, 2, 3, 0, 0]).values.tolist() == [1, 3]
    assert aligned("good", ["Goodness:", "Ġgood"], [7, 3]).values.tolist() == [3]
    assert aligned("好", ["评论好", "吗"], [3, 9]).values.tolist() == [1]
    assert aligned("good", ["Review", "good", "here"], [7, 3, 7]).values.tolist() == [3]
    assert aligned("good", ["Ġsay", "<|user|>", "good", "<|end|>", "yes"], [7, 0, 3, 0, 7]).values.tolist() == [3]


@pytest.mark.parametrize(
    ("fields", "tokens", "expected"),
    [
        (("good jokes", "good jokes here"), "good jokes / good jokes here ->", [1, 2, 4, 5, 6]),
        (("good", "good"), "so: good / good", [2, 4]),
        (("a man eats", "a man"), "a man eats / a man ->", [1, 2, 3, 5, 6]),
    ],
)
def test_a_field_may_recur_in_a_later_one(aligned, fields, tokens, expected):
    fields = dict(zip(("premise", "hypothesis"), fields, strict=True))
    assert aligned(fields, tokens.split()).values.tolist() == expected


def test_a_field_that_may_be_in_two_places_is_refused(aligned):
    with pytest.raises(DataError, match="the tokens do not spell the text"):
        aligned({"premise": "good", "hypothesis": "jokes"}, "good or good / jokes ?".split())


def test_what_a_tool_cut_off_counts_as_nothing_and_is_told(aligned):
    found = aligned("a gorgeous film", ["a", "gor", "geous"])
    assert (found.values.tolist(), found.covered.tolist(), found.cut) == ([1, 5, 0], [True, True, False], True)


@pytest.mark.parametrize("rest", [["▁gor"], ["▁gor", "geous", "▁film"]])
def test_only_a_long_text_is_cut_inside_a_word(aligned, rest):
    """Tools cut at a number of sub-words, and such numbers are large; a few are the beginning of another text."""
    long = ["▁warm"] * 31
    text = "warm " * 31 + "gorgeous filmmakers"
    assert aligned(text, [*long, *rest]).cut
    for tokens in (["▁warm"] * 4 + rest, [*long[:28], *rest]):
        with pytest.raises(DataError, match="the tokens do not spell the text"):
            aligned("warm " * (len(tokens) - len(rest)) + "gorgeous filmmakers", tokens)


@pytest.mark.parametrize("rest", [["ĠðŁĺ"], ["Ġ", "ðŁ", "ĺ"], ["▁", "<0xF0>", "<0x9F>"]])
def test_a_cut_may_go_through_the_bytes_of_a_character(aligned, rest):
    found = aligned("warm 😀 film", ["warm", *rest], [3] + [1] * len(rest))
    assert found.cut and found.values[0] == 3 and found.values[2] == 0


def test_scripts_without_spaces_are_cut_anywhere(aligned):
    assert aligned("愛は素晴らしい映画", ["愛", "は", "素晴"]).cut


def test_spans_leave_the_rest_at_nothing_without_a_word(aligned):
    found = aligned("a gorgeous film", [TextPart(None, 2, 10)], [3])
    assert (found.values.tolist(), found.cut) == ([0, 3, 0], False)


def test_words_may_be_counted_instead_of_characters(aligned):
    found = aligned("well-made , and warm", [TextPart("and warm", 2, 4, counted="words")], [7])
    assert found.values[-2:].tolist() == [7, 7]


@pytest.mark.parametrize("width", [(), (2,)])
def test_a_row_of_a_padded_batch_ends_or_begins_with_zeros(item_of, width):
    item = item_of("a gorgeous film")
    row = np.random.default_rng(0).normal(size=(len(item.ids), *width))
    expected = align(Explanation(row), item, {}).values
    padding = np.zeros((3, *width))
    for padded in ([row, padding], [padding, row]):
        np.testing.assert_array_equal(align(Explanation(np.concatenate(padded)), item, {}).values, expected)
    for doubtful in ([row, padding + 1], [padding + 1, row], [row[:-1]]):
        with pytest.raises(DataError, match="numbers were given, and the text has 3 units"):
            align(Explanation(np.concatenate(doubtful)), item, {})
    row[0] = 0  # both ends may be padding, and the numbers would differ
    with pytest.raises(DataError, match="numbers were given, and the text has 3 units"):
        align(Explanation(np.concatenate([row, padding[:1]])), item, {})


def words(item_of, text, weights):
    pieces = tuple(map(TextPart, weights))
    given = Explanation(np.array(list(weights.values())), pieces, any_order=True)
    return align(given, item_of(text), {"text": text})


def test_words_in_any_order_have_their_score_wherever_they_occur(item_of):
    found = words(item_of, "good film , a feelgood film", {"film": 2.0, "good": 1.0})
    assert found.values.tolist() == [1, 2, 0, 0, 0, 2]  # not inside "feelgood"
    assert words(item_of, "A Café in café", {"café": 1.0}).values.tolist() == [0, 0, 0, 1]  # as it is written first
    assert words(item_of, "A Café", {"cafe": 1.0, "a": 3.0}).values.tolist() == [3, 1]
    assert words(item_of, "it 's don't", {"don": 4.0, "s": 1.0}).values.sum() >= 5
    tokens = {"[CLS]": 9.0, "a": 1.0, "gor": 2.0, "##geous": 3.0, "film": 4.0, "[SEP]": 9.0}
    assert words(item_of, "a gorgeous film", tokens).values.tolist() == [1, 5, 4]


def test_words_that_the_text_does_not_have_or_that_have_two_scores_are_named(item_of):
    with pytest.raises(DataError, match=r"example '0': the text has no 'boring', 'gor'; words of the text, or its tok"):
        words(item_of, "a gorgeous film", {"film": 2.0, "boring": 1.0, "gor": 1.0})
    twice = Explanation(np.array([1.0, 2.0]), (TextPart("film"), TextPart("film")), any_order=True)
    with pytest.raises(DataError, match=r"'film' has several scores, and nothing says where each belongs"):
        align(twice, item_of("film or no film"), {"text": "film or no film"})


def test_numbers_alone_are_one_per_unit_or_one_per_token(item_of):
    item = item_of("a gorgeous film")
    assert align(Explanation(np.arange(3.0)), item, {}).values.tolist() == [0, 1, 2]
    everything = align(Explanation(np.arange(float(len(item.ids)))), item, {})
    assert everything.values.tolist() == np.flatnonzero(item.unit_of >= 0).tolist()
    with pytest.raises(DataError, match=r"4 numbers were given, and the text has 3 units .* a \| gorgeous \| film"):
        align(Explanation(np.arange(4.0)), item, {})


def test_several_classes_keep_their_columns(item_of):
    item = item_of("a gorgeous film")
    pieces = tuple(map(TextPart, ["a", "gor", "geous", "film"]))
    found = align(Explanation(np.arange(8.0).reshape(4, 2), pieces), item, {"text": "a gorgeous film"})
    assert found.values.tolist() == [[0, 1], [6, 8], [6, 7]]


def test_another_text_is_shown_side_by_side(aligned):
    with pytest.raises(DataError) as caught:
        aligned("a gorgeous film with one dull scene in it", ["Ġa", "Ġgor", "geous", "Ġmovie", "Ġwith", "Ġone"])
    assert str(caught.value) == (
        "the attribution 'mine', example '0': the tokens do not spell the text.\n"
        "theirs: Ġa | Ġgor | geous | »Ġmovie« | Ġwith | Ġone\n"
        "ours:   a | gorgeous | »film« | with | one | dull | scene | …"
    )


def test_a_longer_text_is_shown_from_where_ours_ends(aligned):
    with pytest.raises(DataError, match=r"theirs: a \| »b« \| a\nours:   a \| »end«"):
        aligned("a", ["a", "b", "a"])


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (TextPart(None, 2, 99), r"the span 2 to 99 does not lie in the field 'text', which has 15 characters"),
        (
            TextPart("movie", 11, 15),
            r"characters 11 to 15 of the field 'text' are not .*\ntheirs: 'movie'\nours:   'film'",
        ),
        (TextPart(None, 2, 4, "body"), "no field 'body'; the example has text"),
        (TextPart(None, 2, 9, counted="words"), "the span 2 to 9 does not lie in .* which has 3 words"),
    ],
)
def test_a_span_of_another_text_is_refused(aligned, piece, message):
    with pytest.raises(DataError, match=message):
        aligned("a gorgeous film", [piece])


def test_a_span_without_a_field_is_refused_where_there_are_several(aligned):
    with pytest.raises(DataError, match="a span without a field, and the explained fields are premise, hypothesis"):
        aligned({"premise": "a", "hypothesis": "b c"}, [TextPart(None, 0, 1)])


texts = st.text(st.characters(codec="utf-8", exclude_characters="\ufffd\U0010ffff"), min_size=1, max_size=40)


@given(text=texts, cuts=st.sets(st.integers(1, 39)), seed=st.integers(0, 99))
def test_tokens_and_spans_that_cut_a_text_alike_give_the_same_numbers(item_of, text, cuts, seed):
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    item = item_of(text)
    assume(item.n_units > 0 and "".join(text.split()) == "".join("".join(item.texts).split()))
    tokens = [text[start:end] for start, end in zip(edges[:-1], edges[1:], strict=True)]
    scores = np.random.default_rng(seed).normal(size=len(tokens))
    by_token = align(Explanation(scores, tuple(map(TextPart, tokens))), item, {"text": text})
    if not by_token.is_coarse:
        assert by_token.values.sum() == pytest.approx(scores.sum())
    by_span = align(
        Explanation(scores, tuple(TextPart(None, s, e) for s, e in zip(edges[:-1], edges[1:], strict=True))),
        item,
        {"text": text},
    )
    np.testing.assert_allclose(by_token.values, by_span.values, atol=1e-9)


@given(text=texts)
def test_the_pieces_of_a_unit_in_any_tokenizer_give_the_unit_its_number(item_of, text):
    """A tokenizer that cuts within units only: what it says of a unit is the sum of its pieces."""
    item = item_of(text)
    assume(item.n_units > 0 and "".join(text.split()) == "".join("".join(item.texts).split()))
    expected = np.arange(1.0, item.n_units + 1)
    byte_tokens, byte_scores = [], []
    for unit, (_, start, end) in enumerate(item.spans):
        [(token, _)] = BYTES.pre_tokenize_str(text[start:end])
        byte_tokens += [*token]  # a token per byte
        byte_scores += [expected[unit] / len(token)] * len(token)
    found = align(Explanation(np.array(byte_scores), tuple(map(TextPart, byte_tokens))), item, {"text": text})
    np.testing.assert_allclose(found.values, expected)


@pytest.mark.parametrize("tokenizer", [byte_level(), sentence_piece("bpe"), sentence_piece("unigram")])
@pytest.mark.parametrize("text", ["the naïve film was very good 😀", "A café  in Paris — bad!", "我爱 the film"])
def test_tokens_of_real_tokenizers_are_found_where_they_are(aligned, tokenizer, text):
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
    found = aligned(text, tokens, unit="word")
    assert found.covered.all()
    assert found.values.sum() == pytest.approx(len(tokens) * (len(tokens) + 1) / 2)
