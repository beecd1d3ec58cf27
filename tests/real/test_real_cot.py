import json
from dataclasses import replace
from pathlib import Path

import pytest

from ice_eval.subjects.chain import (
    FinalAnswer,
    NumberAnswer,
    OptionAnswer,
    read_given,
    reasoning_steps,
    split_steps,
)
from ice_eval.subjects.chain.chat import ask_prompt, conclude_prompt
from ice_eval.tasks import FileData, named_task

pytestmark = pytest.mark.real

OPENAI, OPEN = "cot_gsm8k_openai_gpt3", "cot_realcritic_open_models"
GAP = {OPENAI: "\n", OPEN: "\n\n"}
"""Between the steps that a file gives: lines in one, paragraphs in the other."""
AGREED = json.loads((Path(__file__).parent / "cot_steps.json").read_text(encoding="utf-8"))
"""Forty responses, marked up from their raw text, not from what the splitter made of it: where each part begins."""

# Where the file's own final answer is not what its last step says: 6 for 6,200, 5 for 5.01, the last number of a
# sentence in place of its result, the article A of an option's text in place of its letter. Each last step was read.
MISTAKEN = {OPENAI: {179, 200, 206, 210, 362, 383, 393, 415, 438}, OPEN: {76, 100, 111, 113, 157, 240, 320, 327}}
EQUAL = {OPENAI: 490, OPEN: 380}
# Sentences that name several numbers without saying which one is the answer.
UNREADABLE = {OPENAI: {453}, OPEN: {100, 111, 157, 320}}


@pytest.fixture(scope="module")
def records(shared_data):
    def read(name):
        return [json.loads(line) for line in (shared_data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]

    return {name: read(name) for name in GAP}


def whole(record, name):
    return GAP[name].join(record["steps"])


@pytest.mark.parametrize(("name", "disputed"), [(OPENAI, []), (OPEN, ["26"])])
def test_responses_are_split_where_a_reader_splits_them(records, name, disputed):
    assert len(AGREED[name]) == 20
    found = {}
    for index in AGREED[name]:
        chain = split_steps(whole(records[name][int(index)], name))
        answer = chain.answer.start if chain.answer else None
        found[index] = {"steps": [step.start for step in chain.steps], "answer": answer}
    # 26: a bullet without a space behind it, in the middle of a line.
    assert [index for index in found if found[index] != AGREED[name][index]] == disputed


def test_lines_that_models_wrote_as_steps_are_steps(records):
    split = [[step.text for step in split_steps(whole(record, OPENAI)).steps] for record in records[OPENAI]]
    other = [index for index, steps in enumerate(split) if steps != records[OPENAI][index]["steps"]]
    assert other == [37, 239, 267, 331, 352, 361, 486, 490]  # a line of two sentences, or one that ends in a colon


@pytest.mark.parametrize("name", GAP)
def test_final_answers_are_read_or_found_unreadable(records, name):
    equal, unreadable, other = set(), set(), set()
    for index, record in enumerate(records[name]):
        kind = OptionAnswer(tuple(record["choices"])) if "choices" in record else NumberAnswer()
        reading, final = kind.read(whole(record, name)), kind.gold(record["final"])
        if not isinstance(reading, FinalAnswer):
            unreadable.add(index)
        elif kind.same(reading, final):
            equal.add(index)
        else:
            other.add(index)
    assert unreadable == UNREADABLE[name]
    assert other == MISTAKEN[name] - UNREADABLE[name]
    assert len(equal) == EQUAL[name]
    assert len(equal | other) >= 0.98 * len(records[name])


@pytest.mark.parametrize(("name", "n"), [(OPENAI, 500), (OPEN, 388)])
def test_the_files_are_read_as_given_responses(shared_data, name, n):
    given = read_given(shared_data / f"{name}.jsonl")
    assert len(given) == n
    assert all(isinstance(record.final, FinalAnswer) and record.problem.gold for record in given)
    for record in given:
        kept = reasoning_steps(record.chain, record.final, record.problem.kind, question=record.problem.question)
        assert set(kept) <= set(record.chain.steps)


@pytest.mark.parametrize(
    "name", ["ag_news/reasoning", "arc_challenge", "commonsense_qa", "gsm8k", "medqa", "sst2/reasoning"]
)
def test_every_record_becomes_a_problem_that_can_be_asked(shared_data, name):
    data = FileData(shared_data / f"{name.removesuffix('/reasoning')}.jsonl")
    problems = replace(named_task(name), data=data).problems()
    assert len(problems) == 500
    for problem in problems:
        assert problem.question in ask_prompt(problem)
        assert all(option in conclude_prompt(problem, ["One.", "Two."]) for option in problem.options)
        answer = problem.kind.read(f"One step. Another one.\nAnswer: {problem.gold.value}")
        assert answer == FinalAnswer(problem.gold.value, "marker")
