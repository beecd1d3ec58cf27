from collections.abc import Callable
from pathlib import Path

import pytest

from ice_eval.models import Model, load_model
from ice_eval.tasks import Records, Task, load_task


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
