import pytest
from tests.small_grids import content, write_reviews

from ice_eval.bench import grid_of, run_grid


@pytest.fixture(autouse=True)
def without_figures(monkeypatch):
    """Drawing takes longer than all else; the grid that is `finished` has figures."""
    monkeypatch.setattr("ice_eval.bench.run.write_grid_figures", lambda *_: [])


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    return write_reviews(tmp_path_factory.mktemp("bench-data") / "reviews.jsonl")


@pytest.fixture
def grid(reviews, tmp_path):
    """Make a grid: `grid(models=["toy"])`."""
    return lambda **changes: grid_of(content(reviews, **changes), where="grid", folder=tmp_path, default_name="small")


@pytest.fixture(scope="session")
def finished(reviews, tmp_path_factory):
    """A grid that was run, and its folder; nobody may change it."""
    folder = tmp_path_factory.mktemp("bench")
    chosen = grid_of(content(reviews), where="grid", folder=folder, default_name="small")
    return chosen, run_grid(chosen, folder / "bench")
