"""SST-2."""

from ice_eval.tasks._base import Task, Wording, task
from ice_eval.tasks._data import HubData
from ice_eval.tasks._reviews import VERDICTS, worked_reviews


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
        language="en",
        prompt="Review: {text}\nSentiment:",
        label_words={"negative": " negative", "positive": " positive"},
        variants={
            "minimal": Wording("{text}\nSentiment:"),
            "question": Wording("Review: {text}\nIs this review positive or negative? It is"),
            "completion": Wording("{text} In short, the film was", {"negative": " bad", "positive": " good"}),
            "quoted": Wording('A viewer wrote: "{text}"\nThis opinion of the film is'),
        },
        worked=worked_reviews(),
        lexicon=VERDICTS,
    )
