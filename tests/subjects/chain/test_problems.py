import json
from pathlib import Path

import pytest
from tests.subjects.chain.small_cases import response

from ice_eval.errors import DataError
from ice_eval.results.chains import _problems
from ice_eval.results.examples import InputRow
from ice_eval.settings import chain_fields
from ice_eval.subjects.chain import (
    FinalAnswer,
    LabelAnswer,
    NumberAnswer,
    Problem,
    ReasoningTask,
    Unreadable,
    given_steps,
    read_given,
)
from ice_eval.subjects.chain.problems import case_of, given_case, written_case
from ice_eval.subjects.chain.subject import ChainSubject

GOOD = {"question": "How many?", "steps": ["3 + 4 = 7", "Double it: 14"], "final": "14", "gold": 14}


@pytest.fixture
def written(tmp_path):
    def write(*records):
        path = tmp_path / "chains.jsonl"
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
        return path

    return write


def test_steps_are_taken_as_they_are(written):
    [record] = read_given(written(GOOD))
    assert [step.text for step in record.chain.steps] == GOOD["steps"]
    assert record.final == FinalAnswer("14", "whole")
    assert record.problem.gold == FinalAnswer("14", "whole")
    assert (record.problem.id, record.problem.question) == ("0", "How many?")


def test_a_response_is_split_and_may_state_the_answer_itself(written):
    [record] = read_given(written({"id": "a", "question": "How many?", "response": "Add. It is 7.\nAnswer: 7"}))
    assert [step.text for step in record.chain.steps] == ["Add.", "It is 7."]
    assert record.final == FinalAnswer("7", "marker")
    assert record.problem.gold is None
    assert record.problem.id == "a"


def test_choices_make_options_of_answers(written):
    [record] = read_given(written({**GOOD, "choices": ["one", "two"], "final": "B", "gold": "A"}))
    assert (record.final.value, record.problem.gold.value, record.problem.options) == ("B", "A", ("one", "two"))


def test_a_kind_may_be_named(written):
    kind = LabelAnswer({"negative": (), "positive": ()})
    [record] = read_given(written({**GOOD, "final": "Positive.", "gold": "negative"}), kind=kind)
    assert record.final.value == "positive"


def test_a_final_answer_that_cannot_be_read_stays_unreadable(written):
    [record] = read_given(written({**GOOD, "final": "perhaps"}))
    assert isinstance(record.final, Unreadable)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": None}, "'question' must be a text"),
        ({"question": " "}, "'question' must be a text"),
        ({"steps": None}, "either 'steps' or 'response' is expected"),
        ({"response": "Add."}, "either 'steps' or 'response' is expected"),
        ({"steps": None, "response": 3}, "'response' holds int, and text is expected"),
        ({"steps": []}, "'steps' must be a list of texts"),
        ({"steps": ["Add.", " "]}, "'steps' must be a list of texts"),
        ({"steps": "Add."}, "'steps' must be a list of texts"),
        ({"final": None}, "'final' is missing"),
        ({"final": True}, "'final' holds True"),
        ({"final": ["14"]}, "'final' holds \\['14'\\]"),
        ({"gold": ["many"]}, "'gold' holds \\['many'\\], and a text or a number is expected"),
        ({"choices": "one"}, "'choices' must be a list of texts"),
    ],
)
def test_a_fault_is_named_with_its_line(written, change, message):
    path = written(GOOD, "", {**GOOD, **change})
    with pytest.raises(DataError, match=f"chains.jsonl, line 3: {message}"):
        read_given(path)


def test_one_gold_answer_that_cannot_be_read_does_not_refuse_the_file(written):
    good, bad, without = read_given(written({**GOOD, "gold": 14}, {**GOOD, "gold": "many"}, {**GOOD, "gold": None}))
    assert good.problem.gold.value == "14" and good.problem.unread_gold is None
    assert (bad.problem.gold, bad.problem.unread_gold) == (None, "many")
    assert (without.problem.gold, without.problem.unread_gold) == (None, None)
    with pytest.raises(DataError, match="the answer 'many' cannot be read as a number, and no other answer can"):
        read_given(written({**GOOD, "gold": "many"}, {**GOOD, "gold": "lots"}))


@pytest.mark.parametrize(
    ("source", "steps"),
    [("auto", ["Aloud, two.", "Aloud, four."]), ("visible", ["Shown, two.", "Shown, four."]), ("thinking", None)],
)
def test_the_chain_is_the_thinking_or_the_visible_text(source, steps):
    text = "Shown, two.\nShown, four.\nAnswer: 9"
    problem = Problem("1", "How many?", (), None, NumberAnswer())
    tagged = response(f"<think>Aloud, two.\nAloud, four.</think>\n{text}")
    apart = response(text, reasoning="Aloud, two.\nAloud, four.")
    for reply in (tagged, apart):
        case = written_case(problem, reply, source=source)
        assert case.answer.value == "9"
        assert [step.text for step in case.steps] == (steps or ["Aloud, two.", "Aloud, four."])
    plain = written_case(problem, response(text), source=source)
    assert plain.skip_reason == (None if steps else "the reply holds no thinking")
    emptied = written_case(problem, response(f"<think>\n\n</think>\n{text}"))
    assert [step.text for step in emptied.steps] == ["Shown, two.", "Shown, four."]


def test_what_is_no_json_is_named_with_its_line(written):
    with pytest.raises(DataError, match="line 2: not JSON"):
        read_given(written(GOOD, "{"))


def test_ids_are_given_once(written):
    with pytest.raises(DataError, match="line 2: the id 'a' was given in line 1 already"):
        read_given(written({**GOOD, "id": "a"}, {**GOOD, "id": "a"}))


def test_an_id_that_is_null_is_none(written):
    assert [record.problem.id for record in read_given(written({**GOOD, "id": None}, {**GOOD, "id": None}))] == [
        "0",
        "1",
    ]


def test_a_file_that_is_not_there_or_empty_is_refused(tmp_path, written):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_given(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="holds no records"):
        read_given(written(""))


def test_the_records_of_the_page_are_read_and_take_part(written):
    page = (Path(__file__).parents[3] / "docs/chain-of-thought.md").read_text(encoding="utf-8")
    lines = page.partition("```json\n")[2].partition("\n```")[0].splitlines()
    records = read_given(written(*lines))
    assert [record.final.value for record in records] == ["9", "B"]
    assert [given_case(record).skip_reason for record in records] == [None, None]


def test_the_example_of_the_page_says_what_it_does():
    page = (Path(__file__).parents[3] / "docs/chain-measures.md").read_text(encoding="utf-8")
    names = {}
    pieces = page.partition("## Steps and answers")[2]
    exec(pieces.partition("```python\n")[2].partition("\n```")[0], names)
    assert len(names["chain"].steps) == 3
    assert names["chain"].answer.text == "#### 840"
    assert names["answer"] == FinalAnswer("840", "marker")


PROBLEM = Problem("p", "How many?", (), FinalAnswer("12", "whole"), NumberAnswer())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (response("One step.\nAnother step.\nAnswer: 12"), None),
        (response("One step.\nAnswer: 12"), "fewer than 2 steps"),
        (response("One step.\nSo 3 * 4 = 12.\nAnswer: 12"), "fewer than 2 steps besides those that state the answer"),
        (response("One.\nTwo.\nAnswer: none at all"), "the answer cannot be read"),
        (
            response("One.\nTwo.\nThree is 3 and", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (response("One.\nTwo.\nAnswer: 12\nAnd now", status="truncated"), None),
        (response("One.\nTwo.\nAnswer: 12\n", status="truncated"), None),
        (  # perhaps of 1250
            response("One.\nTwo.\nAnswer: 12", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (
            response("<think>One.\nTwo.\nThe answer is 12. But wait, is", status="truncated"),
            "the answer cannot be read: the reply was cut off",
        ),
        (response("<think>One.\nTwo.</think>\nThe answer is 12. But wait, is", status="truncated"), None),
        (response("", status="refusal"), "the answer cannot be read: the model declined"),
        (response("", status="error"), "the answer cannot be read: no reply arrived"),
        (response("12", reasoning="First this.\nThen that."), None),
    ],
)
def test_a_chain_takes_part_or_it_is_said_why_not(reply, reason):
    found = written_case(PROBLEM, reply)
    assert found.skip_reason == reason if reason is None else found.skip_reason.startswith(reason)
    if reason is None:
        assert found.is_right and len(found.steps) >= 2


def test_steps_that_state_the_answer_may_be_kept():
    chain = given_steps(["One step.", "So 3 * 4 = 12."])
    kept = case_of(PROBLEM, chain, FinalAnswer("12", "whole"), policy="keep")
    assert len(kept.steps) == 2 and kept.skip_reason is None


@pytest.mark.parametrize(
    ("reply", "first"),
    [
        ("**Answer: B**\nSaws have teeth.\nGlue has none.", True),
        ("The tool that cuts wood is a saw.\nSaws have teeth.\nAnswer: B", True),  # in the words of the question
        ("Saws have teeth.\nGlue has none.\nAnswer: B\nI hope this helps!", False),
    ],
)
def test_chains_that_state_their_answer_first_are_counted(written, reply, first):
    record = {"question": "Which tool cuts wood?", "choices": ["glue", "saw"], "response": reply}
    [given] = read_given(written(record))
    assert given_case(given).answer_first == first
    subject = ChainSubject(ReasoningTask(read=None), [given], fields=chain_fields({}))
    subject.assumed()
    [example] = map(subject.complete, subject.examples)
    counts = _problems([InputRow(example.id, example.fields)])
    assert (counts.n_answer_first, counts.n_asides) == (first, "hope" in reply)


def test_a_first_result_that_is_the_answer_is_no_answer_ahead_of_the_steps(written):
    [given] = read_given(written({"question": "How many?", "response": "3 + 4 = 7\nNone leave.\nAnswer: 7"}))
    assert not given_case(given).answer_first
