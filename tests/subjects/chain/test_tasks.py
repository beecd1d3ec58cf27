import pytest

from ice_eval.errors import ConfigError, DataError
from ice_eval.subjects.chain import CotTask, FinalAnswer, Problem, ask_prompt, conclude_prompt, cot_tasks, split_steps
from ice_eval.subjects.chain.rows import asked_turns, concluded_turns
from ice_eval.tasks import Records

CHOICES = ["glue", "saw"]
RECORDS = {
    "gsm8k": {"question": "What is 3 + 4?", "answer": "It is <<3+4=7>>7.\n#### 7"},
    "commonsense_qa": {"question": "What cuts?", "choices": CHOICES, "answer": "B"},
    "arc_challenge": {"question": "What cuts?", "choices": {"text": CHOICES, "label": ["1", "2"]}, "answerKey": "2"},
    "medqa": {"question": "What cuts?", "options": {"A": "glue", "B": "saw"}, "answer_idx": "B", "answer": "saw"},
    "sst2": {"text": "a {charming} film", "label": "positive"},
    "ag_news": {"text": "Shares fell.", "label": 2},
}
GOLD = {"gsm8k": "7", "sst2": "positive", "ag_news": "Business"}


def problem_of(name, **change):
    task = cot_tasks.get(name)()
    [problem] = task.problems(Records([{**RECORDS[name], **change}]))
    return task, problem


def test_every_task_has_a_record_here():
    assert cot_tasks.names() == sorted(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_records_become_problems(name):
    task, problem = problem_of(name)
    assert task.name == name and task.description and task.hub
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
        ("gsm8k", {"answer": "many"}, "record 0: the answer 'many' cannot be read as a number"),
        ("commonsense_qa", {"choices": None}, "the field 'choices' holds None, and two options or more"),
        ("commonsense_qa", {"choices": ["glue"]}, "two options or more"),
        ("commonsense_qa", {"choices": ["glue", 3]}, "every option must be a text"),
        ("commonsense_qa", {"answer": "C"}, "the answer 'C' cannot be read as an option"),
        ("commonsense_qa", {"answer": None}, "the field 'answer' is missing"),
        ("sst2", {"label": None}, "the field 'label' is missing"),
        ("sst2", {"label": "mixed"}, "the answer 'mixed' cannot be read as a label"),
    ],
)
def test_a_record_of_another_shape_is_refused(name, change, message):
    with pytest.raises(DataError, match=message):
        problem_of(name, **change)


def test_a_task_without_data_asks_for_a_file():
    with pytest.raises(DataError, match="--data FILE.jsonl"):
        CotTask(read=lambda row, identity: Problem(identity, "", (), None, None)).problems()


def test_ids_are_given_once_and_records_are_needed():
    task = cot_tasks.get("gsm8k")()
    with pytest.raises(DataError, match="two records have the id 'a'"):
        task.problems(Records([{**RECORDS["gsm8k"], "id": "a"}] * 2))
    with pytest.raises(DataError, match="holds no records"):
        task.problems(Records([]))


def test_an_id_that_is_null_is_none():
    rows = [{**RECORDS["gsm8k"], "id": None}] * 2
    assert [p.id for p in cot_tasks.get("gsm8k")().problems(Records(rows))] == ["0", "1"]


def test_the_first_records_are_taken():
    rows = [{**RECORDS["gsm8k"], "id": str(index)} for index in range(5)]
    assert [p.id for p in cot_tasks.get("gsm8k")().problems(Records(rows), limit=2)] == ["0", "1"]


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'gsm8k'"):
        cot_tasks.get("gsm8")


@pytest.mark.parametrize("name", RECORDS)
def test_worked_examples_are_written_as_replies_are_to_be(name):
    example = cot_tasks.get(name)().example
    (_, asked), (_, reply) = asked_turns(example)
    assert "step by step" in asked
    chain = split_steps(reply)
    assert [step.text for step in chain.steps] == list(example.steps)
    assert example.problem.kind.read(chain.answer.text) == FinalAnswer(example.answer, "marker")
    (_, shown), (_, concluded) = concluded_turns(example)
    assert "\n".join(example.steps) in shown
    assert example.problem.kind.read(concluded) == FinalAnswer(example.answer, "marker")
