"""Units on the tokenizers of five model families, in many scripts: `make tokenizers` fetches them."""

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fetch_tokenizers import FAMILIES, folder, is_there
from tests.fuzz.laws import Rows, check_template_characters, example_of, fills_for, task_of
from tests.test_boundaries import ENDS, PROMPTS

import ice_eval as ice
from ice_eval.encoding import encode
from ice_eval.models.codec import HFCodec
from ice_eval.records import PROTECTED, Example
from ice_eval.words import character_starts, word_spans

LABELS = {"negative": " negative", "positive": " positive"}
SENTENCES = {
    "latin": "Où est passée la forêt ? Čtyři žluté koně, señor — naïve Ångström’s œuvre.",
    "latin_decomposed": "Ou\u0300 est passe\u0301e la fore\u0302t, C\u030cty\u0159i z\u030clute\u0301 kone\u030c.",
    "vietnamese": "Trời hôm nay đẹp quá, chúng tôi đi dạo suốt buổi chiều.",
    "cyrillic": "Ёжик всё ещё живёт під ґанком, а їжа — у відрі.",
    "greek": "Ἡ θάλασσα ἦταν ἤρεμη· τι ωραία μέρα, φίλε μου!",
    "arabic": "القهوةُ ساخنةٌ جِدًّا، فانتظرْ قليلًا… ٣ دقائق لا أكثر؟",
    "persian": "می\u200cخواهم کتاب\u200cهای تازه را فردا بخوانم.",
    "hebrew": "הַשֶּׁמֶשׁ זרחה מעל ההרים, וכולם שתו תה בחצר.",
    "devanagari": "क्षमा कीजिए, मैं पुस्तकालय का रास्ता भूल गया हूँ। ज़रा बताइए?",
    "bengali": "আজ সকালে খুব বৃষ্টি হয়েছে, রাস্তা ভেজা।",
    "tamil": "அவள் ஒவ்வொரு நாளும் கடற்கரையில் நடக்கிறாள்.",
    "chinese": "昨天下雨，我们在家里看了一部老电影。𠮷野家的牛肉饭不错！",
    "japanese": "がっこうへ行く途中で、ｶﾞﾗｽの破片を踏んでしまった。",
    "korean": "비가 와서 우산을 샀는데, 금방 그쳤어요. \u1112\u1161\u11ab\u1100\u1173\u11af",
    "thai": "เมื่อวานนี้ฝนตกหนักมาก เราจึงไม่ได้ออกไปไหนเลยค่ะ",
    "khmer": "ថ្ងៃនេះមេឃស្រឡះល្អ ខ្ញុំដើរទៅផ្សារ។",
    "emoji": "ok 👍🏽 family 👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👩🏾\u200d🚀🇫🇷🇯🇵 1️⃣ ❤️\u200d🔥!",
    "marks": "Z\u0351\u036b\u0343a\u0327\u0301\u0308l\u0334g\u0336o\u0489 \u0301x q\u0323\u0307 a\u20dd",
    "zero_width": "in\u200bvis\u2060ible\u200d \ufeffmarks\u00ad here\u200e and\u200f \u202bthere\u202c \u2066x\u2069",
    "spaces": "a\u00a0b\u2003c\u3000d\u2009e  f   g\th\u2028i\u202fj\r\nk\u1680l",
    "mathematics": "𝔉𝔬𝔯 𝒙 ∈ ℝⁿ: ∑ᵢ xᵢ² ≥ 0 ⇒ ½·‖x‖ ﬁne Å Ω",
    "special_tokens": "a <s> b</s><pad> <|endoftext|> <bos> <end_of_turn> <|im_end|> [INST] <|eot_id|> c",
    "markup": '<b>bold</b> "a\\nb" {text} %s &amp; https://example.org/?q=1&r=2 ▁x▁▁y',
}  # fmt: skip


@pytest.fixture(scope="module", params=FAMILIES)
def codec(request):
    if not is_there(request.param):
        pytest.skip(f"needs the tokenizer in {folder(request.param)}: make tokenizers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(request.param))
    return HFCodec(tokenizer, reads_pairs=False, max_tokens=100_000)


def bare(text):
    """What is compared: canonical form (Qwen composes) without spaces (Gemma writes them as a low block)."""
    return "".join(c for c in unicodedata.normalize("NFC", text) if not c.isspace() and c != "▁")


def check(codec, text, unit, prompt="Review: {text}\nSentiment:"):
    """Everything that holds for the units of any text."""
    task = ice.Task(data=ice.Records([]), prompt=prompt, label_words=LABELS)
    item = encode(codec, task, Example("0", {"text": text}), unit=unit)
    if item.truncated:
        text = text[: item.spans[-1].end]
    before, after = prompt.split("{text}")
    expected = codec.tokenizer(before + text + after, split_special_tokens=True, return_offsets_mapping=True)
    # Where the file adds no BOS and the model was trained with one, it comes first.
    n_added = len(codec.tokenize("a").ids) - len(codec.tokenizer("a")["input_ids"])
    said = [codec.tokenizer.bos_token_id] * n_added + expected["input_ids"]
    assert n_added in {0, 1}
    assert (item.ids.tolist() == said) is not item.divided
    assert bare(codec.decode([item.ids])[0]) == bare(codec.decode([np.array(said)])[0])

    # Units stand in order and hold all of the text but spaces; between them they have every token of the text alone.
    assert all(one.end <= other.start for one, other in pairwise(item.spans))
    covered = {index for span in item.spans for index in range(span.start, span.end)}
    assert {index for index, c in enumerate(text) if not c.isspace()} <= covered
    owners = [owner for owner in item.unit_of.tolist() if owner != PROTECTED]
    assert owners == sorted(owners)
    assert set(owners) == set(range(item.n_units))
    first, stop = (len(before + text) - len(text.lstrip()), len(before + text.rstrip()))  # outer spaces may be shared
    for owner, (start, end) in zip(item.unit_of[n_added:], expected["offset_mapping"], strict=not item.divided):
        assert item.divided or owner != PROTECTED or not first <= start < end <= stop

    # None begins or ends inside a character, or a word.
    starts = {*character_starts(text).tolist(), len(text)}
    assert all(span.start in starts and span.end in starts for span in item.spans)
    if unit == "word":
        inner = {index for start, end in word_spans(text) for index in range(start + 1, end)}
        assert not inner.intersection(index for span in item.spans for index in (span.start, span.end))

    # The ids of a unit are its characters, and the ids of no unit are the template.
    assert [bare(part) for part in codec.decode(item.unit_ids())] == [bare(part) for part in item.texts]
    template = codec.decode([item.ids[item.unit_of == PROTECTED]])[0]
    assert bare(template).removeprefix(codec.tokenizer.bos_token or "") == bare(before + after)


def family_of(codec):
    [family] = [name for name in FAMILIES if folder(name) == Path(codec.tokenizer.name_or_path)]
    return family


JOINING = {"llama3", "mistral_nemo", "qwen2_5"}
"""Families whose vocabulary has a mark and the line break after it as one token."""


@pytest.mark.parametrize("text", ["A gorgeous film.", "Is it any good?", 'He said: "No!"', "昨天下雨。", "so (so)"])
def test_the_end_of_a_text_and_the_line_break_after_it_are_two_tokens(codec, text):
    item = review(codec, text)
    assert item.divided is (family_of(codec) in JOINING)
    parts = [codec.tokenize(part) for part in (f"Review: {text}", "\nSentiment:")]
    assert item.ids.tolist() == [*parts[0].ids.tolist(), *parts[1].ids[parts[1].sequence >= 0].tolist()]
    [bare] = codec.decode([item.empty().ids])
    assert bare.removeprefix(codec.tokenizer.bos_token or "").replace(": \n", ":\n") == "Review:\nSentiment:"


def review(codec, text, unit="token", prompt="Review: {text}\nSentiment:"):
    task = ice.Task(data=ice.Records([]), prompt=prompt, label_words=LABELS)
    return encode(codec, task, Example("0", {"text": text}), unit=unit)


@settings(max_examples=100)
@given(
    text=st.deferred(lambda: TEXTS), end=st.sampled_from(ENDS), unit=st.sampled_from(["token", "word"]), data=st.data()
)
def test_every_input_shows_the_whole_template(codec, text, end, unit, data):
    prompt = data.draw(st.sampled_from(PROMPTS))
    task = task_of(prompt)
    item = encode(codec, task, example_of(task, text + end, end + text), unit=unit)
    keep = np.random.default_rng(len(text)).random((3, item.n_units)) < 0.5
    fills = fills_for(codec, task, item, unit=unit, scope="content", seed=0)
    check_template_characters(codec, task, [item.full(), item.empty()], exact=True)
    for operator in ("delete", "infill", "mask-unk", "mask-pad") if fills is not None else ("delete",):
        check_template_characters(codec, task, Rows(item, operator, keep, fills).inputs(), exact=True)


def test_every_text_begins_as_its_model_was_trained(codec):
    begins = {"gpt2": "The", "llama3": "<|begin_of_text|>", "qwen2_5": "The", "gemma3": "<bos>", "mistral_nemo": "<s>"}
    ids = codec.tokenize("The film").ids[:2].tolist()
    assert codec.tokenizer.convert_ids_to_tokens(ids)[0] == begins[family_of(codec)]
    assert ids[0] != ids[1]


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("script", SENTENCES)
def test_units_of_every_script_are_whole_characters_and_cover_the_text(codec, script, unit):
    check(codec, SENTENCES[script], unit)


@pytest.mark.real
@pytest.mark.parametrize("unit", ["token", "word"])
def test_units_of_real_texts_are_whole_characters_and_cover_the_text(codec, shared_data, unit):
    texts = [row["text"] for path in sorted(shared_data.glob("*.jsonl")) for row in head(path, 40) if "text" in row]
    assert len(texts) >= 9 * 40
    for text in texts:
        check(codec, text, unit)


# Code points that join others, turn them, hide, or are taken apart by some tokenizer; and some that do none of this.
ODD = [
    *"aZ9é.,'-▁ \n\t\r",
    *"\u0300\u0301\u0308\u0323\u0327\u0334\u0345\u0489\u20dd\u20e3\ufe0f\u3099\uff9e",  # marks
    *"\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202e\u2060\u2066\u2069\ufeff\u00ad\u061c",  # unseen
    *"\u0600\u06dd\u0d4e\U000110bd",  # stand before what they belong to
    *"👍❤👨👩🏳🌈🏽🏿🇫🇷\U000e0067\U000e007f",
    *"कषत\u094d\u093c\u093f\u0958\u09c7\u09be\u0bc6\u0bbe",  # conjuncts, and vowels of two parts
    *"กำ\u0e33\u0e35\u0e48ລຳ",
    *"\u1100\u1161\u11a8한\ud7b0",
    *"电が\u304bカｶ\u3000",
    *"بَّאְ",
    *"ÅΩＡﬁ½²\uf900\U0002f800\u0344\u1e9b\u00a0\u2028\u0085\x1c\x00\x7f\U0010ffff\ufffd𝔉",
]
ANY = st.characters(exclude_categories=("Cs",))
TEXTS = st.one_of(
    st.text(ANY, max_size=30),
    st.lists(st.sampled_from(ODD), max_size=25).map("".join),
    st.lists(st.one_of(st.sampled_from(ODD), ANY, st.sampled_from([*SENTENCES.values()])), max_size=8).map("".join),
)


@settings(max_examples=500)
@given(text=TEXTS, unit=st.sampled_from(["token", "word"]))
def test_units_of_any_text_are_whole_characters_and_cover_the_text(codec, text, unit):
    check(codec, text, unit)


@settings(max_examples=200)
@given(text=TEXTS.filter(bool), unit=st.sampled_from(["token", "word"]))
def test_a_prompt_that_is_nothing_but_the_text_is_all_units(codec, text, unit):
    check(codec, text, unit, "{text}")


@settings(max_examples=200)
@given(text=TEXTS, unit=st.sampled_from(["token", "word"]))
def test_words_of_the_template_stay_where_the_text_touches_them(codec, text, unit):
    task = ice.Task(data=ice.Records([]), prompt='Say "{text}" again', label_words=LABELS)
    item = encode(codec, task, Example("0", {"text": text}), unit=unit)
    left = codec.decode([item.ids[item.unit_of == PROTECTED]])[0].removeprefix(codec.tokenizer.bos_token or "")
    assert left.startswith('Say "')
    assert left.endswith('" again')
    assert [bare(part) for part in codec.decode(item.unit_ids())] == [bare(part) for part in item.texts]


def head(path, n):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for _, line in zip(range(n), lines, strict=False)]
