"""Data whose columns have names of their own."""

import csv
import json

import pytest

import ice_eval as ice
from ice_eval.bench import load_grid
from ice_eval.errors import DataError
from ice_eval.records import Example
from ice_eval.tasks import FileData, Records, adhoc_task, data_notes, with_file
from ice_eval.tasks._file import columns_of

LABELS = ("negative", "positive")
COLUMNS = {"id": "review_id", "label": "sentiment", "text": "comment"}
ROWS = [
    {"review_id": f"rev-{number:03}", "comment": text, "sentiment": LABELS[number % 2], "stars": str(number % 3)}
    for number, text in enumerate(["a dull plot", "fun to the end", "far too long", "a warm cast", "no", "yes please"])
]


@pytest.fixture
def file(tmp_path):
    """Rows -> the path of a table with them."""

    def write(rows):
        path = tmp_path / "feedback.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            table = csv.DictWriter(stream, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return path

    return write


def test_columns_of_other_names_are_read_as_ours(file):
    first, *_ = FileData(file(ROWS), COLUMNS).load(("text",), LABELS)
    assert (first.id, first.fields, first.gold) == ("rev-000", {"text": "a dull plot"}, 0)


def test_a_blank_cell_of_a_renamed_label_is_no_label(file):
    rows = [ROWS[0] | {"sentiment": ""}, ROWS[1]]
    assert [each.gold for each in FileData(file(rows), COLUMNS).load(("text",), LABELS)] == [None, 1]


def test_a_column_that_is_not_there_is_named_with_those_that_are(file):
    data = FileData(file(ROWS), {"id": "number"})
    with pytest.raises(DataError, match="no column 'number' for id; it has review_id, comment, sentiment, stars"):
        data.load(("comment",), LABELS)


def test_an_optional_column_may_be_missing_in_later_lines(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "a", "mood": "positive"}\n{"text": "b"}\n')
    assert [each.gold for each in FileData(path, {"label": "mood"}).load(("text",), LABELS)] == [1, None]
    with pytest.raises(DataError, match="example 1: no column 'mood' for tone"):
        FileData(path, {"tone": "mood"}).load(("text",), LABELS)


def test_labels_and_ids_are_told_from_texts_by_their_values():
    found = columns_of(ROWS)
    assert found == (("comment",), "sentiment", "review_id")
    assert found.renamed == {"id": "review_id", "label": "sentiment"}


@pytest.mark.parametrize(
    ("rows", "texts", "label", "identity"),
    [
        ([{"text": f"a {i}", "label": i, "id": i, "x": "ab"[i % 2]} for i in range(9)], ("text", "x"), "label", "id"),
        ([{"text": f"a {i}", "class": str(i % 2)} for i in range(9)], ("text",), "class", None),
        ([{"text": f"好{c}影片"} for c in "看的电"], ("text",), None, None),
        ([{"text": word} for word in ("fine", "dull", "warm")], ("text",), None, None),
        ([{"a": f"w {i}", "b": "xy"[i % 2], "c": "uv"[i % 2]} for i in range(8)], ("a",), None, None),
        ([{"text": f"w {i}", "label": None if i else "x"} for i in range(3)], ("text",), "label", None),
        ([{"mood": "xy"[i % 2], "text": "a film"[: 5 + i % 2]} for i in range(8)], ("text",), "mood", None),
        ([], (), None, None),
    ],
    ids=[
        "ours come first", "numbers", "no spaces", "single words", "two that may be it", "some labels",
        "texts given twice", "nothing",
    ],
)  # fmt: skip
def test_what_columns_hold(rows, texts, label, identity):
    assert columns_of(rows) == (texts, label, identity)


def task_of(data, prompt):
    return adhoc_task(data, prompt=prompt, labels=LABELS)


def test_a_prompt_that_holds_the_label_is_noted():
    task = task_of(Records(ROWS), "{comment} {sentiment}")
    [note] = data_notes(task, task.examples())
    assert note.startswith("the field 'sentiment' of the prompt holds the name of a label in every example")


def test_a_label_under_another_name_is_noted(file):
    task = task_of(FileData(file(ROWS)), "{comment}")
    [note] = data_notes(task, task.examples())
    assert "'sentiment' holds names of labels: --columns label=sentiment makes it the gold label" in note


@pytest.mark.parametrize("columns", [{"label": "sentiment"}, {"label": "sentiment", "text": "comment"}])
def test_a_label_that_is_read_is_no_note(file, columns):
    task = task_of(FileData(file(ROWS), columns), "{comment}")
    assert data_notes(task, task.examples()) == []


def test_one_text_that_is_a_label_is_no_note():
    fields = [{"text": "positive"}, {"text": "a film"}]
    task = task_of(Records(fields), "{text}")
    assert data_notes(task, [Example(str(i), each) for i, each in enumerate(fields)]) == []


def test_a_rationale_under_another_name_may_be_missing_in_some_lines(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "a film", "marks": [[0, 1]]}\n{"text": "b"}\n')
    first, second = FileData(path, {"rationale": "marks"}).load(("text",), LABELS)
    assert (len(first.human), len(second.human)) == (1, 0)


def test_another_file_in_place_of_the_data_has_the_same_columns(file, tmp_path):
    other = file(ROWS).rename(tmp_path / "other.csv")
    task = task_of(FileData(file(ROWS), COLUMNS), "{text}")
    assert with_file(task, other).examples()[0].id == "rev-000"
    run = ice.evaluate("toy", task, data=other, attributions="random", operators="delete", m=3)
    assert set(run.examples()["example_id"]) == {row["review_id"] for row in ROWS}


def test_files_with_columns_can_be_told_apart_in_sets():
    assert len({FileData("a.csv"), FileData("a.csv", COLUMNS)}) == 2


def test_a_grid_runs_again_where_a_column_stands_for_something_else(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"one": "a good film here", "two": "an awful mess of it"}\n' * 1)
    grid = {"models": ["toy"], "tasks": ["mine.yaml"], "attributions": ["random"], "operators": ["delete"], "m": 3}
    names = []
    for column in ("one", "two"):
        task = f"data: data.jsonl\ncolumns: {{text: {column}}}\nprompt: 'R: {{text}}'\nlabels: [negative, positive]\n"
        (tmp_path / "mine.yaml").write_text(task)
        (tmp_path / "grid.yaml").write_text(json.dumps(grid))
        [run] = load_grid(tmp_path / "grid.yaml").runs()
        names.append(run.name)
    assert names[0] != names[1]
