"""The demo: short reviews that ship with the package, so that it runs on a machine without a hub."""

import functools

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import PackageData


@functools.cache
def _shots() -> tuple[Shot, ...]:
    return tuple(Shot({"text": row["text"]}, row["label"]) for row in PackageData("demo_shots.jsonl").rows())


@task("demo")
def demo() -> Task:
    """Sentiment of short reviews written for this package, with four worked examples before each."""
    return Task(
        data=PackageData("demo.jsonl"),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        shots=_shots(),
    )
