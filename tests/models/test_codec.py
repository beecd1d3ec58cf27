"""Tokenizers as they come: with wrong positions, without any, in Python, with SentencePiece's marks."""

import numpy as np
import pytest
import transformers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.small_tokenizers import SlowPieces, SlowRiddle, SlowWords, byte_level, sentence_piece
from tokenizers import Tokenizer, decoders, models

from ice_eval.encoding import encode, label_ids
from ice_eval.errors import ConfigError, DataError
from ice_eval.models.codec import HFCodec
from ice_eval.records import PROTECTED, Example
from ice_eval.tasks import Records, Task
from ice_eval.words import character_starts

TEXTS = [
    "the film was good",
    "  a  very naïve café \n\n bad ",
    "👨‍👩‍👧 warm 👍🏽 e\u0301te\u0301 cafe\u0301",
    "电影很好，真的。 فيلم رائع جدا",
    "भारत में ที่นี่ดีมาก 한국 영화",
    "\u200bzero\u200bwidth ＡＢ　①",
]
TASK = Task(
    data=Records([]),
    prompt="Review: {text}\nSentiment:",
    label_words={"negative": " negative", "positive": " positive"},
)
PAIR_TASK = Task(data=Records([]), prompt="{first} {second}", label_words=TASK.label_words)


def codec_of(tokenizer, **changes):
    return HFCodec(tokenizer, **{"reads_pairs": False, "max_tokens": 10_000} | changes)


def encoded(codec, text, unit="token"):
    return encode(codec, TASK, Example("0", {"text": text}), unit=unit)


def assert_covered(text, item):
    """Units cover every character that is no space once, in order, and split none."""
    starts, place, covered = character_starts(text), 0, set()
    for span in item.spans:
        assert place <= span.start < span.end
        assert starts[span.start] == span.start
        assert span.end == len(text) or starts[span.end] == span.end
        place = span.end
        covered |= set(range(span.start, span.end))
    spaces = {index for index, character in enumerate(text) if character.isspace() or character == "\u200b"}
    assert covered | spaces == set(range(len(text)))


class Wrong:
    """A fast tokenizer whose positions are wrong."""

    def __init__(self, tokenizer, wrong):
        self._tokenizer, self._wrong = tokenizer, wrong

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __call__(self, *texts, **wanted):
        found = self._tokenizer(*texts, **wanted)
        found["offset_mapping"] = [self._wrong(*span) for span in found["offset_mapping"]]
        return found


@pytest.fixture(scope="module")
def tokenizers():
    return {
        "byte level": byte_level(),
        "bpe": sentence_piece("bpe"),
        "unigram": sentence_piece("unigram"),
        "python": SlowPieces(),
    }


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("kind", ["byte level", "bpe", "unigram", "python"])
def test_units_cover_the_text_once_in_order_and_split_no_character(tokenizers, kind, unit, text):
    item = encoded(codec_of(tokenizers[kind]), text, unit)
    assert_covered(text, item)
    assert (item.unit_of == PROTECTED).sum() >= 2


@settings(deadline=None, max_examples=40)
@given(text=st.text(st.characters(exclude_categories=["C"], exclude_characters="▁"), max_size=30))
@example(text="a\u0301\u0301 🇩🇪 ﷺ ½")
@pytest.mark.parametrize("kind", ["byte level", "bpe", "unigram"])
def test_units_of_any_text_are_whole_characters(tokenizers, kind, text):
    assert_covered(text, encoded(codec_of(tokenizers[kind]), text))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", ["byte level", "bpe"])
@pytest.mark.parametrize(
    "wrong",
    [lambda a, b: (a, a), lambda a, b: (a, b + 1), lambda a, b: (a + 1, b + 1), lambda a, b: (0, 0)],
    ids=["empty", "too long", "shifted", "nowhere"],
)
def test_wrong_positions_are_put_right(tokenizers, kind, wrong, text):
    right = encoded(codec_of(tokenizers[kind]), text)
    repaired = encoded(codec_of(Wrong(tokenizers[kind], wrong)), text)
    assert_covered(text, repaired)
    assert repaired.ids.tolist() == right.ids.tolist()
    if kind == "byte level":
        assert repaired.spans == right.spans
        assert repaired.unit_of.tolist() == right.unit_of.tolist()


def test_positions_that_cannot_be_put_right_are_refused():
    with pytest.raises(DataError, match=r"SlowRiddle\) reports no positions .* cannot be found in the text by what"):
        encoded(codec_of(SlowRiddle()), "the film")


def test_a_tokenizer_in_python_with_unknown_words_is_aligned_by_the_others():
    item = encoded(codec_of(SlowWords()), "The FILM was ☃☃ good")
    assert item.texts == ("The", "FILM", "was", "☃☃", "good")


@pytest.mark.parametrize("kind", [transformers.CanineTokenizer, transformers.ByT5Tokenizer])
def test_the_tokenizers_in_python_of_transformers_work(kind):
    codec = codec_of(kind(), reads_pairs=True)
    for text in TEXTS:
        assert_covered(text, encoded(codec, text))


def test_a_tokenizer_in_python_reads_pairs():
    tokenizer = SlowPieces(
        cls_token="<cls>", sep_token="<sep>", special_tokens_pattern="cls_sep", token_type_ids_pattern="bert_style",
        token_type_ids_include_special_tokens=True, model_input_names=["input_ids", "token_type_ids"],
    )  # fmt: skip
    codec = codec_of(tokenizer, reads_pairs=True)
    fields = {"first": "the film", "second": "was👍🏽"}
    item = encode(codec, PAIR_TASK, Example("0", fields))
    assert tokenizer.convert_ids_to_tokens(item.ids.tolist())[:4] == ["<cls>", "▁the", "▁film", "<sep>"]
    assert item.ids[-1] == tokenizer.sep_token_id
    assert item.segments.tolist() == [0] * 4 + [1] * (len(item.ids) - 4)
    assert item.texts == ("the", "film", "was", "👍🏽")
    assert [span.field for span in item.spans] == ["first", "first", "second", "second"]


def test_a_tokenizer_in_python_that_hides_its_special_tokens_is_refused():
    class Hides(SlowPieces):
        def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None):
            return [1, *token_ids_0]

    with pytest.raises(ConfigError, match="Hides does not tell which tokens it adds"):
        encoded(codec_of(Hides(), reads_pairs=True), "the film")


def test_a_tokenizer_in_python_that_cannot_read_plain_text_is_refused():
    class Picky(SlowPieces):
        def tokenize(self, text, **wanted):
            raise ValueError("no `split_special_tokens`")

    with pytest.raises(ConfigError, match="Picky cannot be used: no `split_special_tokens`"):
        encoded(codec_of(Picky()), "the film")


def test_special_tokens_in_a_text_are_characters_to_a_tokenizer_in_python_too():
    codec = codec_of(SlowPieces())
    assert codec.special.end not in encoded(codec, "the </s> film").ids
    assert codec.tokenize("the </s> film", framed=True).ids.tolist().count(codec.special.end) == 1


def test_labels_of_sentencepiece_follow_the_prompt(tokenizers):
    for kind in ("bpe", "unigram", "python"):
        codec = codec_of(tokenizers[kind])
        words = [codec.tokenizer.convert_ids_to_tokens(list(ids)) for ids in label_ids(codec, TASK)]
        assert ["".join(word) for word in words] == ["▁negative", "▁positive"]


def test_an_empty_text_keeps_what_every_text_begins_with():
    tokenizer = byte_level(bos_token="<s>", add_bos_token=True)
    assert codec_of(tokenizer).tokenize("").ids.tolist() == [tokenizer.bos_token_id]


def test_padding_and_truncation_in_the_file_are_not_used(tokenizers):
    tokenizer = byte_level(pad_token="<pad>")
    tokenizer.backend_tokenizer.enable_padding(length=64, pad_id=tokenizer.pad_token_id)
    tokenizer.backend_tokenizer.enable_truncation(3)
    assert np.array_equal(
        codec_of(tokenizer).tokenize("the film was good").ids,
        codec_of(tokenizers["byte level"]).tokenize("the film was good").ids,
    )


def test_the_mark_of_a_token_inside_a_word_is_no_text():
    codec = codec_of(transformers.PreTrainedTokenizerFast(tokenizer_object=pieces_of("ban", "##al", "#")))
    decoded = codec.decode([np.array(ids) for ids in ([0, 1], [1], [1, 0], [2, 2])])
    assert decoded == ["banal", "al", "al ban", "# #"]


def pieces_of(*words):
    tokenizer = Tokenizer(models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="#"))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return tokenizer


def test_a_mask_token_counts_only_for_models_that_were_trained_with_it():
    tokenizer = byte_level(mask_token="<mask>")
    assert codec_of(tokenizer).special.mask is None
    assert codec_of(tokenizer, reads_pairs=True, knows_mask=True).special.mask == tokenizer.mask_token_id
