from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers import save_tiny

from ice_eval.models import Model, load_model
from ice_eval.tasks import Records, Task, load_task


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Family -> a folder with a tiny model of it."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            save_tiny(made[family], family)
        return made[family]

    return folder


@pytest.fixture
def tiny(tiny_folder: Callable[[str], Path]) -> Callable[[str], Model]:
    """Family -> a tiny model of it, freshly loaded."""
    return lambda family: load_model(str(tiny_folder(family)), device="cpu")


@pytest.fixture
def reviews() -> Task:
    """Reviews after two shots."""
    task = load_task("demo")
    return Task(
        data=task.data,
        prompt=task.prompt,
        label_words=task.label_words,
        shots=task.shots[:2],
    )


@pytest.fixture
def long_labels() -> Task:
    """Labels that begin alike, so that the chain rule decides."""
    return Task(
        data=Records([{"text": "a film with a slow start"}]),
        prompt="Review: {text}\nSentiment:",
        label_words={"bad": " very bad", "good": " very good"},
    )
