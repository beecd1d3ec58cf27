import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ice_eval.subjects.chain import (
    FinalAnswer,
    NumberAnswer,
    OptionAnswer,
    Problem,
    read_given,
    reasoning_steps,
    split_steps,
)
from ice_eval.subjects.chain.chat import ask_prompt, conclude_prompt
from ice_eval.subjects.chain.problems import case_of
from ice_eval.tasks import FileData, named_task

pytestmark = pytest.mark.real

OPENAI, OPEN = "cot_gsm8k_openai_gpt3", "cot_realcritic_open_models"
GAP = {OPENAI: "\n", OPEN: "\n\n"}
"""Between the steps that a file gives: lines in one, paragraphs in the other."""
AGREED = json.loads((Path(__file__).parent / "cot_steps.json").read_text(encoding="utf-8"))
"""Forty responses, marked up from their raw text, not from what the splitter made of it: where each part begins.

`marked` holds 69 more of six model families, marked up before the splitter saw them: also the steps that give the
answer away (`states`), those on which a reader cannot decide (`unclear`), talk, and whether the answer comes first.
"""

# Where the file's own final answer is not what its last step says: 6 for 6,200, 5 for 5.01, the last number of a
# sentence in place of its result, the article A of an option's text in place of its letter. Each last step was read.
MISTAKEN = {OPENAI: {179, 200, 206, 210, 362, 383, 393, 415, 438}, OPEN: {76, 100, 111, 113, 157, 240, 320, 327}}
EQUAL = {OPENAI: 490, OPEN: 379}
# Sentences that name several numbers without saying which one is the answer.
UNREADABLE = {OPENAI: {453}, OPEN: {100, 111, 157, 297, 320}}


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


def marked(records, shared_data):
    """Yield every marked response with its mark-up, and the problem that it answers."""
    for name in GAP:
        for index, mark in AGREED["marked"][name].items():
            record = records[name][int(index)]
            yield whole(record, name), mark, record["question"], tuple(record.get("choices", ()))
    for mark in AGREED["marked"]["smollm2"]:
        lines = (shared_data / f"{mark['task']}.jsonl").read_text(encoding="utf-8").splitlines()
        yield mark["response"], mark, json.loads(lines[mark["index"]])["question"], tuple(mark["choices"])


def test_chains_of_six_families_are_split_as_marked_beforehand(records, shared_data):
    counts, families = Counter(), Counter()
    for response, mark, _, _ in marked(records, shared_data):
        chain = split_steps(response)
        answer = chain.answer.start if chain.answer else None
        expected = {*mark["steps"], *([] if mark["answer"] is None else [("answer", mark["answer"])])}
        found = {*(step.start for step in chain.steps), *([] if answer is None else [("answer", answer)])}
        talk = [place for place in mark.get("talk", ()) if all(not s.start <= place < s.end for s in chain.steps)]
        families[mark["family"]] += found == expected
        counts += Counter(chains=1, alike=found == expected, places=len(expected), missed=len(expected - found))
        counts += Counter(added=len(found - expected), answers=answer == mark["answer"], talk=len(talk))
        counts += Counter(lost=sum(aside.start in mark["steps"] for aside in chain.asides))
    # What is left: greetings that go on for sentences, letters of options inside a sentence, an option's letter alone
    # ahead of the reasons; all of it in chains of SmolLM2.
    assert counts == dict(chains=69, alike=65, places=537, missed=1, added=13, answers=68, talk=7)
    assert families == {"GPT-3": 10, "Qwen-Math": 12, "Llama-3.1": 12, "DeepSeek-Math": 5, "Qwen": 12, "SmolLM2": 14}


def test_steps_that_give_the_answer_away_are_found_and_few_others(records, shared_data):
    counts = Counter()
    for response, mark, question, choices in marked(records, shared_data):
        if mark["final"] is None:
            continue
        kind = OptionAnswer(choices) if choices else NumberAnswer()
        problem = Problem("", question, choices, None, kind)
        case = case_of(problem, split_steps(response), kind.gold(mark["final"]))
        kept = [place for place in mark["states"] if any(s.start <= place < s.end for s in case.steps)]
        dropped = {step.start for step in case.chain.steps} - {step.start for step in case.steps}
        others = {*mark["steps"]} - {*mark["states"], *mark["unclear"]}
        counts += Counter(states=len(mark["states"]), found=len(mark["states"]) - len(kept), others=len(others))
        counts += Counter(dropped=len(dropped & others), first=mark["answer_first"])
        counts += Counter(first_found=mark["answer_first"] and case.answer_first)
        counts += Counter(first_wrong=case.answer_first and not mark["answer_first"])
        counts += Counter(choices=bool(choices), clean=bool(choices) and not kept)
    assert counts == dict(
        states=62, found=61, others=359, dropped=1, first=3, first_found=1, choices=22, clean=21
    )  # fmt: skip


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
