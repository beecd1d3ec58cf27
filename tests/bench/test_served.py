"""Grids with a model behind a server."""

import pytest
from tests.servers.bag_server import Bag
from tests.servers.chat_server import ChatServer

from ice_eval.bench import BenchFolder, run_grid
from ice_eval.errors import ConfigError
from ice_eval.servers import read_responses

FEW = {"unit": "word", "attributions": ["random"], "operators": ["delete"], "n": 2, "m": 3}
NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def served(url=NOWHERE, **more):
    return {"model": "openai:bag", "base_url": url, **more}


def test_a_model_behind_a_server_runs_beside_one_that_is_loaded(grid, tmp_path):
    with ChatServer(Bag()) as server:
        chosen = grid(models=["toy", served(server.url, name="mine")], device="cpu", **FEW)
        folder = run_grid(chosen, tmp_path / "bench")
    assert [record.status for record in folder.records()] == ["complete"] * 4
    manifests = [folder.run_folder(run.name).manifest() for run in chosen.runs() if run.model.is_served]
    assert [found.config.model for found in manifests] == ["mine", "mine"]
    assert [found.identity["weights"] for found in manifests] == ["openai:bag, texts cut by words"] * 2
    # The answers of a run are in its own folder, and in no other.
    asked = [{each.key for each in read_responses(each.path / "responses.jsonl")} for each in folder.finished()[2:]]
    assert sum(map(len, asked)) == len(set.union(*asked)) == len(server.requests)


def test_at_its_limit_a_run_fails_and_with_a_higher_one_the_grid_goes_on(grid, tmp_path):
    with ChatServer(Bag()) as server:
        few = {**FEW, "prompts": "standard"}
        run_grid(grid(models=[served(server.url, max_requests=4)], **few), tmp_path / "bench")
        [record] = BenchFolder(tmp_path / "bench").records()
        assert (record.status, "the limit of 4 requests" in str(record.error)) == ("failed", True)
        run_grid(grid(models=[served(server.url, max_requests=400)], **few), tmp_path / "bench")
        [again] = BenchFolder(tmp_path / "bench").records()
    assert (again.name, again.status) == (record.name, "complete")


def test_another_address_continues_and_another_tokenizer_is_another_run(grid):
    [first, moved, other] = (
        grid(models=[served(**changes)], **FEW, prompts="standard").runs()[0].name
        for changes in ({}, {"url": "http://127.0.0.1:2/v1"}, {"tokenizer": "toy"})
    )
    assert first == moved != other


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"models": ["openai:m"]},
            r"'openai:m' is served; add its address: \{model: openai:m, base_url: http",
        ),
        ({"models": [{"model": "toy", "base_url": NOWHERE}]}, "'base_url' applies only to served models, and 'toy'"),
        ({"models": [served(device="cpu")]}, "'device' applies only to models loaded here, and 'openai:bag' is"),
        ({"models": [served("nowhere")]}, "models: --base-url is no address"),
        ({"models": [served(max_cost=1)]}, "models: --max-cost needs --price-in"),
        ({"models": [served(price_in="dear")]}, "price_in: a number is expected, not 'dear'"),
        ({"models": [served()], "unit": "token"}, "'openai:bag' is behind a server, .*; give `unit: word`"),
    ],
)
def test_what_cannot_be_is_said_when_the_grid_is_read(grid, changes, message):
    with pytest.raises(ConfigError, match=message):
        grid(**FEW | changes)


def test_an_address_with_a_password_is_refused_and_not_repeated(grid):
    with pytest.raises(ConfigError) as refused:
        grid(models=[served("http://me:hidden-word@127.0.0.1:1/v1")], **FEW)
    assert "hidden-word" not in str(refused.value)
