"""BoolQ."""

from ice_eval.tasks._base import Task, task
from ice_eval.tasks._data import HubData


@task("boolq")
def boolq() -> Task:
    """Yes or no to a question, from a passage (Clark et al., 2019); the passage is explained, the question stays."""
    return Task(
        data=HubData(
            "google/boolq",
            revision="35b264d03638db9f4ce671b711558bf7ff0f80d5",
            fields={"label": "answer"},
            labels={False: "no", True: "yes"},
        ),
        language="en",
        prompt="{passage}\nQuestion: {question}?\nAnswer:",
        label_words={"no": " no", "yes": " yes"},
        explain=("passage",),
    )
