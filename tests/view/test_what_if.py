"""Questions to a model give the numbers of a run, and those of plain arithmetic."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.view.conftest import TEXT

from ice_eval.errors import ConfigError, DataError
from ice_eval.models.toy import BIAS, WEIGHTS
from ice_eval.rationales import keep_mask, null_of, random_sets
from ice_eval.results import view_example
from ice_eval.tasks import load_task
from ice_eval.view import RunIndex, WhatIf
from ice_eval.view.what_if import examples_of, refusal


@pytest.fixture(scope="module")
def entries(runs):
    return {each.name: each for each in RunIndex(runs).entries()}


@pytest.fixture(scope="module")
def what_if():
    return WhatIf()


def test_a_typed_text_is_compared_as_plain_arithmetic_has_it(entries, what_if):
    entry = entries["first"]
    found = what_if.ask(entry, {"text": TEXT}, [], "delete")
    [field] = found["fields"]
    words = [piece for piece, unit in field["pieces"] if unit >= 0]
    weights = np.array([WEIGHTS.get(word.lower(), 0.0) for word in words])
    shots = " ".join(shot.fields["text"] for shot in load_task("demo").shots)
    base = BIAS + sum(WEIGHTS.get(word.lower(), 0.0) for word in re.findall(r"\w+", shots))
    full = base + weights.sum()
    sign = 1 if full > 0 else -1
    assert found["label"] == ("positive" if full > 0 else "negative")
    assert found["log_odds"] == pytest.approx(sign * full)
    assert found["probability"] == pytest.approx(1 / (1 + math.exp(-sign * full)))

    units = sorted(np.argsort(-sign * weights)[:3].tolist())
    compared = what_if.ask(entry, {"text": TEXT}, units, "delete")["compared"]
    own = sign * (base + weights[units].sum())
    config = entry.manifest.config
    # The same order of sets: it depends on the seed, the example and the size alone.
    id_ = _id_of(what_if)
    sets = random_sets(len(words), 3, config.m + 1, seed=config.seed, example_id=id_)
    mask = keep_mask(units, len(words))
    null = [sign * (base + weights[each].sum()) for each in sets[null_of(mask, sets, config.m)]]
    wins = [1.0 if own > each + 1e-9 else 0.5 if abs(own - each) <= 1e-9 else 0.0 for each in null]
    assert compared["log_odds"] == pytest.approx(own)
    assert compared["null"] == pytest.approx(null)
    assert compared["win_rate"] == pytest.approx(np.mean(wins)) and len(null) == config.m
    assert compared["p_value"] == pytest.approx((1 + sum(each >= own - 1e-9 for each in null)) / (1 + config.m))
    assert 0.5 < compared["win_rate"] <= 1


def _id_of(what_if):
    [typed] = [name for name in what_if._picked if name.startswith("typed")]
    return typed


@pytest.mark.parametrize("operator", ["delete", "infill"])
def test_units_of_a_recorded_rationale_get_the_recorded_numbers(entries, what_if, operator):
    entry = entries["grid/runs/second"]
    for example in examples_of(entry)[:4]:
        view = view_example(entry.folder, example.id, operator=operator)
        for each in view.compared:
            compared = what_if.ask(entry, example.fields, each.line.rationale, operator)["compared"]
            numbers = ("win_rate", "tie_rate", "p_value")
            assert [compared[name] for name in numbers] == [getattr(each.line, name) for name in numbers]
            assert compared["probability"] == each.line.score
            assert compared["null"] == each.scores.null.tolist()


def test_the_same_text_without_a_word_is_another_example(entries, what_if):
    entry = entries["first"]
    first = what_if.ask(entry, {"text": TEXT}, [0, 1], "infill")["compared"]
    assert what_if.ask(entry, {"text": TEXT}, [0, 1], "infill")["compared"] == first
    assert what_if.ask(entry, {"text": TEXT[:40]}, [0, 1], "infill")["compared"] != first


@pytest.mark.parametrize(
    ("text", "units", "operator", "message"),
    [
        (TEXT, [0, 99], "delete", "Pick some units"),
        (TEXT, list(range(20)), "delete", "Pick some units"),
        (TEXT, [0], "mask", "no such operator"),
        ("one", [], "delete", "fewer than two units"),
        ("word " * 5000, [], "delete", "longer than 20,000"),
    ],
)
def test_questions_without_an_answer_say_why(entries, what_if, text, units, operator, message):
    with pytest.raises((ConfigError, DataError), match=message):
        what_if.ask(entries["first"], {"text": text}, units, operator)


def test_a_model_that_has_no_name_here_is_one_message(entries, what_if, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="no model"):
        what_if.ask(entries["<b>odd<b>"], {"text": "w1 w2 w3"}, [], "delete")


def test_other_weights_are_refused(entries):
    entry = entries["first"]
    other = replace(entry.manifest, identity={**entry.manifest.identity, "weights": "0"})
    with pytest.raises(ConfigError, match="not those of the run"):
        WhatIf().ask(replace(entry, manifest=other), {"text": TEXT}, [], "delete")


@pytest.mark.parametrize(
    ("model", "message"),
    [("openai:gpt", "behind a server"), ("python:os:system", "made by Python code")],
)
def test_code_that_a_manifest_names_is_not_run(entries, model, message):
    manifest = entries["first"].manifest
    assert message in refusal(replace(manifest, config=replace(manifest.config, model=model)))
