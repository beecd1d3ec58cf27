import json
import re
from pathlib import Path

import pytest

from ice_eval.report.provenance import command
from ice_eval.results import RunFolder
from ice_eval.tasks import FileData, load_task


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "reviews.jsonl"
    texts = ["a gorgeous film", "an awful mess", "it is what it is"]
    path.write_text("".join(json.dumps({"text": t, "label": i % 2}) + "\n" for i, t in enumerate(texts)))
    return path


def test_a_new_task_of_a_table_keeps_labels_and_ids_out_of_the_prompt(ice, tmp_path):
    rows = [f"rev-{i},{text} film,{mood}" for i, (text, mood) in enumerate([("a fun", "good"), ("a dull", "bad")] * 3)]
    (tmp_path / "feedback.csv").write_text("\n".join(["review_id,comment,mood", *rows]) + "\n")
    assert ice("task", "new", "mine.yaml", "--data", "feedback.csv").code == 0
    task = load_task("mine.yaml")
    assert task.template.fields == ("comment",) and task.labels == ("bad", "good")
    assert [(each.id, each.gold) for each in task.examples(limit=2)] == [("rev-0", 1), ("rev-1", 0)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("text", "NAME=COLUMN is expected, such as text=comment"),
        ("id=number", "no column 'number' for id; it has text, label"),
    ],
)
def test_columns_that_make_no_sense_are_refused(ice, data, columns, message):
    done = check(ice, data, *FLAGS, "--columns", columns)
    assert done.code == 2 and message in " ".join(done.err.split())


def test_columns_belong_to_a_file(ice):
    done = check(ice, "demo", "--model", "toy", "--columns", "id=number")
    assert done.code == 2 and "--columns is about a file; give it with --data FILE" in done.err


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


def test_another_prompt_of_a_known_task_is_checked_by_name(ice, data):
    done = check(ice, "sst2/minimal/few-shot", "--data", data, "--model", "toy")
    assert done.code == 0
    assert "\n\n[a] [gorgeous] [film]\nSentiment:" in done.out


def test_a_known_task_is_checked_by_name(ice):
    done = check(ice, "demo", "--model", "toy", "--unit", "word")
    assert done.code == 0
    assert "accuracy on 50 examples" in done.out


def test_a_new_task_of_ones_own_data_can_be_checked_and_run_at_once(ice, data):
    made = ice("task", "new", "mine.yaml", "--data", data)
    assert made.code == 0 and "ice task check mine.yaml" in made.out
    content = Path("mine.yaml").read_text(encoding="utf-8")
    assert len([line for line in content.splitlines() if line and not line.startswith("#")]) <= 10
    content = content.replace('"0": " 0"', '"0": " negative"').replace('"1": " 1"', '"1": " positive"')
    Path("mine.yaml").write_text(content, encoding="utf-8")
    done = check(ice, "mine.yaml", "--model", "toy")
    assert done.code == 0
    assert "Text: [a] [gorgeous] [film]\nLabel:" in done.out
    assert "accuracy on 3 examples: 0 % (always the most frequent label: 67 %)" in done.out
    ran = ice("run", "--task", "mine.yaml", "--model", "toy", "--m", 2, "--operators", "delete", "--json")
    assert ran.code == 0
    assert {line["task"] for line in json.loads(ran.out)["configurations"]} == {"mine"}


def test_a_run_records_the_way_a_task_was_asked_and_its_language(ice, data):
    for name in ("sst2", "sst2/minimal", "sst2/standard"):
        assert ice("run", "--task", name, "--data", data, "--model", "toy", "--m", 2, "--operators", "delete").code == 0
    found = {path.name.rpartition("-")[0]: path for path in Path("ice-runs").iterdir()}
    assert set(found) == {"sst2-toy", "sst2-minimal-toy"}
    manifest = json.loads((found["sst2-minimal-toy"] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["task"] == manifest["identity"]["task"] == "sst2/minimal"
    assert (manifest["prompt"], manifest["language"]) == ("{text}\nSentiment:", "en")
    assert "--task sst2/minimal" in command(RunFolder.existing(found["sst2-minimal-toy"]).manifest())


def test_a_new_task_file_is_named_as_json_too(ice):
    made = ice("task", "new", "mine.yaml", "--json")
    assert json.loads(made.out) == {"file": "mine.yaml"} and Path("mine.yaml").is_file()


def test_a_new_task_without_data_is_a_task(ice):
    assert ice("task", "new", "mine.yaml").code == 0
    task = load_task("mine.yaml")
    assert (task.template.fields, task.labels) == (("text",), ("negative", "positive"))
    assert task.data == FileData(Path("reviews.jsonl"))
    lines = Path("mine.yaml").read_text(encoding="utf-8").partition("optional.\n")
    Path("mine.yaml").write_text(lines[0] + "\n" + re.sub("^# ", "", lines[2], flags=re.MULTILINE), encoding="utf-8")
    task = load_task("mine.yaml")  # what the comments offer is read too
    assert (task.language, task.explained, task.lexicon) == ("en", ("text",), {"good", "bad"})
    assert [shot.label for shot in task.shots] == ["negative"]
    assert task.asked("short").prompt == "{text}\nAnswer:"


def test_columns_become_fields_and_labels_are_quoted(ice):
    rows = [{"id": "1", "premise": "a", "the claim": "b", "claim": "c", "label": "no", "n": 3},
            {"id": "2", "premise": "a", "the claim": "b", "claim": "c", "label": 'y"es', "n": 4}]  # fmt: skip
    Path("in").mkdir()
    Path("in/pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    Path("out").mkdir()
    assert ice("task", "new", "out/pairs.yml", "--data", "in/pairs.jsonl").code == 0
    task = load_task("out/pairs.yml")
    assert task.template.fields == ("premise", "claim")
    assert task.label_words == {"no": " no", 'y"es': ' y"es'}
    assert [example.gold for example in task.examples()] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("there.yaml",), "there.yaml already exists and was not changed"),
        (("mine.txt",), "a task file ends in .yaml, as mine.yaml, not in '.txt'"),
        (("no/folder.yaml",), "no/folder.yaml cannot be written: No such file or directory"),
        (("mine.yaml", "--data", "none.csv"), "no such file: none.csv"),
        (
            ("mine.yaml", "--data", "numbers.jsonl"),
            "has no column of texts whose name a prompt can use; it has n",
        ),
    ],
)
def test_a_new_task_that_cannot_be_written_exits_2_and_writes_nothing(ice, arguments, message):
    Path("there.yaml").write_text("mine", encoding="utf-8")
    Path("numbers.jsonl").write_text('{"n": 3}', encoding="utf-8")
    done = ice("task", "new", *arguments)
    assert done.code == 2
    assert message in done.err
    assert Path("there.yaml").read_text(encoding="utf-8") == "mine"
    assert {path.name for path in Path().iterdir()} == {"there.yaml", "numbers.jsonl"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.jsonl", *FLAGS), "no such file"),
        (("none.yaml", "--model", "toy"), "the task file none.yaml cannot be read"),
        (("sst2/minmal", "--model", "toy"), "the task 'sst2' has no prompt 'minmal'; did you mean 'minimal'?"),
        (("finnish", "--model", "toy"), "this task has no data of its own"),
        (("dmeo", "--model", "toy"), "no task named 'dmeo'; did you mean 'demo'?"),
        (("nowhere.csv", "--model", "toy"), "--prompt, --labels must be given"),
    ],
)
def test_bad_input_exits_2(ice, arguments, message):
    done = check(ice, *arguments)
    assert done.code == 2
    assert message in done.err
