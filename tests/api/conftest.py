import pytest

import ice_eval
from ice_eval.tasks import Records, Task

TEXTS = [
    "a gorgeous witty film with a great cast and one dull scene",
    "the worst film of the year boring cold and far too long",
    "warm and fun from the first scene to the very last one",
    "a broken plot a rude cast and a terrible ending to it all",
]


@pytest.fixture
def task():
    return Task(
        data=Records([{"text": text, "label": 1 - i % 2} for i, text in enumerate(TEXTS)]),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        name="reviews",
    )


@pytest.fixture
def evaluate(task, tmp_path):
    def call(**settings):
        defaults = {"model": "toy", "task": task, "attributions": ["attention"], "m": 6, "out": tmp_path / "run"}
        return ice_eval.evaluate(**defaults | settings)

    return call
