"""What a run writes is what the published schemas say, key for key."""

import json
from dataclasses import fields
from importlib.resources import files

import jsonschema
import pytest

import ice_eval as ice
from ice_eval.results.outcomes import Outcome
from ice_eval.results.summary import Measures


def schema(name):
    return json.loads((files("ice_eval.results") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run():
    texts = ["a gorgeous witty film with a slow start", "an awful boring mess of a play", "good", "", "bad cold food"]
    task = ice.Task(
        data=ice.Records([{"text": text, "label": i % 2} for i, text in enumerate(texts)]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
    return ice.evaluate("toy", task, m=5, directions=["sufficiency", "necessity"])


@pytest.mark.parametrize("name", ["manifest", "examples", "summary"])
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_a_run_conforms(run):
    jsonschema.validate(run.folder.manifest(), schema("manifest"))
    jsonschema.validate(run.folder.summary(), schema("summary"))
    lines = list(run.folder.examples())
    assert {"error" in line for line in lines} == {True, False}
    for line in lines:
        jsonschema.validate(line, schema("examples"))


def test_a_run_without_examples_conforms():
    task = ice.Task(data=ice.Records([{"text": "a"}]), prompt="{text} .", label_words={"a": " a", "b": " b"})
    with pytest.raises(ice.ModelError, match="no example could be evaluated"):
        ice.evaluate("toy", task, operators=["delete"])


@pytest.mark.parametrize("damage", [{"win_rate": 2}, {"verdict": 3}, {"surprise": 1}])
def test_other_contents_do_not_conform(run, damage):
    summary = run.folder.summary()
    summary["configurations"][0] |= damage
    with pytest.raises(jsonschema.ValidationError, match=r".+"):
        jsonschema.validate(summary, schema("summary"))


def test_schemas_name_every_number():
    described = schema("summary")["properties"]["configurations"]["items"]["properties"]
    assert {field.name for field in fields(Measures)} <= set(described)
    evaluated = schema("examples")["oneOf"][0]["properties"]
    assert set(evaluated) - {"attribution", "operator", "direction", "k", "null"} <= {
        field.name for field in fields(Outcome)
    }
