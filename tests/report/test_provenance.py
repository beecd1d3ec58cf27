import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import ice_eval
from ice_eval.report.provenance import CITATION, command, provenance
from ice_eval.settings import SETTINGS
from ice_eval.tasks import Records, Task, load_task

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def manifest():
    return ice_eval.evaluate(
        "toy", "demo", n=3, m=5, k=[0.1, 0.3], unit="word", directions=["necessity"]
    ).folder.manifest()


def flags_of(text):
    words = shlex.split(text.replace("\\\n", " "))
    assert words[:2] == ["ice", "run"]
    return dict(zip(words[2::2], words[3::2], strict=True))


def test_the_command_repeats_the_run(manifest):
    flags = flags_of(command(manifest))
    assert flags == {
        "--model": "toy", "--task": "demo", "--attributions": "attention,gradient,random", "--n": "3", "--m": "5",
        "--k": "0.1,0.3", "--unit": "word", "--direction": "necessity", "--dtype": manifest.identity["dtype"],
    }  # fmt: skip


def test_the_command_has_flags_that_the_command_line_knows(manifest):
    everything = replace(manifest.config, nulls=("position",), sign="abs", calibration="contextual", seed=3)
    known = {each.option for each in SETTINGS.values()}
    found = set(flags_of(command(replace(manifest, config=everything))))
    assert {"--null", "--sign", "--calibration", "--seed"} < found <= known


def test_attributions_that_came_in_files_are_named_as_such(manifest):
    config = replace(manifest.config, attributions=("random", "mine"))
    flags = flags_of(command(replace(manifest, config=config)))
    assert (flags["--attributions"], flags["--attribution-file"]) == ("random", "mine=FILE")


def test_a_task_of_python_has_no_command():
    task = Task(data=Records([{"text": "a good film"}] * 2), prompt="{text}:", label_words={"a": " a", "b": " b"})
    found = ice_eval.evaluate("toy", task, attributions=["random"], operators=["delete"], n=2, m=5)
    assert command(found.folder.manifest()) is None


def test_worked_examples_of_the_prompt_are_named(manifest):
    shown = dict(provenance(manifest))["worked examples"]
    shots = load_task("demo").shots
    assert len(shots) == len(manifest.worked) > 0
    assert all(shot.fields["text"] in shown and shot.label in shown for shot in shots)
    plain = replace(manifest, worked=())
    assert "worked examples" not in dict(provenance(plain))


def test_an_auditor_finds_model_weights_data_and_versions(manifest):
    rows = dict(provenance(manifest))
    assert manifest.identity["weights"] in rows["weights"]
    assert manifest.identity["data"] in rows["data"]
    assert manifest.config_hash in rows["configuration"]
    assert "necessity" in rows["configuration"]
    assert f"numpy {manifest.versions['numpy']}" in rows["versions"]
    assert rows["random sets"] == "m = 5, seed = 0"
    assert rows["methods"] == "attention(layer=None, head=None), gradient(norm=l2), random()"
    mine = replace(manifest, attributions={"mine": {"method": "Computed"}})
    assert dict(provenance(mine))["methods"] == "mine = Computed()"
    sequential = replace(manifest, config=replace(manifest.config, adaptive="examples"))
    assert "at most" in dict(provenance(sequential))["random sets"]
    assert "remarks" not in dict(provenance(replace(manifest, messages=())))
    assert dict(provenance(replace(manifest, messages=("one", "two"))))["remarks"] == "one\ntwo"


def test_the_citation_is_the_one_of_the_citation_file():
    wanted = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["preferred-citation"]
    assert wanted["title"] in CITATION and str(wanted["year"]) in CITATION
    assert all(f"{each['family-names']}, {each['given-names'][0]}." in CITATION for each in wanted["authors"])
    assert wanted["identifiers"][0]["value"] in CITATION
