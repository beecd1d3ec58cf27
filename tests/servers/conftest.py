import pytest


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "responses.jsonl"
