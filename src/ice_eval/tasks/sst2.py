"""SST-2."""

from ice_eval.tasks._base import Task, task
from ice_eval.tasks._data import HubData


@task("sst2")
def sst2() -> Task:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    return Task(
        data=HubData(
            "nyu-mll/glue",
            config="sst2",
            split="validation",
            revision="bcdcba79d07bc86",
            fields={"text": "sentence"},
            labels={0: "negative", 1: "positive"},
        ),
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
    )
