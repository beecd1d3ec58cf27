"""The demo: short reviews that ship with the package, so that it runs on a machine without a hub."""

from ice_eval.tasks._base import Task, Wording, task
from ice_eval.tasks._data import PackageData
from ice_eval.tasks._reviews import worked_reviews


@task("demo")
def demo() -> Task:
    """Sentiment of short reviews written for this package, with four worked examples before each."""
    return Task(
        data=PackageData("demo.jsonl"),
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        shots=worked_reviews(),
        variants={"question": Wording("Review: {text}\nIs this review positive or negative? It is")},
    )
