"""Questions about a passage, of which only the passage is explained: BoolQ and MultiRC."""

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


@task("multirc")
def multirc() -> Task:
    """Whether a candidate answer is right, from a passage (Khashabi et al., 2018); only the passage is explained.

    ERASER's files have the sentences that people chose as `rationale`; the hub's copy, of SuperGLUE, has none.
    """
    return Task(
        data=HubData(
            "aps/super_glue",
            config="multirc",
            revision="3de24cf8022e94f4ee4b9d55a6f539891524d646",
            fields={"passage": "paragraph"},
            labels={0: "false", 1: "true"},
        ),
        language="en",
        prompt="{passage}\nQuestion: {question}\nCandidate answer: {answer}\nThe candidate answer is",
        label_words={"false": " false", "true": " true"},
        explain=("passage",),
    )
