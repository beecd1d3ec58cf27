"""Grids of chains of thought, with models behind scripted servers."""

import json
from collections import Counter

import pytest
from tests.servers.chat_server import ChatServer
from tests.subjects.chain.reasoners import Reasoner, loads, records

from ice_eval.bench import BenchFolder, grid_of, plan_grid, results_of, run_grid
from ice_eval.bench.run import finished_runs
from ice_eval.errors import ConfigError
from ice_eval.executors import Ray
from ice_eval.pipeline import Silent
from ice_eval.report import data_of, tables
from ice_eval.report.page import page

NOWHERE = "http://127.0.0.1:1/v1"
FEW = {"tasks": ["gsm8k"], "attributions": ["self-report", "random"], "n": 3, "m": 3, "repeats": 2}


@pytest.fixture(scope="module", autouse=True)
def no_key():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with problems, and with chains that were written before."""
    folder = tmp_path_factory.mktemp("problems")
    (folder / "gsm8k.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records(4)))
    chains = [
        {**each, "steps": [f"Load {place} brings {load} crates." for place, load in enumerate(loads(index, 6), 1)]}
        for index, each in enumerate(records(3))
    ]
    (folder / "written.jsonl").write_text("".join(json.dumps(each) + "\n" for each in chains))
    return folder


def chains_of(home, models, **changes):
    content = {"models": models, "data_dir": ".", **FEW, **changes}
    return grid_of(content, where="grid", folder=home, default_name="small")


@pytest.fixture(scope="module")
def finished(home, tmp_path_factory):
    """Two servers with a model of the same name: one reads its steps, the other knows its answers by heart."""
    with ChatServer(Reasoner()) as reads, ChatServer(Reasoner(genuine=0)) as knows:
        models = [{"model": "openai:m", "base_url": each.url, "concurrency": 4} for each in (reads, knows)]
        grid = chains_of(home, models, tasks=["gsm8k", {"responses": "written.jsonl"}])
        yield grid, run_grid(grid, tmp_path_factory.mktemp("bench") / "bench"), (reads, knows)


def test_every_run_is_finished_under_names_that_differ(finished):
    grid, folder, (_, knows) = finished
    address = knows.url.removeprefix("http://").removesuffix("/v1")
    second = f"openai:m ({address})"
    assert [record.status for record in folder.records()] == ["complete"] * 4
    runs = folder.summary()["runs"]
    assert [(run["model"], run["task"]) for run in runs] == [
        ("openai:m", "gsm8k"), ("openai:m", "written"), (second, "gsm8k"), (second, "written"),
    ]  # fmt: skip
    assert [run["accuracy"] for run in runs] == [1.0, None, 1.0, None]
    assert [each.manifest().config.model for each in folder.finished()] == ["openai:m", "openai:m", second, second]
    # Names of the grid are nothing to a server.
    assert {request["model"] for request in knows.requests} == {"m"}


def test_the_summary_of_the_grid_has_the_lines_of_every_run(finished):
    _, folder, _ = finished
    chains = folder.summary()["chains"]
    assert chains["levels"] == []
    for run in folder.finished():
        own = run.summary().chains
        found = [line for line in chains["capacity"] if line["run"] == run.path.name]
        for name in ("operator", "k", "chains", "necessity", "sufficiency", "src", "src_adjusted"):
            assert [line[name] for line in found] == [getattr(each, name) for each in own.capacity]
        raw = [line for line in chains["raw"] if line["run"] == run.path.name]
        assert [(line["raw"], line["win_rate"]) for line in raw] == [(each.raw, each.win_rate) for each in own.raw]
    leads = {(line["model"], line["task"]): line for line in chains["capacity"] if line["chains"] == "long"}
    assert [line["src"] for line in leads.values()] == [1.0, 1.0, 0.0, 0.0]


def test_patterns_are_counted_over_the_grid(finished):
    _, folder, _ = finished
    found = folder.summary()["analyses"]["reasoning_patterns"]
    lines, [counts] = found["parts"]["Chains of the grid"], found["parts"]["Patterns over the grid"]
    assert [line["accuracy"] for line in lines] == [1.0, None, 1.0, None]
    assert counts["n"] == len(lines) == 4
    by_hand = Counter(line["verdict"].split()[0] for line in lines)
    assert by_hand == {name: counts[name] for name in by_hand}
    assert found["notes"][0].startswith("Of 4 configurations (model, task, operator, k): ")


def test_raw_scores_are_pooled_over_the_grid_without_controls(finished):
    _, folder, _ = finished
    summary = folder.summary()
    pooled = summary["analyses"]["raw_scores"]["parts"]["Raw scores and win rates over the grid"]
    kept = [line for line in summary["chains"]["raw"] if line["attribution"] == "self-report"]
    assert len(kept) == 8 and {line["attribution"] for line in pooled} == {"self-report"}
    for measure in ("sufficiency", "comprehensiveness", "both"):
        own = [line for line in kept if measure in (line["measure"], "both")]
        words = Counter((line["raw"] >= 0.5, line["win_rate"] >= 0.55) for line in own)
        [found] = [line for line in pooled if line["measure"] == measure]
        names = ("n", "both", "raw_only", "win_rate_only", "neither")
        assert [found[name] for name in names] == [
            len(own), words[True, True], words[True, False], words[False, True], words[False, False]
        ]  # fmt: skip
        assert found["disagree"] == (words[True, False] + words[False, True]) / len(own)


def test_reports_and_data_name_models_and_tasks_in_place_of_numbers(finished):
    grid, folder, _ = finished
    summaries = [each.summary() for each in folder.finished()]
    by_title = {table.title: table for table in tables(summaries)}
    table = by_title["Do the steps carry the answer?"]
    assert table.header[:2] == ("model", "task") and "run" not in table.header
    assert len({row[:2] for row in table.rows}) == 4
    first = data_of(folder.finished(), summaries)[0]
    assert first.name == "chains_capacity"
    assert {(row["model"], row["task"], row["accuracy"]) for row in first.rows} == {
        (run["model"], run["task"], run["accuracy"]) for run in folder.summary()["runs"]
    }
    content = page(folder.finished(), budget=0)
    assert {"Reasoning patterns", "Raw scores"} == {each["title"] for each in content["grid"].answers}
    assert "openai:m (" in (folder.path / "report.html").read_text("utf-8")
    assert any(path.name.startswith("chain-") for path in (folder.path / "figures").iterdir())
    assert results_of(finished_runs(grid, folder)).chains.keys() == {run.name for run in grid.runs()}


def test_a_finished_grid_asks_nothing_and_more_of_it_only_what_is_missing(finished, home):
    grid, folder, servers = finished
    before, asked = (folder.path / "bench.json").read_text(), [len(each.requests) for each in servers]
    run_grid(grid, folder.path)
    assert (folder.path / "bench.json").read_text() == before
    assert [len(each.requests) for each in servers] == asked
    for changes in ({"operators": ["delete", "shuffle"]}, {"poses": ["user", "neutral"]}, {"answer_tokens": 256}):
        source = {**grid.source, **changes}
        wider = grid_of(source, where="grid", folder=home, default_name="small")
        assert [run.name for run in wider.runs()] == [run.name for run in grid.runs()]
        assert not any(map(folder.is_complete, wider.runs()))
    other = grid_of({**grid.source, "poses": ["neutral"]}, where="grid", folder=home, default_name="small")
    assert not {run.name for run in other.runs()} & {run.name for run in grid.runs()}


def test_an_operator_that_is_added_continues_the_run(home, tmp_path):
    with ChatServer(Reasoner()) as server:
        models = [{"model": "openai:m", "base_url": server.url}]
        run_grid(chains_of(home, models, n=2), tmp_path / "bench")
        wider = chains_of(home, models, n=2, operators=["delete", "shuffle"])
        folder = run_grid(wider, tmp_path / "bench")
        assert len(list((folder.path / "runs").iterdir())) == 1 and folder.is_complete(wider.runs()[0])
        n = len(server.requests)
        run_grid(wider, tmp_path / "bench")
        assert len(server.requests) == n


class Interrupting(Silent):
    def say(self, message):
        if message.startswith("[2/"):
            raise KeyboardInterrupt


def test_an_interrupted_grid_goes_on_and_has_the_same_summary(home, tmp_path):
    with ChatServer(Reasoner()) as server:
        models = [{"model": f"openai:{name}", "base_url": server.url} for name in ("a", "b")]
        grid = chains_of(home, models, n=2, attributions=["random"])
        with pytest.raises(KeyboardInterrupt):
            run_grid(grid, tmp_path / "stopped", reporter=Interrupting())
        assert [x.status for x in BenchFolder(tmp_path / "stopped").records()] == ["complete", "waiting"]
        resumed = run_grid(BenchFolder(tmp_path / "stopped").grid(), tmp_path / "stopped")
        whole = run_grid(grid, tmp_path / "whole")
    assert (resumed.path / "bench.json").read_text() == (whole.path / "bench.json").read_text()


def test_a_server_that_is_not_there_fails_its_run_alone_and_is_tried_again(home, tmp_path):
    with ChatServer(Reasoner()) as server:
        lost = {"model": "openai:lost", "base_url": NOWHERE, "timeout": 2}
        few = {"n": 2, "attributions": ["random"]}
        both = chains_of(home, [lost, {"model": "openai:m", "base_url": server.url}], **few)
        folder = run_grid(both, tmp_path / "bench")
        failed, complete = folder.records()
        assert (failed.status, complete.status) == ("failed", "complete") and "127.0.0.1:1" in failed.error
        assert [line["model"] for line in folder.summary()["chains"]["capacity"]] == ["openai:m"] * 3
        found = {**lost, "base_url": server.url}
        folder = run_grid(chains_of(home, [found, {"model": "openai:m", "base_url": server.url}], **few), folder.path)
    assert [record.status for record in folder.records()] == ["complete"] * 2


def test_a_plan_counts_requests_and_their_cost_and_asks_nothing(home, tmp_path):
    models = [{"model": "openai:m", "base_url": NOWHERE, "price_in": 1, "price_out": 2, "max_requests": 9}]
    grid = chains_of(home, models, tasks=["gsm8k", {"responses": "written.jsonl"}])
    unwritten, written = plan_grid(grid, BenchFolder(tmp_path))
    assert (unwritten.n, written.n) == (3, 3)
    # The chain, and a rating; the same rows of six steps are asked about either way.
    assert unwritten.rows - written.rows == 3 and written.rows > 30
    assert unwritten.cost > written.cost > 0 and unwritten.exceeds == "9 requests (--max-requests)"
    assert unwritten.minutes is None and unwritten.status == "waiting"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ["gsm8k", "sst2"]}, "a grid is about texts or about chains of thought, and 'gsm8k' is about chains"),
        ({"tasks": ["citations"]}, "'citations' is about cited answers, and a grid takes tasks about texts or chains"),
        ({"tasks": ["gsm9k"]}, "no task named 'gsm9k'; did you mean 'gsm8k'"),
        ({"tasks": [{"task": "sst2", "responses": "written.jsonl"}]}, "'responses' are chains of thought, and 'sst2'"),
        ({"tasks": [{"responses": "nowhere.jsonl"}]}, "there is no file .*nowhere.jsonl of chains"),
        ({"tasks": [{"data": "gsm8k.jsonl"}]}, "an entry has no 'task'; it has data"),
        ({"eraser": True}, "--eraser is about texts, and the task 'gsm8k' is about chains of thought"),
        ({"unit": "word"}, "--unit is about texts"),
        ({"chat": True}, "--chat is about texts"),
        ({"protocol": "paper"}, "--protocol is about texts"),
        ({"prompts": "all"}, "'prompts' are those of tasks about texts"),
        (
            {"tasks": ["sst2"], "unit": "word", "repeats": 5},
            "--repeats is about chains of thought, and the task 'sst2'",
        ),
        ({"models": [{"model": "openai:m", "tokenizer": "toy"}]}, "--tokenizer is about texts"),
        ({"operators": ["infill"]}, "the operator 'infill' does not work on steps"),
        ({"poses": ["usr"]}, "poses 'usr'; did you mean 'user'"),
        ({"temperature": "warm"}, "temperature: a number or 'server' is expected, not 'warm'"),
        ({"levels": True}, "'levels' look into the model, and 'openai:m' is behind a server"),
        ({"models": ["toy"]}, "'base_url' applies only to served models, and the grid"),
        ({"models": ["openai:m", "openai:m"]}, "'openai:m' is listed twice"),
    ],
)
def test_what_cannot_be_is_said_when_the_grid_is_read(home, changes, message):
    with pytest.raises(ConfigError, match=message):
        chains_of(home, **{"models": ["openai:m"], "base_url": NOWHERE, **changes})


def test_chains_are_not_spread_over_a_cluster(home, tmp_path):
    grid = chains_of(home, ["openai:m"], base_url=NOWHERE)
    with pytest.raises(ConfigError, match="--executor is about texts, and the task 'gsm8k' is about chains of thought"):
        run_grid(grid, tmp_path / "bench", executor=Ray())
    assert not (tmp_path / "bench").exists()


def test_two_folders_of_one_name_are_two_models(home, tmp_path):
    for name in ("first", "second"):
        (tmp_path / name / "model").mkdir(parents=True)
    models = [str(tmp_path / name / "model") for name in ("first", "second")]
    grid = chains_of(home, models)
    assert [each.name for each in grid.models] == ["model", f"model ({tmp_path / 'second'})"]
    assert len({run.name for run in grid.runs()}) == 2
