import pytest
from tests.toy_runs import run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of 24 reviews; nobody may change its folder."""
    return run(out=tmp_path_factory.mktemp("finished") / "run")
