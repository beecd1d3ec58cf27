import re

import pytest

from ice_eval.errors import ConfigError
from ice_eval.tasks import FileData, NoData, Shot, Wording, load_task

SMALL = "prompt: 'Review: {text}'\nlabels: [bad, good]\n"


@pytest.fixture
def task_of(tmp_path):
    """The content of a file -> its task."""

    def build(content):
        path = tmp_path / "mine.yaml"
        path.write_text(content, encoding="utf-8")
        return load_task(str(path))

    return build


def test_a_file_holds_what_a_task_may_have(task_of, tmp_path):
    task = task_of("""
        data: texts/reviews.csv
        columns: {id: number, text: body}
        prompt: "{title}: {text}"
        labels: {bad: " poor", good: " fine"}
        explain: [text]
        language: nl
        description: Reviews of bicycles.
        lexicon: [slecht, goed]
        shots: [{title: A, text: b, label: good}]
        worked: [{title: C, text: d, label: bad}]
        variants:
          short: "{title} {text}"
          asked: {prompt: "{title} {text} Good?\\n", labels: {bad: "no", good: "yes"}}
          other: {prompt: "{title} {text} Good?", labels: {good: " yes", bad: " no"}}
        classifier_prompt: "{title} {text}"
        chat: true
        system: Answer briefly.
    """)
    assert task.name == "mine"
    assert task.data == FileData(tmp_path / "texts" / "reviews.csv", {"id": "number", "text": "body"})
    assert task.label_words == {"bad": " poor", "good": " fine"}
    assert (task.explained, task.language, task.description) == (("text",), "nl", "Reviews of bicycles.")
    assert task.lexicon == {"slecht", "goed"}
    assert task.shots == (Shot({"title": "A", "text": "b"}, "good"),)
    assert task.worked == (Shot({"title": "C", "text": "d"}, "bad"),)
    assert task.variants["short"] == Wording("{title} {text}")
    assert task.asked("other").label_words == {"bad": " no", "good": " yes"}
    assert task.asked("asked").label_words == {"bad": "no", "good": "yes"}
    assert (task.chat, task.system, task.classifier_prompt) == (True, "Answer briefly.", "{title} {text}")


def test_a_prompt_and_labels_are_enough(task_of):
    task = task_of(SMALL)
    assert task.label_words == {"bad": " bad", "good": " good"}
    assert task.data == NoData()


def test_prompts_of_a_file_are_asked_for_behind_its_name(task_of, tmp_path):
    task_of(SMALL + "variants: {short: '{text}?'}\nworked: [{text: a, label: bad}]")
    task = load_task(str(tmp_path / "mine.yaml/short/few-shot"))
    assert (task.name, task.prompt, len(task.shots)) == ("mine/short/few-shot", "{text}?", 1)
    with pytest.raises(ConfigError, match="the task 'mine' has no prompt 'shrt'; did you mean 'short'"):
        load_task(str(tmp_path / "mine.yaml/shrt"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "keys and values are expected, not nothing"),
        ("prompt: [", "is not YAML"),
        ("labels: [a, b]", "'prompt' is missing; a task needs a prompt and its labels"),
        ("prompt: '{text}'", "'labels' is missing"),
        (SMALL + "promt: x", "no key 'promt'; did you mean 'prompt'? Known: data, columns, prompt, labels"),
        (SMALL + "columns: {id: number}", "'columns' renames the columns of 'data', which is missing"),
        (SMALL + "explain: text", "explain: a list is expected, as [one, two], not 'text'"),
        (SMALL + "chat: maybe", "chat: true or false is expected, not 'maybe'"),
        (SMALL + "language: no", "language: text is expected, not False; put it in quotes"),
        (SMALL + "shots: [{text: a}]", "shots: an example has no 'label'; it has text"),
        (SMALL + "shots: [{text: a, label: ugly}]", "a shot has the label 'ugly', which is none of bad, good"),
        (SMALL + "variants: {x: {labels: [a, b]}}", "variants, x: a prompt is expected, or 'prompt' and 'labels'"),
        (SMALL + "variants: {x: no field}", "has no field"),
        ("prompt: '{text}'\nlabels: {no: ' no', yes: ' yes'}", "labels: a key is read as false, not as text"),
        ("prompt: '{text}'\nlabels: [no, yes]", "labels: text is expected, not False; put it in quotes"),
        ("prompt: no field\nlabels: [a, b]", "has no field; put the text to explain in it"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(task_of, content, message):
    with pytest.raises(ConfigError, match=rf"mine\.yaml.*{re.escape(message)}"):
        task_of(content)


def test_a_file_that_is_not_there_is_told_with_the_way_to_make_one(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read: No such file.*`ice task new` writes one"):
        load_task(str(tmp_path / "none.yaml"))
