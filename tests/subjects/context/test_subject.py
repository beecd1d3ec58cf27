"""Cited answers through the whole engine, with a reader whose scores are known by hand."""

import json
import math
import re

import numpy as np
import pytest
from tests.subjects.context.conftest import TRUTH

import ice_eval as ice
from ice_eval.errors import CapabilityError, ConfigError, DataError
from ice_eval.models.toy import KNOWN, READ, UNREAD, ToyReader
from ice_eval.records import SCORED
from ice_eval.results import rescore
from ice_eval.settings import run_config
from ice_eval.subjects.context.subject import ContextSubject
from ice_eval.subjects.context.tasks import CitationTask
from ice_eval.tasks import Records


def task_of(rows, **changes):
    return CitationTask(data=Records(rows), name="citations", **changes)


def run(rows, **settings):
    return ice.evaluate("toy-reader", task_of(rows), **{"operators": "delete", "attributions": "cited", **settings})


def encoded(rows, unit="passage", **changes):
    task = task_of(rows, **changes)
    subject, model = ContextSubject(task, task.answers()), ToyReader()
    config = run_config({"unit": unit}, "context")
    return model, [subject.encode(model, config, each, reserve=0) for each in subject.examples]


# --------------------------------------------------------------------------------------------------------- known truth


def test_every_claim_gets_the_word_of_how_it_was_made(answers):
    found = run(answers, operators=["delete", "infill"]).folder.summary().citations
    assert [claim.word for claim in found.claims] == list(TRUTH) * len(answers)
    assert {line.word: line.n for line in found.words} == {
        "faithful": 12, "uncited but used": 6, "post-rationalised": 6, "parametric": 6, "undetermined": 0
    }  # fmt: skip
    [line] = [each for each in found.carried if (each.attribution, each.operator) == ("cited", "delete")]
    assert line.n == 24 and line.carried == 0.5  # parametric claims are left out


def test_citations_that_carry_a_claim_are_never_called_post_rationalised(answers):
    row = {**answers[0], "answer": answers[0]["answer"].split(". ")[0] + "."}
    row["passages"] = [
        *row["passages"][:23],
        {"id": "24", "text": row["passages"][3]["text"]},
    ]
    [claim] = run([row]).folder.summary().citations.claims
    assert claim.preserved == 1.0 and claim.p_value == pytest.approx(2 / 24)
    assert (claim.word, claim.reason) == ("undetermined", "its citations carry it, but other passages do as well")


def test_citations_that_carry_next_to_nothing_are_never_called_faithful(answers):
    passages = [dict(passage) for passage in answers[0]["passages"]]
    words = passages[3]["text"].split(".")[0].split()
    passages[9]["text"] = f"{words[1]} {passages[9]['text']}"  # it shares one word with the claim
    row = {**answers[0], "passages": passages, "answer": f"{' '.join(words)} [10]."}
    [claim] = run([row]).folder.summary().citations.claims
    assert claim.win_rate > 0.9 and claim.word == "uncited but used"


def test_passages_that_hardly_change_a_claim_make_it_parametric_by_the_whole_claim(answers, monkeypatch):
    monkeypatch.setattr("ice_eval.models.toy.UNREAD", READ / 1.5)  # six words: a factor of 11 in all, 1.5 for each
    first, *_ = run(answers[:1]).folder.summary().citations.claims
    assert first.word == "faithful"
    monkeypatch.setattr("ice_eval.models.toy.UNREAD", READ / 1.05)  # 1.5 in all, at most
    assert {claim.word for claim in run(answers[:1]).folder.summary().citations.claims} == {"parametric"}
    monkeypatch.setattr("ice_eval.models.toy.UNREAD", 0.99)  # what was read is less probable
    first, *_ = run(answers[:1]).folder.summary().citations.claims
    assert (first.word, first.reason) == ("undetermined", "the passages make it less probable")


def test_planted_citations_win_always_and_swapped_ones_do_not(answers):
    planted = [{**row, "answer": row["answer"].split(". ")[0] + "."} for row in answers]
    assert run(planted).folder.summary().configurations[0].win_rate == 1.0
    swapped = [{**row, "answer": row["answer"].replace("[4]", "[22]")} for row in planted]
    found = run(swapped).folder.summary()
    assert found.configurations[0].win_rate < 0.5  # it ties with all others but the true one
    assert {claim.word for claim in found.citations.claims} == {"uncited but used"}


def test_scores_of_a_claim_are_those_worked_out_by_hand(answers):
    first, *_ = run(answers[:1]).folder.summary().citations.claims
    empty = (6 * math.log(UNREAD) + math.log(READ)) / 7  # six words, and the full stop, which the prompt holds too
    assert first.n_tokens == 7 and first.cites == (3,)
    assert first.score_full == pytest.approx(math.log(READ)) and first.score_empty == pytest.approx(empty)
    assert first.score_kept == first.score_full and first.score_removed == pytest.approx(empty)
    assert first.preserved == 1.0 and first.p_value == pytest.approx(1 / 24) and first.n_sets == 23


def test_known_words_are_as_probable_without_passages(answers):
    *_, last = run(answers[:1]).folder.summary().citations.claims
    assert last.score_full == last.score_empty == pytest.approx((6 * math.log(KNOWN) + math.log(READ)) / 7)


def test_sentences_are_units_too_and_citations_cover_all_of_a_passage(answers):
    found = run(answers, unit="sentence").folder.summary().citations
    assert found.claims[0].cites == (6, 7) and found.claims[0].n_units == 48
    assert [claim.word for claim in found.claims[:3]] == list(TRUTH[:3])


def test_a_whole_answer_may_be_one_claim(answers):
    found = run(answers, whole_answer=True, k=0.3)
    claims = found.folder.summary().citations.claims
    assert [claim.example_id for claim in claims] == [f"q{number}#1" for number in range(6)]
    assert claims[0].cites == (1, 3, 5, 6, 9, 19) and claims[0].n_tokens == 39
    with pytest.raises(ConfigError, match="--whole-answer is about cited answers"):
        ice.evaluate("toy", "demo", whole_answer=True)


def test_few_passages_give_no_word_that_needs_a_test(answers):
    few = [{**row, "passages": row["passages"][:10]} for row in answers]
    for row in few:
        row["answer"] = row["answer"].split(". ")[0] + "."
    found = run(few).folder.summary()
    assert {claim.word for claim in found.citations.claims} == {"undetermined"}
    assert "9 other sets" in found.citations.claims[0].reason
    assert found.configurations[0].win_rate == 1.0  # the data set has its test all the same


def test_attributions_over_passages_find_the_source(answers):
    names = ["bm25", "occlusion", "context-cite", "attention", "gradient", "random"]
    rows = [{**row, "answer": row["answer"].split(". ")[0] + "."} for row in answers]
    folder = run(rows, attributions=names, k=0.05).folder
    for example in folder.inputs(0):
        for name in names[:-1]:
            assert int(np.argmax(example.attributions[name])) == 3, name
    rates = {line.attribution: line.win_rate for line in folder.summary().configurations}
    assert all(rates[name] == 1.0 for name in names[:-1]) and rates["random"] < 1


def test_claims_of_an_answer_are_a_group(answers):
    found = run(answers)
    groups = {row.group for part in found.folder.parts() for row in found.folder.inputs(part)}
    assert groups == {row["id"] for row in answers}
    assert "grouped" in found.folder.summary().configurations[0].flags


# -------------------------------------------------------------------------------------------------------------- inputs


def test_marks_are_never_scored_and_earlier_claims_are_given(answers):
    model, items = encoded(answers[:1])
    text = model.codec.decode([items[1].ids])[0]
    said = text.rpartition("Question")[2]
    assert "[ 4 ]" in said and "[ 6 ]" not in said  # the first claim is given; its own marks would give a claim away
    [scored] = model.codec.decode([items[1].ids[items[1].segments == SCORED]])
    assert not set(scored) & set("[]0123456789") and len(scored.split()) == 9


@pytest.mark.parametrize("unit", ["passage", "sentence"])
@pytest.mark.parametrize("name", ["delete", "blank", "infill"])
def test_operators_leave_question_answer_and_kept_passages_alone(answers, unit, name):
    from ice_eval.operators import operators

    model, [item, *_] = encoded(answers[:1], unit=unit)
    keep = np.zeros((1, item.n_units), dtype=bool)
    keep[0, [0, item.n_units - 1]] = True
    act = operators.get(name)()
    fills = np.full(int((item.unit_of >= 0).sum()), 7) if act.needs_fills else np.zeros(0, dtype=np.int64)
    found = act.build(item, keep, fills=fills)
    [text] = model.codec.decode([found.row(0)])
    assert item.texts[0].split(".")[0] in text and item.texts[-1].split(".")[0] in text
    assert item.texts[5].split(".")[0] not in text
    assert "Question : Who ?" in text and (found.segments == SCORED).sum() == (item.segments == SCORED).sum()
    assert ("[ 12 ]" in text) == (name != "delete")  # its number goes with a deleted passage


def test_a_passage_keeps_its_number_while_a_sentence_of_it_is_shown(answers):
    from ice_eval.operators.remove import Delete

    model, [item, *_] = encoded(answers[:1], unit="sentence")
    keep = np.zeros((1, item.n_units), dtype=bool)
    keep[0, 3] = True
    [text] = model.codec.decode([Delete().build(item, keep, fills=np.zeros(0, dtype=np.int64)).row(0)])
    assert "[ 2 ]" in text and "[ 1 ]" not in text and "[ 3 ]" not in text


def test_passages_need_no_number(answers):
    from ice_eval.operators.remove import Delete

    model, [item, *_] = encoded(answers[:1], passage="{text} ")
    keep = np.eye(item.n_units, dtype=bool)
    found = Delete().build(item, keep, fills=np.zeros(0, dtype=np.int64))
    for place, text in enumerate(model.codec.decode([found.row(row) for row in range(len(found))])):
        assert [each.split(".")[0] in text for each in item.texts] == keep[place].tolist()


def test_closed_book_shows_no_passage_and_no_number(answers):
    model, [item, *_] = encoded(answers[:1])
    [text] = model.codec.decode([item.empty().row(0)])
    assert "[" not in text.partition("Question")[0]


def test_fills_are_passages_of_other_answers(answers):
    folder = run(answers, operators="infill", n_fills=2).folder
    own = {row["id"]: {passage["text"] for passage in row["passages"]} for row in answers}
    for example in folder.inputs(0):
        for fill in example.fills:
            assert len(fill.texts) == 24
            assert not any(word in text for text in fill.texts for word in next(iter(own[example.group])).split()[:2])


# ------------------------------------------------------------------------------------------------------------ bad input


def test_bad_data_are_counted_or_refused(answers, tmp_path):
    rows = [*answers[:2], {"question": "Q?", "passages": [], "answer": "Nothing [1]."}]
    rows.append({"question": "Q?", "passages": ["one passage only."], "answer": "one passage only [1]."})
    rows.append({"question": "Q?", "passages": ["a b.", "c d."], "answer": "A claim [7]. A b [1]."})
    found = run(rows).folder
    messages = " ".join(found.manifest().messages)
    assert "there is no passage" in messages and "cites [7], and there is no such passage" in messages
    claims = {claim.example_id: claim for claim in found.summary().citations.claims}
    assert "one unit" in claims["4#1"].reason and claims["4#1"].word is None
    with pytest.raises(DataError, match="no claim can be evaluated"):
        run([{"question": "Q?", "passages": ["a b.", "c d."], "answer": "Nothing is cited."}])


def test_a_context_longer_than_the_window_is_skipped_and_counted(answers, monkeypatch):
    monkeypatch.setattr("ice_eval.models.toy.ToyCodec.max_tokens", 555)
    found = run(answers[:2]).folder.summary().citations
    assert sum(found.skipped.values()) == 8 and "and the model reads 555" in next(iter(found.skipped))
    assert found.n_claims == 2


def test_claims_that_cite_nothing_count_without_the_citations(answers):
    rows = [{**answers[0], "answer": "Bacedi cedifo. " + answers[0]["answer"]}, answers[1]]
    assert "1 of 11 claims cite nothing" in " ".join(run(rows).folder.manifest().messages)
    assert len(run(rows, attributions="bm25").folder.inputs(0)) == 11


def test_what_does_not_fit_is_refused(answers):
    with pytest.raises(ConfigError, match="unit 'token'.* Expected: passage, sentence"):
        run(answers, unit="token")
    with pytest.raises(CapabilityError, match="gives no probability of a text"):
        ice.evaluate("toy", task_of(answers))
    with pytest.raises(CapabilityError, match="needs a `score` of the passages"):
        run(answers, attributions="retrieval")
    with pytest.raises(ConfigError, match="--label-scoring is about texts"):
        run(answers, label_scoring="full")
    with pytest.raises(ConfigError, match="--repeats is about chains of thought"):
        run(answers, repeats=7)
    with pytest.raises(CapabilityError, match="'bm25' is about passages"):
        ice.evaluate("toy", "demo", attributions="bm25", unit="sentence", operators="delete")
    with pytest.raises(ConfigError, match="sentences that give a label away"):
        ice.evaluate("toy", "demo", attributions="random", unit="sentence")
    with pytest.raises(ConfigError, match="must hold {passages} once"):
        task_of(answers, prompt="{question}")


def test_retrieval_scores_are_an_explanation(answers):
    rows = [{**row, "answer": row["answer"].split(". ")[0] + "."} for row in answers]
    for row in rows:
        row["passages"] = [
            {**each, "score": 1.0 if each["id"] == "4" else int(each["id"]) / 100} for each in row["passages"]
        ]
    assert run(rows, attributions="retrieval", k=0.05).folder.summary().configurations[0].win_rate == 1.0


def test_own_numbers_per_passage_are_an_explanation(answers):
    rows = [{**row, "answer": row["answer"].split(". ")[0] + "."} for row in answers]
    mine = {f"{row['id']}#1": [float(index == 3) for index in range(24)] for row in rows}
    found = run(rows, attributions={"mine": mine}, k=0.05).folder.summary()
    assert found.configurations[0].win_rate == 1.0


# ----------------------------------------------------------------------------------------------- answers written first


def test_the_model_writes_missing_answers_and_they_are_kept(answers, tmp_path, monkeypatch):
    rows = [{name: value for name, value in row.items() if name != "answer"} for row in answers[:2]]
    found = run(rows, out=tmp_path / "run")
    kept = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    assert len(kept) == 2 and "[1]" in kept[0]["answer"]
    assert found.folder.summary().configurations[0].win_rate == 1.0  # it copies what it cites
    monkeypatch.setattr(ToyReader, "generate", lambda *args, **kwargs: pytest.fail("the answers are known"))
    again = run(rows, out=tmp_path / "run")
    assert again.folder.summary() == found.folder.summary()


# ----------------------------------------------------------------------------------------------------------- the engine


def test_nothing_depends_on_parts_or_resume(answers, tmp_path):
    whole = run(answers, operators=["delete", "infill"], attributions=["cited", "bm25"], out=tmp_path / "a")
    run(answers, out=tmp_path / "b")
    added = run(answers, operators=["delete", "infill"], attributions=["cited", "bm25"], out=tmp_path / "b")
    assert whole.folder.summary() == added.folder.summary()
    before = (tmp_path / "a" / "summary.json").read_bytes()
    rescore(whole.folder)
    assert (tmp_path / "a" / "summary.json").read_bytes() == before


def test_a_plan_counts_claims(answers):
    found = ice.plan("toy-reader", task_of(answers), operators="delete", attributions="cited", pilot=10)
    assert found.choices[0].n == 30


@pytest.mark.slow
def test_random_citations_are_called_faithful_at_most_at_the_level(answers):
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        base = answers[number % 6]
        marks = rng.integers(1, 25, size=4)
        texts = [f"{text} [{mark}]." for text, mark in zip(base["answer"].split(". ")[:4], marks, strict=True)]
        bare = [re.sub(r" \[\d+\](\[\d+\])?(?= \[)", "", text) for text in texts]
        rows.append({**base, "id": f"r{number}", "answer": " ".join(bare)})
    found = run(rows).folder.summary()
    assert abs(found.configurations[0].win_rate - 0.5) < 0.06
    faithful = next(line for line in found.citations.words if line.word == "faithful")
    assert faithful.share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 240)


def test_infill_refuses_the_claims_of_one_answer_before_anything_is_scored(answers, tmp_path):
    with pytest.raises(DataError, match="all 4 examples share one; give a larger --n, or use --operators delete"):
        run(answers, operators=["delete", "infill"], n=4, out=tmp_path / "run")
    assert not list(tmp_path.glob("run/ledger/*"))
