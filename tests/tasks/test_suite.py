"""Every task of the suite, in every one of its prompts: it renders, and no character of a text is ever broken."""

import re
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers import byte_level

from ice_eval.encoding import encode, label_ids
from ice_eval.errors import ConfigError, DataError
from ice_eval.models.codec import HFCodec
from ice_eval.operators import Blacklist, FillPool, PooledUnits, operators
from ice_eval.records import Example, Span
from ice_eval.tasks import (
    FEW_SHOT,
    STANDARD,
    FileData,
    NoData,
    Records,
    Shot,
    Task,
    Wording,
    load_task,
    named_task,
    tasks,
)

NAMES = [name for name in tasks.names() if isinstance(named_task(name), Task)]
SENTENCES = {
    "ar": "كانت الرحلة طويلة ولكن الطعام لذيذ 😀",
    "de": "Der Kaffee war kalt, die Aussicht jedoch großartig.",
    "en": "The soup was cold, yet the café's view made up for it.",
    "fi": "Kahvi oli kylmää, mutta näköala järvelle oli hieno.",
    "fr": "Le café était froid, mais la vue sur l’île valait le détour.",
    "hi": "चाय ठंडी थी, पर पहाड़ों का नज़ारा क्या ख़ूब था।",
    "ja": "コーヒーは冷めていたが、窓からの眺めが良かった。",
    "tr": "Çay soğuktu ama göl manzarası çok hoştu.",
    "vi": "Cà phê nguội, nhưng khung cảnh bên hồ thật đẹp.",
    "zh": "咖啡有点凉，不过窗外的风景很美。",
}
"""A sentence of our own in every language that a task has."""
OTHER_WAY = {"good": " yes", "bad": " no"}
NOTHING = Blacklist(frozenset(), frozenset(), frozenset())


def every_prompt():
    for name in NAMES:
        ways = load_task(name).ways
        yield from (f"{name}/{way}" for way in ways if way != FEW_SHOT)
        yield from (f"{name}/{way}/{FEW_SHOT}" for way in ways[:-1] if FEW_SHOT in ways)


def fields_of(task, mark=""):
    return {name: SENTENCES[task.language] + mark for name in task.template.fields}


def is_mark(character):
    """Whether it belongs to the letter before it."""
    return unicodedata.category(character).startswith("M")


@pytest.fixture(scope="module")
def codec():
    """A byte-level tokenizer that has seen English only: every other letter is cut into its bytes."""
    return HFCodec(byte_level(), reads_pairs=False, max_tokens=2048)


@pytest.mark.parametrize("name", list(every_prompt()))
def test_every_task_renders_in_every_prompt(name, codec):
    task = load_task(name)
    fields = {field: f"<{field}>" for field in task.template.fields}
    text = "".join(piece.text for piece in task.prompt_pieces(fields))
    assert all(text.count(value) == 1 for value in fields.values())
    assert not text[-1].isspace()
    assert text.endswith(task.template.parts[-1].text)
    assert bool(task.shots) == (FEW_SHOT in name or name.startswith("demo/"))
    assert all(text.count(shot.fields[field]) == 1 for shot in task.shots for field in fields)
    assert {shot.label for shot in task.shots} <= set(task.labels)
    assert len(label_ids(codec, task)) == len(task.labels)


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", NAMES)
def test_units_of_every_task_are_whole_characters_and_infill_writes_whole_ones(name, unit, codec):
    task = load_task(name)
    items = [encode(codec, task, Example(str(i), fields_of(task, mark)), unit=unit) for i, mark in enumerate(" !?")]
    item = items[0]
    assert {span.field for span in item.spans} == set(task.explained)
    for span, text in zip(item.spans, item.texts, strict=True):
        whole = item.fields[span.field]
        assert whole[span.start : span.end] == text
        assert not is_mark(text[0])
        assert span.end == len(whole) or not is_mark(whole[span.end])
    explained = "".join(item.fields[field] for field in task.explained)
    assert "".join("".join(item.texts).split()) == "".join(explained.split())

    decoded = codec.decode(item.unit_ids())
    assert "\ufffd" not in "".join(decoded)
    pool = FillPool([PooledUnits.of(each, None) for each in items], blacklist=NOTHING)
    fills = pool.draw(item, rng=np.random.default_rng(0)).ids
    half = np.arange(item.n_units) % 2 == 0
    for act in (operators.get("infill")(), operators.get("delete")()):
        found = act.build(item, half[None], fills=fills)
        assert "\ufffd" not in codec.decode([found.row(0)])[0]


def test_every_task_says_its_language_and_label_words_are_written_in_it():
    scripts = {"ar": "ARABIC", "hi": "DEVANAGARI", "ja": "CJK", "zh": "CJK"}
    for name in NAMES:
        task = load_task(name)
        for word in task.label_words.values():
            assert unicodedata.name(word.strip()[0]).startswith(scripts.get(task.language, "LATIN")), name
    assert {load_task(name).language for name in NAMES} == set(SENTENCES)


def test_the_prompts_of_the_paper_are_there():
    assert load_task("sst2").ways == (STANDARD, "minimal", "paper", "question", "completion", "quoted", FEW_SHOT)
    assert load_task("imdb").ways == (STANDARD, "rating", "yes-no", FEW_SHOT)
    assert load_task("ag_news").ways == (STANDARD, "minimal", "question", FEW_SHOT)
    assert load_task("esnli").ways == (STANDARD, "verb", "true-false-unknown", FEW_SHOT)


@pytest.mark.parametrize(
    ("name", "revision"),
    [
        ("sst2", "bcdcba79d07bc86"),
        ("imdb", "e6281661ce1c48d"),
        ("ag_news", "eb185aade064a81"),
    ],
)
def test_the_revisions_are_those_of_the_paper(name, revision):
    assert load_task(name).data.revision.startswith(revision)


def test_the_prompt_that_the_paper_prints_is_a_prompt_of_sst2():
    pieces = load_task("sst2/paper").prompt_pieces({"text": "[empty]"})
    assert "".join(piece.text for piece in pieces) == "Classify sentiment. Text: [empty] Sentiment:"


def test_topic_words_are_kept_out_of_infill():
    assert {"business", "sports", "technology", "world"} <= load_task("ag_news").lexicon
    assert all(word == word.casefold() and len(word.split()) == 1 for name in NAMES for word in load_task(name).lexicon)


def test_a_way_of_asking_changes_prompt_label_words_and_name_but_no_label():
    task = load_task("imdb/yes-no/few-shot")
    assert task.name == "imdb/yes-no/few-shot"
    assert task.labels == load_task("imdb").labels
    assert task.answers == (" no", " yes")
    assert "".join(piece.text for piece in task.prompt_pieces({"text": "x"})).count("yes or no? yes\n\n") == 2


def test_the_standard_prompt_is_the_task_itself():
    assert load_task("sst2/standard") == load_task("sst2")
    assert load_task("sst2/few-shot/minimal") == load_task("sst2/minimal/few-shot")


def test_label_words_of_a_variant_follow_the_order_of_the_task():
    wordings = {name: Wording("{text}?", words) for name, words in {"other": OTHER_WAY, "odd": {"bad": " no"}}.items()}
    words = {"bad": " bad", "good": " good"}
    task = Task(data=Records([{}]), prompt="{text}", label_words=words, variants=wordings)
    assert task.asked("other").answers == (" no", " yes")
    with pytest.raises(ConfigError, match="has words for bad, not for bad, good"):
        task.asked("odd")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sst2/minmal", "the task 'sst2' has no prompt 'minmal'; did you mean 'minimal'? Known: standard, minimal, "),
        ("sst2/", "the task 'sst2' has no prompt ''. Known: standard"),
        ("boolq/few-shot", "the task 'boolq' has no prompt 'few-shot'. Known: standard."),
        ("sst2/minimal/quoted", "'sst2/minimal/quoted' names several prompts; give one, and 'few-shot' once."),
        ("sst2/few-shot/few-shot", "names several prompts"),
    ],
)
def test_a_way_that_the_task_does_not_know_is_refused(name, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_task(name)


def test_a_task_without_data_asks_for_a_file(tmp_path):
    task = load_task("finnish")
    assert task.data == NoData()
    with pytest.raises(DataError, match="this task has no data of its own; give the examples as a file: --data"):
        task.examples()
    path = tmp_path / "mine.jsonl"
    path.write_text('{"text": "Hyvä."}', encoding="utf-8")
    assert replace(task, data=FileData(path)).examples()[0].fields == {"text": "Hyvä."}


def test_highlighted_words_of_a_file_are_the_human_rationale():
    row = {
        "premise": "A man  sleeps .",
        "hypothesis": "He runs.",
        "highlights_premise": [2],
        "highlights_hypothesis": [1],
    }
    [example] = replace(load_task("esnli"), data=Records([row])).examples()
    assert example.human == (Span("premise", 7, 13), Span("hypothesis", 3, 8))


def test_shots_know_their_labels_only():
    with pytest.raises(ConfigError, match="a shot has the label 'good'"):
        replace(load_task("sst2"), worked=(Shot({"text": "x"}, "good"),)).asked(FEW_SHOT)
