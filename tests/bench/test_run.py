import json
import os
import signal
import subprocess
import sys
from importlib.resources import files

import jsonschema
import pytest
import yaml
from tests.small_grids import content

from ice_eval.bench import BenchFolder, plan_grid, run_grid
from ice_eval.errors import ConfigError


class Interrupting:
    """Stops everything when the second run begins, as a person would."""

    def say(self, message):
        if message.startswith("[2/"):
            raise KeyboardInterrupt

    def start(self, total, *, examples): ...
    def advance(self, rows, *, scored=True): ...
    def correct(self, total): ...
    def stop(self): ...

    def asked_to_stop(self):
        return False


def summary_of(folder):
    return (folder.path / "bench.json").read_text()


def test_a_grid_that_was_interrupted_goes_on_and_has_the_same_summary(grid, finished, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_grid(grid(), tmp_path / "bench", reporter=Interrupting())
    folder = BenchFolder(tmp_path / "bench")
    assert [record.status for record in folder.records()] == ["complete", "waiting"]
    assert not (folder.path / "bench.json").exists()
    run_grid(grid(), folder.path)
    assert summary_of(folder) == summary_of(finished[1])


KILLED = """
import os, signal, sys, yaml
from pathlib import Path
from ice_eval.bench import load_grid, run_grid
from ice_eval.pipeline import Silent

class Killing(Silent):
    def say(self, message):
        if message.startswith("[2/"):
            os.kill(os.getpid(), signal.SIGKILL)

run_grid(load_grid(Path(sys.argv[1])), Path(sys.argv[2]), reporter=Killing())
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_grid_that_was_killed_goes_on_and_has_the_same_summary(reviews, finished, tmp_path):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(content(reviews)))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "small.yaml"), str(tmp_path / "bench")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    folder = BenchFolder(tmp_path / "bench")
    assert [record.status for record in folder.records()] == ["complete", "waiting"]
    run_grid(folder.grid(), folder.path)  # as the folder knows it: the file is not needed again
    assert summary_of(folder) == summary_of(finished[1])


def test_finished_runs_need_neither_model_nor_data_again(finished, monkeypatch):
    grid, folder = finished
    before = summary_of(folder)
    monkeypatch.setattr("ice_eval.pipeline.replicas.load_model", lambda *_, **__: pytest.fail("a model was loaded"))
    monkeypatch.setattr("ice_eval.bench.run.evaluate", lambda *_, **__: pytest.fail("a run was done again"))
    run_grid(grid, folder.path)
    assert summary_of(folder) == before


def test_what_is_added_to_a_grid_is_all_that_is_scored(grid, tmp_path):
    run_grid(grid(prompts="standard"), tmp_path / "bench")
    [line] = plan_grid(grid(prompts="standard"), BenchFolder(tmp_path / "bench"))
    assert (line.status, line.rows) == ("complete", 0)
    more = grid(prompts="standard", attributions=["attention", "random", "first-k"])
    [line] = plan_grid(more, BenchFolder(tmp_path / "bench"))
    assert line.status == "waiting"
    folder = run_grid(more, tmp_path / "bench")
    found = {line["attribution"] for line in folder.summary()["configurations"]}
    assert found == {"attention", "random", "first-k"}
    defaults = grid(prompts="standard", attributions=None)
    assert not folder.is_complete(defaults.runs()[0])  # gradient is among the defaults, and is not there
    assert len(list((tmp_path / "bench/runs").iterdir())) == 1


def test_a_model_that_cannot_be_loaded_is_recorded_and_the_rest_goes_on(grid, tmp_path):
    folder = run_grid(grid(models=["python:nobody:nothing", "toy"]), tmp_path / "bench")
    found = folder.records()
    assert [record.status for record in found] == ["failed", "failed", "complete", "complete"]
    assert "nobody" in found[0].error
    summary = folder.summary()
    assert [run["status"] for run in summary["runs"]] == [record.status for record in found]
    assert {line["model"] for line in summary["configurations"]} == {"toy"}


def test_data_that_are_not_there_cost_no_model(grid, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("ice_eval.pipeline.replicas.load_model", lambda *_, **__: pytest.fail("a model was loaded"))
    folder = run_grid(grid(tasks=["french"], prompts="standard"), tmp_path / "bench")
    [record] = folder.records()
    assert record.status == "failed"
    assert "could not be loaded from the hub" in record.error
    assert not (folder.path / "report.html").exists()


def test_a_fault_that_nobody_foresaw_is_recorded_with_its_type_and_tried_again(grid, finished, tmp_path, monkeypatch):
    from ice_eval.api import evaluate

    def failing(model, task, **settings):
        if task.name == "sst2/minimal":
            raise ZeroDivisionError("of no use\nmore")
        return evaluate(model, task, **settings)

    with monkeypatch.context() as patch:
        patch.setattr("ice_eval.bench.run.evaluate", failing)
        folder = run_grid(grid(), tmp_path / "bench")
    assert [(record.status, record.error) for record in folder.records()] == [
        ("complete", None),
        ("failed", "ZeroDivisionError: of no use"),
    ]
    run_grid(grid(), folder.path)
    assert summary_of(folder) == summary_of(finished[1])


def test_one_model_is_loaded_at_a_time(grid, tmp_path, monkeypatch):
    from ice_eval.models import load_model

    events = []

    def loading(ref, **settings):
        model = load_model(ref, **settings)
        events.append("loaded")
        monkeypatch.setattr(type(model), "release", lambda self: events.append("released"))
        return model

    monkeypatch.setattr("ice_eval.pipeline.replicas.load_model", loading)
    monkeypatch.setattr("ice_eval.bench.run.evaluate", lambda *_, **__: events.append("run"))
    run_grid(grid(models=["toy", {"model": "toy", "name": "other"}]), tmp_path / "bench")
    assert events == ["loaded", "run", "run", "released"] * 2


def test_the_plan_counts_rows_and_knows_the_pace_of_a_model(grid, finished, tmp_path):
    chosen, folder = finished
    lines = plan_grid(chosen, BenchFolder(tmp_path / "new"))
    assert [(line.n, line.minutes, line.status) for line in lines] == [(6, None, "waiting")] * 2
    done = [each.manifest().cost.rows for each in folder.finished()]
    assert [line.rows for line in lines] == done  # the toy's tokens are words
    assert [line.rows for line in plan_grid(chosen, folder)] == [0, 0]
    further = grid(prompts=["standard", "quoted"])
    assert plan_grid(further, folder)[1].minutes > 0


def test_a_folder_with_something_else_is_left_alone(grid, tmp_path):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="exists but is not a bench folder; choose an --out that is empty or new"):
        run_grid(grid(), tmp_path / "bench")
    assert [path.name for path in (tmp_path / "bench").iterdir()] == ["thesis.txt"]


def test_a_grid_that_was_killed_at_once_leaves_nothing_in_the_way(grid, tmp_path):
    (tmp_path / "bench/runs").mkdir(parents=True)
    for name in (".lock", ".draft-half"):
        (tmp_path / "bench" / name).touch()
    folder = run_grid(grid(models=["python:nobody:nothing"], prompts="standard"), tmp_path / "bench")
    assert {path.name for path in folder.path.iterdir()} == {".lock", "runs", "grid.json", "bench.json"}


def test_report_and_figures_are_about_all_runs(finished):
    _, folder = finished
    page = (folder.path / "report.html").read_text()
    assert "sst2/minimal" in page
    names = {path.name for path in (folder.path / "figures").iterdir()}
    assert {"win-rate-heatmap.svg", "prompt-sensitivity-delete.svg"} <= names


def test_runs_know_a_model_by_the_name_that_the_grid_gives_it(grid, tmp_path):
    models = ["toy", {"model": "toy", "name": "other"}]
    folder = run_grid(grid(models=models, prompts="standard", operators=["delete"]), tmp_path / "bench")
    assert [each.manifest().config.model for each in folder.finished()] == ["toy", "other"]


def test_p_values_are_adjusted_over_the_whole_grid(finished):
    import numpy as np

    from ice_eval import stats

    lines = finished[1].summary()["configurations"]
    assert len(lines) == 2 * 2 * 3
    expected = stats.adjusted(np.array([line["p_value"] for line in lines]))
    assert [line["p_adjusted"] for line in lines] == pytest.approx(expected.tolist())
    assert {(line["prompt"], line["language"]) for line in lines} == {("standard", "en"), ("minimal", "en")}
    json.dumps(finished[1].summary(), allow_nan=False)


@pytest.mark.parametrize("name", ["bench", "grid"])
def test_what_a_grid_writes_is_what_the_published_schemas_say(finished, name):
    schema = json.loads((files("ice_eval.results") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((finished[1].path / f"{name}.json").read_text(encoding="utf-8")), schema)


def test_the_plan_counts_rows_of_eraser_and_of_matched_nulls(grid, tmp_path):
    chosen = grid(prompts="standard", eraser=True, nulls=["size", "position"])
    folder = BenchFolder(tmp_path / "bench")
    [line] = plan_grid(chosen, folder)
    run_grid(chosen, folder.path)
    manifest = folder.run_folder(line.name).manifest()
    assert line.rows == pytest.approx(manifest.cost.rows, rel=0.1)
