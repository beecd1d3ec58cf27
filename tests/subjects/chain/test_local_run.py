"""Chains judged with a model on this machine: what it attends to, and tokens beside steps."""

import json

import numpy as np
import pytest
from tests.subjects.chain.reasoners import loads, records

import ice_eval as ice
from ice_eval import stats
from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import Served
from ice_eval.seeding import rng_for

SETTINGS = {
    "attributions": ("attention", "gradient", "random"),
    "levels": True,
    "answer_tokens": 4,
    "repeats": 2,
    "m": 4,
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    path = tmp_path_factory.mktemp("given") / "chains.jsonl"
    lines = [
        {**record, "steps": [f"Load {place} brings {load} crates." for place, load in enumerate(loads(index, 5), 1)]}
        for index, record in enumerate(records(3, steps=5))
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_attention_and_gradient_give_every_step_a_number_and_tokens_stand_beside_steps(chatty, given, tmp_path):
    found = ice.evaluate(chatty, responses=given, out=tmp_path / "run", **SETTINGS)
    for example in found.folder.inputs(0):
        assert {name: len(values) for name, values in example.attributions.items()} == {
            "attention": 5,
            "gradient": 5,
            "random": 5,
        }
        assert min(example.attributions["gradient"]) > 0
    levels = found.folder.summary().chains.levels
    assert {(line.unit, line.attribution, line.direction) for line in levels} == {
        (unit, name, direction)
        for unit in ("token", "step")
        for name in ("attention", "gradient")
        for direction in ("sufficiency", "necessity")
    }
    assert {line.n for line in levels} == {3}
    manifest = found.folder.manifest()
    assert manifest.chains.weights == chatty.fingerprint and manifest.device == "cpu"
    assert_tested_as_every_run_is(levels, found.path / "levels.jsonl")
    before = (found.path / "levels.jsonl").read_bytes()
    again = ice.evaluate(chatty, responses=given, out=tmp_path / "run", **SETTINGS)
    assert (again.path / "levels.jsonl").read_bytes() == before
    assert again.folder.summary() == found.folder.summary()


def assert_tested_as_every_run_is(levels, path):
    """The p-value of each mean win rate is that of the randomization test, from the scores in the file."""
    tests = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in levels:
        own = [
            test
            for test in tests
            if all(test[name] == getattr(line, name) for name in ("unit", "attribution", "direction", "k"))
        ]
        sign = 1 if line.direction == "sufficiency" else -1
        families = [stats.member_win_rates(sign * np.array([test["score"], *test["null"]])) for test in own]
        assert [rates[0] for rates in families] == [test["win_rate"] for test in own]
        assert [len(rates) for rates in families] == [1 + test["m"] for test in own]
        assert line.p_value == stats.mean_test(families, rng=rng_for(0, "mean-test")).p_value


def test_what_does_not_go_together_is_refused(chatty, given):
    with pytest.raises(ConfigError, match="a worked example comes from a task"):
        ice.evaluate(chatty, responses=given, worked_example=True)
    with pytest.raises(ConfigError, match="holds its questions itself"):
        ice.evaluate(chatty, "gsm8k", responses=given, data=given)
    with pytest.raises(ConfigError, match="no task is given; choose one of"):
        ice.evaluate(chatty)
    with pytest.raises(ConfigError, match="--eraser is about texts, and the task 'given' is about chains of thought"):
        ice.evaluate(chatty, responses=given, eraser=True)
    with pytest.raises(ConfigError, match="--repeats is about chains of thought, and the task 'demo' is about texts"):
        ice.evaluate(chatty, "demo", repeats=5)
    with pytest.raises(ConfigError, match="--executor is about texts"):
        ice.evaluate(chatty, responses=given, executor="ray")
    with pytest.raises(ConfigError, match="the operator 'infill' does not work on steps; those that do: delete, "):
        ice.evaluate(chatty, responses=given, operators=["delete", "infill"])
    with pytest.raises(CapabilityError, match="'lime' gives no numbers to steps; those that do: attention, "):
        ice.evaluate(chatty, responses=given, attributions=["lime"])
    with pytest.raises(CapabilityError, match="a look into the model, which a server does not show"):
        ice.evaluate(Served("m", base_url="http://localhost:1/v1"), responses=given, levels=True)
