"""Human rationales of real data sets, written as ERASER releases them, are the `human` rationales of the data.

A release has documents, one per text, and annotations whose evidences are spans of the words between spaces.
"""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import ice_eval
from ice_eval.attributions.controls import Human
from ice_eval.encoding import encode
from ice_eval.interop import align, of_examples
from ice_eval.models.toy import Toy
from ice_eval.tasks import FileData, Task

LABELS = {"yes": " yes", "no": " no", "true": " true", "false": " false", "entailment": " a", "neutral": " b",
          "contradiction": " c"}  # fmt: skip
PROMPTS = {
    "boolq_rationales": "{passage}\n{question}",
    "multirc": "{passage}\n{question}\n{answer}",
    "esnli": "{premise}\n{hypothesis}",
}
pytestmark = pytest.mark.real


def words(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def marked_words(row):
    """(field, first word, end) of every human span."""
    if "rationale" in row:
        places = words(row["passage"])
        for start, end in row["rationale"]:
            inside = [index for index, (first, last) in enumerate(places) if first < end and last > start]
            yield "passage", inside[0], inside[-1] + 1
    for field in ("premise", "hypothesis"):
        for index in row.get(f"highlights_{field}", ()):
            yield field, index, index + 1


def spans(row):
    """The same in characters, as our data have them."""
    for field, first, end in marked_words(row):
        places = words(row[field])
        yield [field, places[first][0], places[end - 1][1]]


def docid(row, field):
    """A document is named after its text; those of a pair end in their side."""
    return row["id"].partition(":")[0] if field == "passage" else f"{row['id']}_{field}"


def evidences(row):
    """In groups of one, as a release has them, with the words joined by single spaces."""
    for field, first, end in marked_words(row):
        text = " ".join(row[field].split()[first:end])
        place = {"start_token": first, "end_token": end, "start_sentence": 0, "end_sentence": 1}
        yield [{"docid": docid(row, field), "text": text, **place}]


def annotation(row):
    query = " || ".join(row[field] for field in ("question", "answer") if field in row)
    return {
        "annotation_id": row["id"],
        "classification": row["label"],
        "docids": None,
        "evidences": list(evidences(row)),
        "query": query,
        "query_type": None,
    }


def prediction(row, kind):
    """What a model would hand in: a number per word or spans, for each document."""
    found = []
    for field in dict.fromkeys(field for field, *_ in marked_words(row)):
        places = [(first, end) for name, first, end in marked_words(row) if name == field]
        soft = np.zeros(len(row[field].split()))
        for first, end in places:
            soft[first:end] = 1
        hard = [{"start_token": first, "end_token": end} for first, end in places]
        chosen = {"soft_rationale_predictions": soft.tolist()} if kind == "soft" else {
            "hard_rationale_predictions": hard
        }  # fmt: skip
        found.append({"docid": docid(row, field), **chosen})
    return {"annotation_id": row["id"], "rationales": found, "classification": row["label"]}


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=PROMPTS)
def data(request, shared_data, tmp_path_factory):
    """Rows with marks, and a task of them that knows the marks as `rationale`."""
    lines = (shared_data / f"{request.param}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if any(marked_words(row))][:15]
    keep = ("id", "passage", "question", "answer", "premise", "hypothesis", "label")
    ours = [{**{name: row[name] for name in keep if name in row}, "rationale": list(spans(row))} for row in rows]
    path = written(tmp_path_factory.mktemp(request.param) / "data.jsonl", ours)
    labels = {row["label"]: LABELS[row["label"]] for row in rows}
    return rows, Task(data=FileData(path), prompt=PROMPTS[request.param], label_words=labels)


def compared(task, path):
    """Of every example what its explanation in the file comes to, and what the built-in `human` says of it."""
    examples = task.examples()
    given = of_examples(path, examples, name="eraser").by_id
    assert len(given) == len(examples)
    for example in examples:
        item = encode(Toy().codec, task, example)
        lens = SimpleNamespace(human=lambda _, marks=example.human: marks)
        [human] = Human().attribute(lens, [item])
        yield align(given[example.id], item, example.fields).values, human


def test_annotations_say_what_the_data_say(data, tmp_path):
    rows, task = data
    for theirs, human in compared(task, written(tmp_path / "val.jsonl", map(annotation, rows))):
        assert ((theirs > 0) == (human > 0)).all()


def test_hard_predictions_mark_what_they_name(data, tmp_path):
    rows, task = data
    for theirs, human in compared(task, written(tmp_path / "hard.jsonl", [prediction(row, "hard") for row in rows])):
        assert ((theirs > 0) == (human > 0)).all()


def test_soft_predictions_are_numbers_of_words(data, tmp_path):
    rows, task = data
    for theirs, human in compared(task, written(tmp_path / "soft.jsonl", [prediction(row, "soft") for row in rows])):
        assert theirs.tolist() == (human > 0).astype(float).tolist()  # every token has the number of its word


def test_a_run_takes_the_same_sets(data, tmp_path):
    rows, task = data
    path = written(tmp_path / "val.jsonl", map(annotation, rows))
    given = {"human": None, "eraser": path}
    run = ice_eval.evaluate("toy", task, attributions=given, operators=["delete"], n=10, m=5)
    examples = run.examples().set_index(["attribution", "example_id"])
    assert len(examples.loc["eraser"].rationale.dropna()) > 0
    assert examples.loc["eraser"].rationale.to_dict() == examples.loc["human"].rationale.to_dict()
