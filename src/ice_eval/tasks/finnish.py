"""Finnish: prompt and label words."""

from ice_eval.tasks._base import Shot, Task, task
from ice_eval.tasks._data import NoData


@task("finnish")
def finnish() -> Task:
    """Sentiment of Finnish reviews; bring the texts with --data."""
    return Task(
        data=NoData(),
        language="fi",
        prompt="Arvostelu: {text}\nSävy:",
        label_words={"negative": " kielteinen", "positive": " myönteinen"},
        worked=(
            Shot({"text": "Tarina laahaa ja loppu oli pettymys."}, "negative"),
            Shot({"text": "Ihana elokuva, suosittelen kaikille."}, "positive"),
        ),
        lexicon=frozenset(
            "huono huonoin surkea tylsä pettymys kamala ikävä heikko turha kehno "
            "hyvä paras erinomainen loistava upea ihana mahtava hieno kaunis hauska".split()
        ),
    )
