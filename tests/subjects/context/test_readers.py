import json
from collections import Counter

import pytest

from ice_eval.errors import DataError
from ice_eval.subjects.context.answers import claims_in
from ice_eval.subjects.context.readers import read_answers, read_answers_file

QUESTION, TEXT = "What do cats do?", "Cats sleep [1]. Dogs bark [2]."
OWN = {"question": QUESTION, "passages": ["On cats.", "On dogs."], "answer": TEXT}
UUID = "5f589d5f-8509"


def read(row):
    [answer] = read_answers([(1, row)], "a.jsonl")
    return answer


@pytest.mark.parametrize(
    "row",
    [
        OWN,
        {**OWN, "passages": {"1": "On cats.", "2": "On dogs."}},
        {**OWN, "passages": [{"id": 1, "text": "On cats."}, {"title": "Dogs", "text": "On dogs."}]},
        {"question": QUESTION, "docs": [{"text": "On cats."}, {"id": "99", "text": "On dogs."}], "output": TEXT,
         "answer": "gold", "claims": ["gold"]},
        {"input": QUESTION, "context": [{"page_content": "On cats.", "metadata": {}}, "On dogs."], "answer": TEXT},
        {"query": QUESTION, "source_documents": ["On cats.", {"id": "x", "page_content": "On dogs."}], "result": TEXT},
        {"input": QUESTION, "context": [{"lc": 1, "kwargs": {"page_content": "On cats."}}, "On dogs."], "output": TEXT},
        {"query": QUESTION, "source_nodes": [{"node": {"id_": UUID, "text": "On cats."}}, {"text": "On dogs."}],
         "response": TEXT},
        {"user_input": QUESTION, "retrieved_contexts": ["On cats.", "On dogs."], "response": TEXT, "reference": "gold"},
        {"question": QUESTION, "contexts": ["On cats.", "On dogs."], "answer": TEXT, "ground_truth": "gold"},
    ],
)  # fmt: skip
def test_every_known_format_is_read_alike(row):
    answer = read(row)
    assert (answer.id, answer.question, answer.text, answer.problems) == ("1", QUESTION, TEXT, ())
    assert [(passage.name, passage.text) for passage in answer.passages] == [("1", "On cats."), ("2", "On dogs.")]
    assert [claim.cites for claim in answer.claims] == [(0,), (1,)]


def test_passages_are_named_as_the_answer_cites_them():
    nodes = [{"node": {"node_id": UUID, "text": "On cats."}}, {"id": "b", "text": "On dogs."}]
    cited = read({"query": QUESTION, "source_nodes": nodes, "response": f"Cats sleep [{UUID}]."})
    assert ([passage.name for passage in cited.passages], cited.claims[0].cites) == ([UUID, "b"], (0,))
    unwritten = read({"query": QUESTION, "source_nodes": nodes, "response": None})
    assert [passage.name for passage in unwritten.passages] == ["1", "2"]
    own = read({**OWN, "passages": [{"id": "a", "text": "On cats."}, "On dogs."], "answer": "Cats [a]. Dogs [2]."})
    assert [claim.cites for claim in own.claims] == [(0,), (1,)]


def test_titles_are_shown_where_alce_shows_them():
    passage = {"title": "Cats", "text": "They sleep."}
    assert read({"question": QUESTION, "docs": [passage]}).passages[0].text == "Cats\nThey sleep."
    assert read({**OWN, "passages": [passage]}).passages[0].text == "They sleep."


def test_scores_of_the_retrieval_are_kept():
    passages = [{"text": "a", "score": 0}, {"text": "b", "score": "1.5"}, {"text": "c", "score": None}, "d"]
    assert [passage.score for passage in read({**OWN, "passages": passages}).passages] == [0, 1.5, None, None]
    documents = [{"page_content": "a", "metadata": {"score": 0.5}}]
    assert read({"input": QUESTION, "context": documents}).passages[0].score == 0.5
    nodes = [{"node": {"id_": UUID, "text": "a", "metadata": {"page": 1}}, "score": 0.25}]
    assert read({"query": QUESTION, "source_nodes": nodes}).passages[0].score == 0.25


@pytest.mark.parametrize(
    ("changes", "text", "problems"),
    [
        ({"answer": None}, None, ()),
        ({"answer": " "}, " ", ("the answer is empty",)),
        ({"answer": "[1]"}, "[1]", ("[1] is before the first claim",)),
        ({"answer": "---"}, "---", ("the answer holds no claim",)),
        ({"passages": []}, TEXT, ("there is no passage",)),
        ({"passages": [], "answer": None}, None, ("there is no passage",)),
    ],
)
def test_answers_without_claims_are_kept(changes, text, problems):
    answer = read({**OWN, **changes})
    assert (answer.text, answer.claims, answer.problems) == (text, (), problems)


def test_an_answer_of_alce_without_output_is_to_be_written():
    answer = read({"question": QUESTION, "docs": [{"text": "On cats."}], "answer": "gold", "claims": ["gold"]})
    assert (answer.text, answer.claims, answer.problems) == (None, (), ())


def test_given_claims_are_read_with_their_notes():
    claims = [
        {"text": " Cats sleep [1].", "cites": [1, "2"], "support": "Complete", "n": 3, "by": None},
        {"text": "Cows moo.", "cites": ["9"]},
    ]
    answer = read({**OWN, "claims": claims})
    assert [(claim.cites, claim.notes) for claim in answer.claims] == [((0, 1), {"support": "Complete"})]
    assert answer.problems == ("claim 2 is not found in the answer, in this order: 'Cows moo.'",)
    alone = read({**OWN, "answer": None, "claims": claims})
    assert (alone.text, len(alone.claims)) == ("Cats sleep [1]. Cows moo.", 2)
    assert alone.problems == ("claim 2 cites [9], and there is no such passage",)


def test_an_answer_has_its_own_id_or_its_line():
    rows = [{**OWN, "id": "a"}, OWN, {**OWN, "id": 7}]
    assert [answer.id for answer in read_answers(enumerate(rows, start=1), "a.jsonl")] == ["a", "2", "7"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a", "label": 1}, r'a.jsonl, line 2: no passages among the keys text, label; "question", "passages" '
                                    r'and "answer" are expected, or a row of ALCE'),
        ({}, r"no passages among the keys \(none\)"),
        ({"passages": ["a"], "answer": "b"}, "no question among the keys passages, answer"),
        ({**OWN, "question": ["a"]}, "line 2: the question is of type list; a text is expected"),
        ({**OWN, "question": " "}, "the question is empty; a text"),
        ({**OWN, "question": "\ud800"}, "the question holds half of a character"),
        ({**OWN, "answer": ["a"]}, "the answer is of type list; a text"),
        ({**OWN, "passages": "a"}, '"passages" is of type str; a list of passages is expected, or an object of id and'),
        ({**OWN, "passages": ["a", 3]}, 'passage 2 is of type int; a text or an object with "text" is expected'),
        ({**OWN, "passages": ["a", " "]}, "the text of passage 2 is empty"),
        ({**OWN, "passages": [{"id": "a"}]}, "the text of passage 1 is missing"),
        ({**OWN, "passages": [{"id": " ", "text": "a"}]}, "the id of passage 1 is empty"),
        ({**OWN, "passages": [{"text": "a", "id": "2"}, "b"]}, "two passages are named '2'; names must be unique"),
        ({**OWN, "passages": [{"text": "a", "score": "high"}]}, "the score of passage 1 is 'high'; a finite number is"),
        ({**OWN, "passages": [{"text": "a", "score": [1]}]}, r"the score of passage 1 is \[1\]"),
        ({**OWN, "claims": "a"}, '"claims" is of type str; a list is expected'),
        ({**OWN, "claims": ["a"]}, """claim 1 is 'a'; {"text": "…", "cites": .* is expected. Leave "claims" out"""),
        ({**OWN, "claims": [{"text": "a"}]}, "claim 1 is {'text': 'a'}; "),
        ({**OWN, "id": "a"}, "line 2: a second answer with the id 'a'; give each its own id"),
        ([1], "line 2: the row is of type list; an object is expected"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_read_are_errors(row, message):
    with pytest.raises(DataError, match=message):
        read_answers([(1, {**OWN, "id": "a"}), (2, row)], "a.jsonl")


def test_files_of_lines_and_of_lists_are_read(tmp_path):
    lines, listed, alce = tmp_path / "a.jsonl", tmp_path / "b.json", tmp_path / "c.json"
    lines.write_text(f"\ufeff{json.dumps(OWN)}\n\n{json.dumps(OWN)}\n", encoding="utf-8")
    listed.write_text(json.dumps([OWN, OWN]), encoding="utf-8")
    alce.write_text(json.dumps({"args": {}, "data": [{**OWN, "id": "a"}]}), encoding="utf-8")
    assert [answer.id for answer in read_answers_file(lines)] == ["1", "3"]
    assert [answer.id for answer in read_answers_file(listed)] == ["1", "2"]
    assert [answer.id for answer in read_answers_file(alce)] == ["a"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv is neither .jsonl nor .json"),
        ("a.json", b"\xff", r"a.json is not UTF-8 text \(invalid start byte at byte 0\)"),
        ("a.json", b"[", r"a.json is not JSON \(Expecting value"),
        ("a.json", b'"a"', 'a.json is of type str; a list of answers is expected, or {"data"'),
        ("a.json", b'{"results": []}', "a.json is of type dict; a list of answers"),
        ("a.json", b"[1]", "a.json, entry 1: the row is of type int"),
        ("a.jsonl", b"\n[]", "a.jsonl, line 2: a JSON object is expected"),
        ("a.jsonl", b"\n{}", "a.jsonl, line 2: no passages among"),
        ("a.jsonl", None, "a.jsonl cannot be read: No such file"),
    ],
)
def test_files_that_cannot_be_read_are_errors(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_answers_file(tmp_path / name)


@pytest.mark.real
def test_every_claim_of_expertqa_is_found(shared_data):
    answers = read_answers_file(shared_data / "expertqa.jsonl")
    assert (len(answers), sum(len(answer.claims) for answer in answers)) == (79, 593)
    assert [problem for answer in answers for problem in answer.problems] == []
    support = Counter(claim.notes.get("support") for answer in answers for claim in answer.claims)
    assert (support["Complete"], support[None]) == (372, 1)


@pytest.mark.real
def test_citations_in_the_text_of_expertqa_are_those_that_people_copied(shared_data):
    n_equal = n_agreed = 0
    for answer in read_answers_file(shared_data / "expertqa.jsonl"):
        marked = claims_in(answer.text, [passage.name for passage in answer.passages]).claims
        given = {answer.text[claim.start : claim.end]: claim.cites for claim in answer.claims}
        for claim in marked:
            text = answer.text[claim.start : claim.end]
            n_equal += text in given
            n_agreed += text in given and claim.cites == given[text]
    assert n_equal >= 580 and n_agreed >= 0.95 * n_equal
