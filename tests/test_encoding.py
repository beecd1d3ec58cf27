import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ice_eval.encoding import Tokens, encode, label_ids, shared_prefix
from ice_eval.errors import ConfigError, DataError
from ice_eval.models.toy import ToyCodec
from ice_eval.records import PROTECTED, Example, Span, SpecialIds
from ice_eval.tasks import Records, Shot, Task

BEGIN, END = 1, 2
WORDS = r"\w+|[^\w\s]"
SPACED = r" ?\w+| ?[^\w\s]|\s"  # a space belongs to the word after it, as in byte-level vocabularies
MERGED = r" ?\w+| ?[^\w\s]|\s+"  # and spaces in a row are one token
JOINED = r" ?\w+| ?[^\w\s]+\n*|\s+(?=\w)|\s"  # marks and the line breaks after them are one token, as in Llama 3
RUNS = r"\S+"
LABEL_WORDS = {"negative": " negative", "positive": " positive"}


@dataclass
class Codec:
    """A tokenizer by a regular expression. A token's id is the checksum of its characters."""

    pattern: str = WORDS
    reads_pairs: bool = False
    max_tokens: int = 10_000
    special_tokens: bool = False
    """Whether texts stand between a begin and an end token."""
    bytewise: bool = False
    """Whether every byte is a token, so that several tokens share a character."""
    special: SpecialIds = field(default_factory=SpecialIds)
    spelled: dict = field(default_factory=lambda: {BEGIN: b"<", END: b">"}, repr=False)
    """Id of a token -> its bytes."""

    def writes_special(self, text):
        return False

    def tokenize(self, text, pair=None, *, framed=False):
        rows = [(BEGIN, 0, -1, 0, 0)] if self.special_tokens else []
        for sequence, part in enumerate([text] if pair is None else [text, pair]):
            found = list(self.pieces(part))
            self.spelled |= {self.id(piece): piece for piece, _, _ in found}
            rows += [(self.id(piece), sequence, sequence, a, b) for piece, a, b in found]
            rows += [(END, sequence, -1, 0, 0)] if self.special_tokens else []
        return Tokens(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)

    def pieces(self, text):
        if self.bytewise:
            return [(bytes([b]), at, at + 1) for at, c in enumerate(text) for b in c.encode()]
        return [(match.group().encode(), *match.span()) for match in re.finditer(self.pattern, text)]

    def decode(self, rows):
        return [b"".join(self.spelled[int(i)] for i in row).decode() for row in rows]

    @staticmethod
    def id(piece):
        return 10 + int.from_bytes(piece, "big") % 1_000_003


def make_task(prompt="Review: {text}\nSentiment:", **changes):
    return Task(**{"data": Records([{}]), "prompt": prompt, "label_words": LABEL_WORDS, **changes})


def encode_text(text, codec=None, **changes):
    return encode(codec or Codec(), make_task(**changes), Example("7", {"text": text}))


def ids_of(codec, *pieces):
    return [codec.id(piece.encode()) for piece in pieces]


def test_template_is_protected_and_every_word_of_the_text_is_a_unit():
    item = encode_text("a gorgeous film!")
    assert item.unit_of.tolist() == [PROTECTED, PROTECTED, 0, 1, 2, 3, PROTECTED, PROTECTED]
    assert item.texts == ("a", "gorgeous", "film", "!")
    assert item.ids.tolist() == ids_of(Codec(), "Review", ":", "a", "gorgeous", "film", "!", "Sentiment", ":")
    assert item.example_id == "7"
    assert not item.truncated


def test_spans_give_the_characters_of_the_units_back():
    text = "  a  gorgeous,witty film "
    item = encode_text(text)
    assert [text[span.start : span.end] for span in item.spans] == list(item.texts)
    assert item.spans[0] == Span("text", 2, 3)
    assert item.texts == ("a", "gorgeous", ",", "witty", "film")


def test_words_of_the_template_stay_protected_when_the_text_says_the_same():
    item = encode_text("Sentiment: Review:")
    assert item.unit_of.tolist() == [PROTECTED, PROTECTED, 0, 1, 2, 3, PROTECTED, PROTECTED]


def test_a_token_of_template_space_and_content_is_a_unit_without_the_space():
    item = encode_text("a b", Codec(SPACED))
    assert item.ids.tolist() == ids_of(Codec(), "Review", ":", " a", " b", "\n", "Sentiment", ":")
    assert item.unit_of.tolist() == [PROTECTED, PROTECTED, 0, 1, PROTECTED, PROTECTED, PROTECTED]
    assert item.texts == ("a", "b")
    assert item.spans == (Span("text", 0, 1), Span("text", 2, 3))


def test_a_token_of_template_and_content_is_divided():
    item = encode_text("a b c", Codec(RUNS + r"|\s"), prompt='Say "{text}" again')
    assert item.ids.tolist() == ids_of(Codec(), "Say", " ", '"', "a", " ", "b", " ", "c", '"', " ", "again")
    assert item.texts == ("a", " ", "b", " ", "c")
    assert item.divided and not encode_text("a", Codec(RUNS)).divided


def test_a_template_that_touches_the_text_without_a_space_stays_apart():
    item = encode_text("ab cd", Codec(SPACED), prompt="x{text}y")
    assert item.ids.tolist() == ids_of(Codec(), "x", "ab", " cd", "y")
    assert item.unit_of.tolist() == [PROTECTED, 0, 1, PROTECTED]


def test_the_end_of_the_text_and_the_line_break_after_it_are_two_tokens():
    codec = Codec(JOINED)
    item = encode_text("a b.", codec)
    assert codec.tokenize("b.\nS").ids.tolist() == ids_of(codec, "b", ".\n", "S")
    assert item.ids.tolist() == ids_of(codec, "Review", ":", " a", " b", ".", "\n", "Sentiment", ":")
    assert item.texts == ("a", "b", ".")
    assert codec.decode([item.empty().ids]) == ["Review:\nSentiment:"]


def test_a_bracket_of_the_template_is_no_part_of_the_first_word():
    codec = Codec(r" ?[(\"]?\w+|\S|\s")
    item = encode_text("a b", codec, prompt='Say ("{text}").')
    assert item.texts == ("a", "b")
    assert codec.decode([item.empty().ids]) == ['Say ("").']


def test_a_tab_of_the_template_stays_when_the_word_after_it_goes():
    codec = Codec(r"\t?\w+|\S|\s")
    item = encode_text("a b", codec, prompt="Review:\t{text}\nSentiment:")
    assert codec.decode([item.empty().ids]) == ["Review:\t\nSentiment:"]


def test_the_line_break_between_two_texts_is_a_token_of_its_own():
    codec = Codec(JOINED)
    task = make_task("{a}\n{b}\n\nSo:")
    item = encode(codec, task, Example("0", {"a": "x!", "b": "y?"}))
    assert item.ids.tolist() == ids_of(codec, "x", "!", "\n", "y", "?", "\n\n", "So", ":")
    assert item.texts == ("x", "!", "y", "?")


@pytest.mark.parametrize("prompt", ["{text}", "Sentiment of\n{text}", "{text}\n"])
def test_a_prompt_may_begin_or_end_with_the_text(prompt):
    codec = Codec(JOINED)
    item = encode_text("a b.", codec, prompt=prompt)
    assert item.texts == ("a", "b", ".")
    assert codec.decode([item.ids]) == [prompt.format(text="a b.")]
    assert codec.decode([item.empty().ids]) == [prompt.format(text="")]


def test_template_and_content_of_a_pair_are_kept_apart():
    codec = Codec(JOINED, reads_pairs=True, special_tokens=True)
    task = make_task("{a} {b}", classifier_prompt="One: {a} Two: {b}\nSame?")
    item = encode(codec, task, Example("0", {"a": "x.", "b": "y."}))
    assert codec.decode([item.ids]) == ["<One: x.>Two: y.\nSame?>"]
    assert item.segments.tolist() == [0] * 6 + [1] * 8
    assert item.texts == ("x", ".", "y", ".")
    assert codec.decode([item.empty().ids]) == ["<One:>Two:\nSame?>"]


def test_a_cut_that_changes_what_tokens_spell_is_not_made():
    class MarksWords(Codec):
        """A space goes before every word, as in vocabularies that know words only."""

        def decode(self, rows):
            return [" ".join(super(MarksWords, self).decode([[i]])[0] for i in row) for row in rows]

    item = encode_text("ab cd ef", MarksWords(), prompt="x{text}y")
    assert item.ids.tolist() == ids_of(Codec(), "xab", "cd", "efy")
    assert item.texts == ("cd",) and not item.divided


def test_a_text_is_tokenised_behind_another_where_it_would_be_marked_as_a_beginning():
    class MarksTheStart(Codec):
        def pieces(self, text):
            first, *others = super().pieces(text)
            return [(b"^" + first[0], *first[1:]), *others]

    codec = MarksTheStart(JOINED)
    item = encode_text("a b.", codec)
    assert item.ids.tolist() == ids_of(codec, "^Review", ":", " a", " b", ".", "\n", "Sentiment", ":")


def test_the_texts_last_space_and_the_templates_line_break_are_two_tokens():
    item = encode_text("a b ", Codec(MERGED))
    assert item.ids.tolist() == ids_of(Codec(), "Review", ":", " a", " b", " ", "\n", "Sentiment", ":")
    assert item.texts == ("a", "b", " ")
    assert item.unit_of.tolist() == [PROTECTED, PROTECTED, 0, 1, 2, PROTECTED, PROTECTED, PROTECTED]


def test_the_whole_prompt_is_tokenised_as_it_is():
    item = encode(Codec(JOINED), make_task(), Example("0", {"text": "a."}), scope="prompt")
    assert item.ids.tolist() == Codec(JOINED).tokenize("Review: a.\nSentiment:").ids.tolist()
    assert not item.divided


def test_a_unit_of_spaces_alone_keeps_its_spaces():
    item = encode_text("a  b", Codec(SPACED))
    assert item.texts == ("a", " ", "b")
    assert item.spans[1] == Span("text", 1, 2)


@pytest.mark.parametrize(("first", "second", "end"), [("x ab", "cd y", 4), ("x ", " y", 2), ("x a ", " y", 4)])
def test_a_token_of_two_fields_is_a_unit_of_the_first_and_ends_with_it(first, second, end):
    item = encode(Codec(r"\w+|\s+"), make_task("{a}{b}"), Example("7", {"a": first, "b": second}))
    spans = [span for span in item.spans if span.field == "a"]
    assert spans[-1].end == end == len(first)
    assert item.spans[len(spans)].start > 0


def test_tokens_that_share_a_character_form_one_unit():
    item = encode_text("a🙂é", Codec(bytewise=True), prompt="{text}")
    assert item.texts == ("a", "🙂", "é")
    assert item.unit_of.tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert [len(ids) for ids in item.unit_ids()] == [1, 4, 2]


def test_equal_characters_in_a_row_are_units_of_their_own():
    item = encode_text("🙂🙂", Codec(bytewise=True), prompt="{text}")
    assert item.unit_of.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_special_tokens_are_protected():
    item = encode_text("a b", Codec(special_tokens=True), prompt="{text}")
    assert item.unit_of.tolist() == [PROTECTED, 0, 1, PROTECTED]
    assert item.empty().ids.tolist() == [BEGIN, END]


def test_a_token_without_characters_is_protected():
    class Marked(Codec):
        def pieces(self, text):
            return [(b"_", 0, 0), *super().pieces(text)]

    item = encode_text("a b", Marked(), prompt="{text}")
    assert item.unit_of.tolist() == [PROTECTED, 0, 1]


def test_offsets_beyond_the_text_are_refused():
    class Wrong(Codec):
        def pieces(self, text):
            return [(piece, start, end + 1) for piece, start, end in super().pieces(text)]

    with pytest.raises(DataError, match="places token 1 beyond the end of the text"):
        encode_text("a b", Wrong(), prompt="{text}")


def test_only_fields_that_are_explained_have_units():
    task = make_task("Premise: {premise}\nClaim: {claim}\n", explain=("claim",))
    item = encode(Codec(), task, Example("0", {"premise": "rain falls", "claim": "it is wet"}))
    assert item.texts == ("it", "is", "wet")
    assert {span.field for span in item.spans} == {"claim"}
    assert item.unit_of.tolist() == [PROTECTED] * 6 + [0, 1, 2]


def test_every_field_of_the_prompt_is_explained_by_default():
    task = make_task("{premise} so {claim}")
    item = encode(Codec(), task, Example("0", {"premise": "rain falls", "claim": "wet"}))
    assert item.spans == (Span("premise", 0, 4), Span("premise", 5, 10), Span("claim", 0, 3))
    assert item.unit_of.tolist() == [0, 1, PROTECTED, 2]


def test_shots_are_protected_even_where_they_repeat_the_text():
    item = encode_text("a b", shots=(Shot({"text": "a b"}, "positive"),))
    assert item.n_units == 2
    assert item.content == slice(9, 11)  # Review : a b Sentiment : positive Review : | a b | Sentiment :


@pytest.mark.parametrize("text", ["{claim}", "{}", "{0!r}", "{{text}}", "100 % {", "%s \\n"])
def test_a_text_with_braces_is_text(text):
    item = encode_text(text, Codec(RUNS))
    assert "".join(item.texts) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_an_empty_text_has_no_units_and_leaves_the_template(text):
    item = encode_text(text)
    assert item.n_units == 0 and item.spans == ()
    assert item.ids.tolist() == ids_of(Codec(), "Review", ":", "Sentiment", ":")
    assert item.content == slice(0, 0)
    assert item.empty().ids.tolist() == item.full().ids.tolist()


def test_a_classifier_reads_text_and_pair_with_their_segments():
    task = make_task("Premise: {premise}\nClaim: {claim}")
    codec = Codec(reads_pairs=True, special_tokens=True)
    item = encode(codec, task, Example("0", {"premise": "rain falls", "claim": "wet"}))
    assert item.ids.tolist() == [BEGIN, *ids_of(codec, "rain", "falls"), END, *ids_of(codec, "wet"), END]
    assert item.segments.tolist() == [0, 0, 0, 0, 1, 1]
    assert item.unit_of.tolist() == [PROTECTED, 0, 1, PROTECTED, 2, PROTECTED]
    assert item.spans[2] == Span("claim", 0, 3)


def test_a_classifier_reads_a_single_field_without_a_pair():
    codec = Codec(reads_pairs=True, special_tokens=True)
    item = encode_text("a b", codec)
    assert item.ids.tolist() == [BEGIN, *ids_of(codec, "a", "b"), END]
    assert item.segments.tolist() == [0, 0, 0, 0]


def test_a_classifier_joins_the_last_fields_when_there_are_more_than_two():
    task = make_task("{a} {b} {c}")
    item = encode(Codec(reads_pairs=True), task, Example("0", {"a": "x y", "b": "u", "c": "v w"}))
    assert item.segments.tolist() == [0, 0, 1, 1, 1]
    assert [span.field for span in item.spans] == ["a", "a", "b", "c", "c"]


def test_the_words_of_a_classifier_prompt_are_protected():
    task = make_task("{a} {b}", classifier_prompt="is {a} so? then {b} !")
    item = encode(Codec(reads_pairs=True), task, Example("0", {"a": "x", "b": "y"}))
    assert item.unit_of.tolist() == [PROTECTED, 0, PROTECTED, PROTECTED, PROTECTED, 1, PROTECTED]
    assert item.segments.tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_a_classifier_sees_no_shots():
    item = encode_text("a b", Codec(reads_pairs=True), shots=(Shot({"text": "c d"}, "positive"),))
    assert item.unit_of.tolist() == [0, 1]


def test_a_long_text_loses_its_end_and_the_template_stays():
    words = [f"w{index}" for index in range(600)]
    item = encode_text(" ".join(words), max_tokens=512)
    assert item.texts == tuple(words[:512])
    assert item.truncated and item.n_cut == 88
    assert item.empty().ids.tolist() == ids_of(Codec(), "Review", ":", "Sentiment", ":")


def test_a_text_of_just_the_limit_is_not_cut():
    item = encode_text(" ".join(["w"] * 512), max_tokens=512)
    assert item.n_units == 512
    assert not item.truncated


def test_without_a_limit_a_text_is_as_long_as_the_model_takes():
    item = encode_text(" ".join(["w"] * 5000), Codec(max_tokens=5004))
    assert (item.n_units, item.n_cut) == (5000, 0)
    assert encode_text(" ".join(["w"] * 5000), Codec(max_tokens=1004)).n_cut == 4000


def test_what_a_limit_of_characters_leaves_out_is_estimated_in_units():
    task = make_task(data=Records([{"text": "one two six ten " * 10}]), max_characters=40)
    [example] = task.examples()
    item = encode(Codec(), task, example)
    assert (item.n_units, item.n_cut) == (10, 30)
    assert example.identity() == replace(example, n_unread=0).identity()


def test_a_small_window_cuts_the_text_and_leaves_room_for_the_label():
    codec = Codec(max_tokens=8)
    task, example = make_task(), Example("0", {"text": "a b c d e f g"})
    assert encode(codec, task, example).texts == ("a", "b", "c", "d")
    assert encode(codec, task, example, reserve=2).texts == ("a", "b")
    assert len(encode(codec, task, example, reserve=2).ids) == 6


def test_truncation_leaves_the_example_as_it_was():
    example = Example("0", {"text": "a b c d e f g"})
    encode(Codec(max_tokens=8), make_task(), example)
    assert example.fields == {"text": "a b c d e f g"}


def test_the_longest_explained_field_is_cut_first():
    task = make_task("{short} | {long}")
    item = encode(Codec(max_tokens=7), task, Example("0", {"short": "a b", "long": "c d e f g h"}))
    assert item.texts == ("a", "b", "c", "d", "e", "f")
    item = encode(Codec(max_tokens=3), task, Example("0", {"short": "a b", "long": "c d e f g h"}))
    assert len(item.ids) == 3
    assert item.texts[0] == "a"


def test_a_field_that_is_not_explained_is_never_cut():
    task = make_task("{context} | {text}", explain=("text",))
    fields = {"context": "a b c d e f g h", "text": "u v w"}
    item = encode(Codec(max_tokens=11), task, Example("0", fields))
    assert item.texts == ("u", "v")
    assert len(item.empty().ids) == 9


def test_a_cut_never_splits_a_character():
    item = encode_text("ab🙂🙂", Codec(bytewise=True, max_tokens=8), prompt="{text}")
    assert item.texts == ("a", "b", "🙂")


def test_a_cut_text_reads_as_if_it_had_ended_there():
    # A space left at the cut would be a unit of its own.
    item = encode_text("a b c", Codec(MERGED, max_tokens=7))
    assert item.texts == ("a", "b")
    assert item.ids.tolist() == encode_text("a b", Codec(MERGED)).ids.tolist()


def test_a_window_smaller_than_the_template_is_refused():
    message = r"example '7': the prompt without its text has 4 tokens, and the model takes 3; shorten the prompt"
    with pytest.raises(DataError, match=message):
        encode_text("a b c", Codec(max_tokens=3))


def test_a_window_of_just_the_template_leaves_an_empty_text():
    item = encode_text("a b c", Codec(max_tokens=4))
    assert item.n_units == 0 and item.truncated


def test_label_ids_are_those_that_follow_the_prompt():
    codec = Codec(SPACED)
    assert label_ids(codec, make_task()) == tuple((codec.id(word.encode()),) for word in (" negative", " positive"))


def test_label_ids_are_those_in_the_middle_of_a_text_not_at_its_start():
    class MarksTheStart(Codec):
        def pieces(self, text):
            first, *others = super().pieces(text)
            return [(b"^" + first[0], *first[1:]), *others]

    codec = MarksTheStart()
    assert label_ids(codec, make_task()) == tuple((codec.id(word),) for word in (b"negative", b"positive"))


def test_a_label_that_merges_with_the_end_of_the_prompt_is_tokenised_alone():
    codec = Codec(SPACED)
    task = make_task("Review: {text} Sentiment: ", label_words={"bad": "bad", "good": "good"})
    assert label_ids(codec, task) == tuple((codec.id(word),) for word in (b"bad", b"good"))


def test_a_label_has_no_special_tokens():
    codec = Codec(special_tokens=True)
    assert label_ids(codec, make_task()) == tuple((codec.id(word),) for word in (b"negative", b"positive"))


def test_labels_of_several_tokens_have_all_of_them():
    codec = Codec()
    task = make_task(label_words={"bad": " very bad", "good": " very good"})
    assert label_ids(codec, task) == tuple(tuple(ids_of(codec, "very", word)) for word in ("bad", "good"))


@pytest.mark.parametrize("words", [{"no": " no", "never": " no way"}, {"never": " no way", "no": " no"}])
def test_a_label_that_begins_another_is_refused(words):
    message = "the tokens of the label 'no' are the beginning of those of 'never', so they cannot be distinguished"
    with pytest.raises(ConfigError, match=message):
        label_ids(Codec(), make_task(label_words=words))


def test_labels_with_the_same_tokens_are_refused():
    with pytest.raises(ConfigError, match="cannot be distinguished"):
        label_ids(Codec(), make_task(label_words={"a": " x", "b": "  x"}))


def test_a_label_without_tokens_is_refused():
    with pytest.raises(ConfigError, match="the label 'none' has no tokens in this model's vocabulary"):
        label_ids(Codec(), make_task(label_words={"none": " ", "some": " some"}))


def test_the_shared_prefix_is_the_template_before_the_text():
    items = [encode_text(text) for text in ("a b", "a c d", "e")]
    assert shared_prefix(items) == 2
    assert shared_prefix(items[:1]) == 2


def test_the_shared_prefix_never_reaches_into_the_text():
    items = [encode_text("a b"), encode_text("a b")]
    assert shared_prefix(items) == 2


def test_the_shared_prefix_ends_where_protected_fields_differ():
    task = make_task("Topic: {topic} Text: {text}", explain=("text",))
    items = [
        encode(Codec(), task, Example(str(index), {"topic": topic, "text": "a b"}))
        for index, topic in enumerate(("sport", "music"))
    ]
    assert shared_prefix(items) == 2
    assert shared_prefix(items[:1]) == 5


def test_the_shared_prefix_includes_the_shots():
    shots = (Shot({"text": "c d"}, "positive"),)
    assert shared_prefix([encode_text("a b", shots=shots), encode_text("c", shots=shots)]) == 9


def test_an_example_without_units_counts_with_all_its_template():
    assert shared_prefix([encode_text("a b"), encode_text("")]) == 2
    assert shared_prefix([encode_text("")]) == 4


def test_a_prompt_that_begins_with_the_text_shares_nothing():
    assert shared_prefix([encode_text("a b", prompt="{text} ?"), encode_text("a c", prompt="{text} ?")]) == 0


@given(st.text(max_size=60))
def test_units_of_any_text_cover_its_characters_once_and_in_order(text):
    item = encode_text(text, ToyCodec())
    assert all(before.end <= after.start for before, after in pairwise(item.spans))
    covered = {index for span in item.spans for index in range(span.start, span.end)}
    assert covered == {index for index, character in enumerate(text) if not character.isspace()}
    assert list(item.texts) == [text[span.start : span.end] for span in item.spans]


@given(st.text(max_size=30))
def test_bytes_of_any_text_form_units_of_whole_characters(text):
    item = encode_text(text, Codec(bytewise=True), prompt="<{text}>")
    assert "".join(item.texts) == text
    assert [len(ids) for ids in item.unit_ids()] == [len(unit.encode()) for unit in item.texts]
    assert item.empty().ids.tolist() == ids_of(Codec(), "<", ">")


@given(st.text(max_size=40), st.integers(4, 12))
@example("0🏻", 5)  # one character of two tokens, which are kept or cut together
def test_any_text_fits_the_window_and_keeps_its_beginning(text, window):
    item = encode_text(text, Codec(max_tokens=window))
    whole = encode_text(text)
    assert len(item.ids) <= window
    assert item.texts == whole.texts[: item.n_units]
    sizes = whole.unit_lengths()
    assert len(item.ids) == len(whole.ids) - sizes[item.n_units :].sum()
    assert item.n_units == whole.n_units or len(item.ids) + sizes[item.n_units] > window, "nothing is cut in vain"
    assert item.truncated == (len(whole.ids) > window)


def test_the_unknown_token_can_be_written_out_in_a_test(encoded):
    item = encoded("a <unk> c")
    assert item.ids[item.content].tolist()[1] == item.special.unk
    assert item.texts == ("a", "<unk>", "c")
    assert item.spans == encoded("a xxxxx c").spans
    assert item.empty().keys == encoded("b").empty().keys


def test_a_span_takes_the_accent_along_that_the_tokenizer_composed_away():
    class Composes(Codec):
        """Reports the letter alone for a letter and its accent, as tokenizers that normalise do."""

        def tokenize(self, text, pair=None, *, framed=False):
            tokens = super().tokenize(text, pair, framed=framed)
            accents = np.array([text[end - 1] == "\u0301" for end in tokens.end])
            return replace(tokens, end=tokens.end - accents)

    item = encode_text("te\u0301 b", Composes())
    assert item.texts[0] == "te\u0301"


def test_a_span_takes_the_space_along_that_its_accent_stands_on():
    item = encode_text("a \u0301b c", ToyCodec())  # to the toy a space is no part of any token
    assert item.texts == ("a", " \u0301", "b", "c")
    assert item.spans[1] == Span("text", 1, 3)
