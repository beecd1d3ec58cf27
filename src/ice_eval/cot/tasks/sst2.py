"""SST-2."""

from ice_eval.cot.tasks._base import CotTask, cot_task
from ice_eval.cot.tasks._labels import label_task


@cot_task("sst2")
def sst2() -> CotTask:
    """Sentiment of one film-review sentence (Socher et al., 2013)."""
    return label_task(
        "sst2",
        question="Does this sentence from a film review speak well of the film or badly?\n\n{text}",
        words={"negative": (), "positive": ()},
        text="the jokes fall flat and the story drags.",
        steps=('"Fall flat" says that the jokes do not work.', '"Drags" says that the story is too slow.'),
        answer="negative",
    )
