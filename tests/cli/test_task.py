import json

import pytest


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "reviews.jsonl"
    texts = ["a gorgeous film", "an awful mess", "it is what it is"]
    path.write_text("".join(json.dumps({"text": t, "label": i % 2}) + "\n" for i, t in enumerate(texts)))
    return path


def check(ice, *arguments):
    return ice("task", "check", *arguments)


FLAGS = ("--model", "toy", "--prompt", "Review: {text}\\nSentiment:", "--labels", "negative,positive")


def test_prompts_show_what_is_explained_and_what_is_protected(ice, data):
    done = check(ice, data, *FLAGS)
    assert done.code == 0
    assert "Review: [a] [gorgeous] [film]\nSentiment:" in done.out


def test_priors_predictions_and_accuracy_are_those_of_the_model(ice, data):
    found = json.loads(check(ice, data, *FLAGS, "--json").out)
    by_name = {label["label"]: label for label in found["labels"]}
    assert by_name["positive"]["prior"] == pytest.approx(0.562, abs=1e-3)  # the toy's bias of 0.25
    assert by_name["positive"]["predicted"] == pytest.approx(2 / 3)
    assert found["accuracy"] == 0  # gold labels are the wrong way round, and the third is a guess
    assert found["n"] == 3
    assert "".join(segment["text"] for segment in found["prompts"][1]) == "Review: an awful mess\nSentiment:"


def test_a_known_task_is_checked_by_name(ice):
    done = check(ice, "demo", "--model", "toy", "--unit", "word")
    assert done.code == 0
    assert "accuracy on 50 examples" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.jsonl", *FLAGS), "no such file"),
        (("dmeo", "--model", "toy"), "no task named 'dmeo'; did you mean 'demo'?"),
        (("nowhere.csv", "--model", "toy"), "--prompt, --labels must be given"),
    ],
)
def test_bad_input_exits_2(ice, arguments, message):
    done = check(ice, *arguments)
    assert done.code == 2
    assert message in done.err
