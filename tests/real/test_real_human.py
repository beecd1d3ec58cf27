"""Human rationales of real data sets are read, and become the plausibility of a real model's attributions."""

import pytest

import ice_eval
from ice_eval.analysis.measures.explanations import RATIONALES, RELATION, VECTORS, PlausibilityMeasure
from ice_eval.tasks import FileData, Task

SETS = {
    "esnli": ("{premise} {hypothesis}", ["entailment", "neutral", "contradiction"]),
    "multirc": ("{passage} {question} {answer}", ["false", "true"]),
    "boolq_rationales": ("{passage} {question}", ["no", "yes"]),
}


def task_of(shared_data, name):
    prompt, labels = SETS[name]
    data = FileData(shared_data / f"{name}.jsonl")
    return Task(data=data, prompt=prompt, label_words={label: f" {label}" for label in labels}, name=name)


@pytest.mark.real
@pytest.mark.parametrize("name", SETS)
def test_every_example_has_marks_that_are_words_of_its_text(shared_data, name):
    examples = task_of(shared_data, name).examples()
    assert all(example.human for example in examples)
    marked = [example.fields[span.field][span.start : span.end] for example in examples for span in example.human]
    assert all(text and text == text.strip() for text in marked)


@pytest.mark.real
def test_highlights_of_esnli_are_the_words_that_they_count(shared_data):
    task = task_of(shared_data, "esnli")
    for example, row in zip(task.examples(), task.data.rows(), strict=True):
        words = [row[name].split()[place] for name in ("premise", "hypothesis") for place in row[f"highlights_{name}"]]
        assert [example.fields[span.field][span.start : span.end] for span in example.human] == words


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*taken in order")
@pytest.mark.parametrize("name", ["multirc", "boolq_rationales"])
def test_an_encoder_gets_the_plausibility_table_end_to_end(shared_data, name):
    model = str(shared_data.parent / "models" / "minilm-sentiment")
    attributions = ["attention", "random"]
    run = ice_eval.evaluate(
        model, task_of(shared_data, name), attributions=attributions, operators=["delete"], n=8, m=5
    )
    found = PlausibilityMeasure().of(run.folder)
    lines = {part.title: part.lines for part in found.parts}
    assert [line["n"] for line in lines[VECTORS]] == [8, 8]
    assert len(lines[RATIONALES]) == 2 * 3
    assert len(lines[RELATION]) == 2 * 3
    random = next(line for line in lines[VECTORS] if line["attribution"] == "random")
    assert random["above_chance"] == pytest.approx(0, abs=0.05)
