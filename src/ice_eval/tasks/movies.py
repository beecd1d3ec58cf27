"""ERASER's film reviews."""

from ice_eval.tasks._base import Task, task
from ice_eval.tasks._data import HubData
from ice_eval.tasks._reviews import VERDICTS, worked_reviews


@task("movies")
def movies() -> Task:
    """Sentiment of long film reviews with passages that people marked (Zaidan et al., 2007; ERASER).

    No revision is published for it, so the hub's current one is read.
    """
    return Task(
        data=HubData(
            "eraser-benchmark/movie_rationales",
            split="test",
            fields={"text": "review"},
            labels={0: "negative", 1: "positive"},
            quotes="evidences",
        ),
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        worked=worked_reviews(),
        lexicon=VERDICTS,
    )
