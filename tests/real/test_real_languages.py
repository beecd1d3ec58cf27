"""The embedded model on texts of other scripts and on pairs of texts: what is scored, and what people are shown."""

import json
import re

import numpy as np
import pytest
from tests.real.test_real_models import ledger_of, plain_scores

import ice_eval as ice
from ice_eval.cli.show import show
from ice_eval.records import Kind
from ice_eval.words import word_spans

LANGUAGES = ("chinese_chnsenticorp", "arabic_astd", "hindi_movies")
SMALL = {"m": 4, "attributions": ["attention", "random"]}
ROWS = 2 + (5 + 2) + (5 + 2 * 4)
"""Of an example: full and empty, five random sets and two rationales under delete, and with four fills under infill."""
FIELDS = ("premise", "hypothesis")


def bare(text):
    return "".join(text.split())


def short_texts(path, n):
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if len(row["text"]) <= 32 and len(word_spans(row["text"])) >= 6][:n]


@pytest.mark.real
@pytest.mark.smollm2
@pytest.mark.parametrize("unit", ["token", "word"])
def test_rows_of_any_script_are_shown_as_the_characters_of_the_text(smollm2, shared_data, capsys, unit):
    task = ice.Task(
        data=ice.Records([row for language in LANGUAGES for row in short_texts(shared_data / f"{language}.jsonl", 3)]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
    run = ice.evaluate(smollm2, task, n=9, unit=unit, **SMALL)
    ledger = ledger_of(run)
    assert len(ledger) == 9 * ROWS
    for found in run.folder.inputs(0):
        text, spans = found.fields["text"], found.spans
        assert len(spans) >= 6 and not text.isascii()
        show(run.path, example=found.example_id, rows=-1)
        out = capsys.readouterr().out
        assert "\ufffd" not in out

        shown = [bare(row) for row in re.findall(r"^  [01]\.\d{3}  \S+ +'(.*)'$", out, re.MULTILINE)]
        rows = [row for row in ledger if row.key.example_id == found.example_id]
        assert len(shown) == len(rows)
        for row in rows:
            if row.key.operator == "delete":
                assert bare("".join(text[spans[i].start : spans[i].end] for i in row.kept)) in shown
        for unit_index in {i for row in rows if row.key.kind == Kind.RATIONALE for i in row.kept}:
            assert f"[{text[spans[unit_index].start : spans[unit_index].end]}]" in out


@pytest.mark.real
@pytest.mark.smollm2
@pytest.mark.parametrize("chat", [False, True])
def test_pairs_keep_units_of_both_texts_and_score_as_plain_forwards_do(smollm2, shared_data, chat):
    words = ["entailment", "neutral", "contradiction"]
    task = ice.Task(
        data=ice.FileData(shared_data / "esnli.jsonl"),
        prompt="Premise: {premise}\nHypothesis: {hypothesis}\nAnswer:",
        label_words={word: f" {word}" for word in words},
    )
    run = ice.evaluate(smollm2, task, chat=chat, n=3, **SMALL)
    spans = {found.example_id: found.spans for found in run.folder.inputs(0)}
    fields = {found.example_id: found.fields for found in run.folder.inputs(0)}
    assert all({span.field for span in found} == set(FIELDS) for found in spans.values())
    rows = ledger_of(run)
    assert len(rows) == 3 * ROWS

    tokenizer = smollm2.codec.tokenizer
    answers = words if chat else [f" {word}" for word in words]
    label_ids = [tokenizer(answer, add_special_tokens=False)["input_ids"][0] for answer in answers]
    for row in rows:
        np.testing.assert_allclose(row.scores, plain_scores(smollm2.model, row, label_ids, causal=True), atol=1e-4)
        prompt = tokenizer.decode(row.input_ids)
        assert all(prompt.count(word) == 1 for word in ("Premise:", "Hypothesis:", "Answer:"))
        assert prompt.endswith("<|im_start|>assistant\n" if chat else "Answer:")
        if row.key.operator == "delete":
            found = fields[row.key.example_id]
            seen = re.search("Premise:(.*)Hypothesis:(.*)Answer:", prompt, re.DOTALL).groups()
            for name, text in zip(FIELDS, seen, strict=True):
                kept = [span for span in map(spans[row.key.example_id].__getitem__, row.kept) if span.field == name]
                assert bare(text) == bare("".join(found[name][span.start : span.end] for span in kept))
