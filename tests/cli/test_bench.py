import json
import re

import pytest
import yaml
from tests.small_grids import content, write_reviews


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A grid as a file."""
    monkeypatch.setattr("ice_eval.bench.run.write_grid_figures", lambda *_: [])

    def write(**changes):
        data = write_reviews(tmp_path / "reviews.jsonl")
        (tmp_path / "small.yaml").write_text(yaml.safe_dump(content(data, **changes)))
        return "small.yaml"

    return write


def test_a_grid_is_planned_run_and_printed(ice, small, tmp_path):
    done = ice("bench", small(), "--full")
    assert done.code == 0
    for title in ("Plan", "Runs", "Win rates", "Operator dependence", "Prompts", "Pooled win rates", "Guidelines"):
        assert f"\n{title}\n" in f"\n{done.out}"
    assert "Bench folder: ice-bench/small" in done.out
    assert "[2/2] toy on sst2, prompt minimal" in done.err
    short = ice("bench", "ice-bench/small").out
    assert "Lowest and highest win rates of the grid" in short and "Pooled win rates" not in short
    assert len(short.splitlines()) <= 20 and done.out.endswith(short[short.index("Bench folder") :])
    again = ice("bench", "ice-bench/small", "--json")
    assert (again.code, again.err) == (0, "")
    assert json.loads(again.out)["name"] == "small"
    report = ice("report", "ice-bench/small", "--json")
    assert len(json.loads(report.out)) == 2


def test_a_dry_run_writes_nothing(ice, small, tmp_path):
    done = ice("bench", small(), "--dry-run", "--n", 3)
    assert (done.code, "2 runs, about" in done.out) == (0, True)
    assert not (tmp_path / "ice-bench").exists()
    plan = json.loads(ice("bench", "small.yaml", "--dry-run", "--json", "--models", "smollm2").out)
    assert [(line["model"], line["n"], line["status"]) for line in plan["runs"]] == [("smollm2", 6, "waiting")] * 2


def test_a_run_that_failed_makes_the_command_exit_with_1(ice, small):
    done = ice("bench", small(models=["python:nobody:nothing", "toy"], prompts="standard"))
    assert done.code == 1
    assert "failed: " in done.err
    assert re.search(r"^! The run \S*nothing\S* failed: ", done.out, re.MULTILINE)
    assert "1 run (1 model, 1 task), 4 configurations. " in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench"], "give a grid, such as `ice bench GRID.yaml`, or --preset NAME"),
        (["bench", "small.yaml", "--preset", "quick"], "give a grid"),
        (["bench", "nowhere.yaml"], "the grid nowhere.yaml cannot be read"),
        (["bench", "--preset", "quik"], "no preset 'quik'; did you mean 'quick'?"),
        (["bench", "."], ". is a folder without a grid"),
        (["bench", "small.yaml", "--data-dir", "nowhere"], "there is no folder"),
    ],
)
def test_bad_input_exits_with_2_and_writes_nothing(ice, small, tmp_path, arguments, message):
    small()
    done = ice(*arguments)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "ice-bench").exists()


def test_a_grid_of_which_no_run_can_start_is_bad_input(ice, small, tmp_path):
    done = ice("bench", small(tasks=["french"], prompts="standard"))
    assert done.code == 2
    assert "no run of the grid can start: the data set" in done.err
    assert "--data-dir DIR takes DIR/TASK.jsonl" in done.out
    assert not (tmp_path / "ice-bench").exists()


def test_optional_tasks_without_data_are_named(ice):
    done = ice("bench", "--preset", "quick", "--dry-run", "--models", "toy")
    assert "Skipped without data: sst2, ag_news, esnli" in done.out


def test_presets_are_listed(ice):
    assert "paper-english" in json.loads(ice("list", "presets", "--json").out)


FAILING = """
def predict(texts):
    shares = [float("nan") if "awful" in text else 0.5 + len(text) % 5 / 20 for text in texts]
    return [[share, 1 - share] for share in shares]
"""


def test_failed_examples_and_failed_runs_of_a_grid_are_not_hidden(ice, small, tmp_path, monkeypatch):
    (tmp_path / "failing_grid.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    grid = small(
        models=["python:failing_grid:predict", "python:nobody:nothing"], prompts="standard", attributions=["random"]
    )
    done = ice("bench", grid, "--max-dropped", 0.9)
    assert done.code == 1 and "no result, more than" not in done.err  # one run failed, the other lost few enough
    done = ice("bench", "ice-bench/small")
    assert done.code == 1
    report = ice("report", "ice-bench/small", "--html", "page.html", "--max-dropped", 0.9)
    assert report.code == 0 and re.search(r"^ice: the run \S*nothing\S* failed: ", report.err, re.MULTILINE)
    assert "nobody:nothing" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_grid_that_lost_too_many_examples_exits_with_1(ice, small, tmp_path, monkeypatch):
    (tmp_path / "failing_grid.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    done = ice("bench", small(models=["python:failing_grid:predict"], prompts="standard", attributions=["random"]))
    assert done.code == 1 and "no result, more than --max-dropped 0.1" in done.err
