"""`ice f-fidelity`."""

import json
import shutil

import pytest
from tests.cli.commands import assert_refused
from tests.helpers import save_tiny

import ice_eval
from ice_eval.models import load_model
from ice_eval.results import RunFolder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "bert"
    save_tiny(folder, "bert")
    return folder


@pytest.fixture(scope="module")
def demo_run(bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "run"
    settings = {"attributions": ["gradient"], "operators": ["delete"], "n": 6, "m": 3}
    return ice_eval.evaluate(str(bert), "demo", out=folder, device="cpu", **settings).path


def test_the_command_prints_both_and_continues(ice, bert, demo_run, tmp_path):
    command = ("f-fidelity", demo_run, "--model", bert, "--out", tmp_path / "b", "--epochs", 2, "--lr", 1e-3)
    done = ice(*command, "--save-model", tmp_path / "copy")
    assert done.code == 0
    assert "bert+f-fidelity" in done.out and "B − A" in done.out and "How they answer" in done.out
    assert "delete, random set kept" in done.out and "Both explain A" in done.out
    copy = load_model(str(tmp_path / "copy"), device="cpu")
    manifest = RunFolder.existing(tmp_path / "b").manifest()
    assert copy.fingerprint == manifest.identity["weights"]
    again = ice(*command, "--json")
    content = json.loads(again.out)
    assert "nothing left to score" in again.err
    assert content["adaptation"]["epochs"] == 2 and content["comparison"]["configurations"][0]["paired"]
    assert [line["operator"] for line in content["answers"]] == [None, "delete"]


def test_the_task_of_a_run_is_found_again_in_any_of_its_prompts(ice, bert, reviews, tmp_path):
    few = ("--device", "cpu", "--attributions", "gradient", "--operators", "delete", "--n", 4, "--m", 3)
    task = ("--task", "sst2/minimal", "--data", reviews)
    assert ice("run", "--model", bert, *task, *few, "--out", "r").code == 0
    done = ice("f-fidelity", "r", "--model", bert, "--device", "cpu", "--out", "adapted", "--epochs", 1)
    assert done.code == 0, done.err


def test_the_command_refuses_models_that_it_cannot_adapt(ice, tmp_path):
    ice_eval.evaluate("toy", "demo", attributions=["random"], n=3, m=3, out=tmp_path / "toy")
    refused = ice("f-fidelity", tmp_path / "toy", "--out", tmp_path / "b")
    assert_refused(refused, "'toy' cannot be adapted", "sequence classifier")
    assert not (tmp_path / "b").exists()


def test_a_run_of_a_quantised_model_is_refused_before_the_model_is_loaded(ice, demo_run, tmp_path):
    quantised = shutil.copytree(demo_run, tmp_path / "quantised")
    manifest = json.loads((quantised / "manifest.json").read_text())
    manifest["identity"]["load_in"] = "4bit"
    (quantised / "manifest.json").write_text(json.dumps(manifest))
    refused = ice("f-fidelity", quantised, "--model", "nobody/nothing", "--out", tmp_path / "b")
    assert_refused(refused, "quantised weights (--load-in 4bit)", "evaluate the model without --load-in first")
    assert not (tmp_path / "b").exists()
