"""German: GermEval 2017."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import HubData


@task("german")
def german() -> Task:
    """Opinion in German posts about railway travel (GermEval 2017: Wojatzki et al., 2017), without the neutral ones.

    No revision is published for it, so the hub's current one is read.
    """
    return Task(
        data=HubData(
            "akash418/germeval_2017",
            split="test",
            fields={"label": "sentiment"},
            labels={"negative": "negative", "positive": "positive"},
            only_labels=True,
        ),
        language="de",
        prompt="Beitrag: {text}\nMeinung:",
        label_words={"negative": " negativ", "positive": " positiv"},
        worked=(
            Shot({"text": "Der Zug fiel ohne jede Durchsage aus."}, "negative"),
            Shot({"text": "Sehr freundliches Personal und pünktlich am Ziel."}, "positive"),
        ),
        lexicon=frozenset(
            "schlecht schlechter schlimm furchtbar ärgerlich nervig unfreundlich unverschämt katastrophe chaos "
            "gut gute guter super toll klasse prima freundlich danke zufrieden schön angenehm".split()
        ),
    )
