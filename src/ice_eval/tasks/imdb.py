"""IMDB."""

from ice_eval.tasks._base import Task, Wording, task
from ice_eval.tasks._data import HubData
from ice_eval.tasks._reviews import VERDICTS, worked_reviews


@task("imdb")
def imdb() -> Task:
    """Sentiment of whole film reviews (Maas et al., 2011)."""
    return Task(
        data=HubData(
            "stanfordnlp/imdb",
            split="test",
            revision="e6281661ce1c48d",
            labels={0: "negative", 1: "positive"},
        ),
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        variants={
            "rating": Wording(
                "Review: {text}\nStars, from one (worst) to five (best):", {"negative": " one", "positive": " five"}
            ),
            "yes-no": Wording(
                "Review: {text}\nDid the writer like the film, yes or no?", {"negative": " no", "positive": " yes"}
            ),
        },
        worked=worked_reviews(),
        lexicon=VERDICTS,
    )
