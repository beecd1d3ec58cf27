from dataclasses import replace

import pytest

from ice_eval.errors import ConfigError, DataError
from ice_eval.subjects.chain import FinalAnswer, Problem, ReasoningTask, split_steps
from ice_eval.subjects.chain.chat import ask_prompt, asked_turns, conclude_prompt, concluded_turns
from ice_eval.tasks import Records, load_task, named_task, tasks

CHOICES = ["glue", "saw"]
RECORDS = {
    "gsm8k": {"question": "What is 3 + 4?", "answer": "It is <<3+4=7>>7.\n#### 7"},
    "commonsense_qa": {"question": "What cuts?", "choices": CHOICES, "answer": "B"},
    "arc_challenge": {"question": "What cuts?", "choices": {"text": CHOICES, "label": ["1", "2"]}, "answerKey": "2"},
    "medqa": {"question": "What cuts?", "options": {"A": "glue", "B": "saw"}, "answer_idx": "B", "answer": "saw"},
    "sst2/reasoning": {"text": "a {charming} film", "label": "positive"},
    "ag_news/reasoning": {"text": "Shares fell.", "label": 2},
}
GOLD = {"gsm8k": "7", "sst2/reasoning": "positive", "ag_news/reasoning": "Business"}


def problem_of(name, **change):
    task = named_task(name)
    [problem] = with_records(name, [{**RECORDS[name], **change}]).problems()
    return task, problem


def with_records(name, rows):
    return replace(named_task(name), data=Records(rows))


def test_every_task_has_a_record_here():
    assert [name for name in tasks.names() if named_task(name).subject == "chain"] == sorted(RECORDS)


def test_a_task_about_chains_is_no_task_about_texts():
    with pytest.raises(ConfigError, match="'gsm8k' is about chains of thought, and a task about texts is needed here"):
        load_task("gsm8k")
    with pytest.raises(ConfigError, match="'gsm8k' has a single prompt"):
        named_task("gsm8k/minimal")


@pytest.mark.parametrize("name", RECORDS)
def test_records_become_problems(name):
    task, problem = problem_of(name)
    assert task.name == name and task.description and task.data.origin
    assert problem.id == "0"
    assert problem.gold == FinalAnswer(GOLD.get(name, "B"), "whole")


@pytest.mark.parametrize("name", RECORDS)
def test_the_prompt_asks_for_steps_and_the_follow_up_for_the_answer_alone(name):
    _, problem = problem_of(name)
    asked, concluded = ask_prompt(problem), conclude_prompt(problem, ["First step.", "Third step."])
    for prompt in (asked, concluded):
        assert prompt.startswith(problem.question)
        assert prompt.endswith(f"Answer: {problem.kind.form}")
        assert all(f"\n{letter}. {option}" in prompt for letter, option in zip("AB", problem.options, strict=False))
    assert "step by step" in asked
    assert "\nFirst step.\nThird step.\n" in concluded
    assert "no further working" in concluded


def test_no_steps_are_said_to_be_none():
    _, problem = problem_of("gsm8k")
    assert "\n(none)\n" in conclude_prompt(problem, [])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("gsm8k", {"question": None}, "record 0: the field 'question' is missing"),
        ("gsm8k", {"answer": "many"}, "the answer 'many' cannot be read as a number, and no other answer can"),
        ("commonsense_qa", {"choices": None}, "the field 'choices' holds None, and two options or more"),
        ("commonsense_qa", {"choices": ["glue"]}, "two options or more"),
        ("commonsense_qa", {"choices": ["glue", 3]}, "every option must be a text"),
        ("commonsense_qa", {"answer": "C"}, "the answer 'C' cannot be read as an option"),
        ("commonsense_qa", {"answer": None}, "the field 'answer' is missing"),
        ("sst2/reasoning", {"label": None}, "the field 'label' is missing"),
        ("sst2/reasoning", {"label": "mixed"}, "the answer 'mixed' cannot be read as a label"),
    ],
)
def test_a_record_of_another_shape_is_refused(name, change, message):
    with pytest.raises(DataError, match=message):
        problem_of(name, **change)


def test_one_gold_answer_that_cannot_be_read_is_kept_apart_and_the_others_count():
    rows = [RECORDS["gsm8k"], {**RECORDS["gsm8k"], "answer": "many"}]
    good, bad = with_records("gsm8k", rows).problems()
    assert good.gold is not None and good.unread_gold is None
    assert (bad.gold, bad.unread_gold) == (None, "many")


def test_a_task_without_data_asks_for_a_file():
    with pytest.raises(DataError, match="--data FILE.jsonl"):
        ReasoningTask(read=lambda row, identity: Problem(identity, "", (), None, None)).problems()


def test_ids_are_given_once_and_records_are_needed():
    with pytest.raises(DataError, match="two records have the id 'a'"):
        with_records("gsm8k", [{**RECORDS["gsm8k"], "id": "a"}] * 2).problems()
    with pytest.raises(DataError, match="holds no records"):
        with_records("gsm8k", []).problems()


def test_an_id_that_is_null_is_none():
    rows = [{**RECORDS["gsm8k"], "id": None}] * 2
    assert [p.id for p in with_records("gsm8k", rows).problems()] == ["0", "1"]


def test_the_first_records_are_taken():
    rows = [{**RECORDS["gsm8k"], "id": str(index)} for index in range(5)]
    assert [p.id for p in with_records("gsm8k", rows).problems(limit=2)] == ["0", "1"]


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'gsm8k'"):
        named_task("gsm8")


@pytest.mark.parametrize("name", RECORDS)
def test_worked_examples_are_written_as_replies_are_to_be(name):
    example = named_task(name).example
    (_, asked), (_, reply) = asked_turns(example)
    assert "step by step" in asked
    chain = split_steps(reply)
    assert [step.text for step in chain.steps] == list(example.steps)
    assert example.problem.kind.read(chain.answer.text) == FinalAnswer(example.answer, "marker")
    (_, shown), (_, concluded) = concluded_turns(example)
    assert "\n".join(example.steps) in shown
    assert example.problem.kind.read(concluded) == FinalAnswer(example.answer, "marker")
