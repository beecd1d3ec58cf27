"""e-SNLI."""

from ice_eval.tasks._base import Shot, Task, Wording, task
from ice_eval.tasks._data import HubData

_LABELS = ("entailment", "neutral", "contradiction")


def _words(*words: str) -> dict[str, str]:
    return dict(zip(_LABELS, words, strict=True))


@task("esnli")
def esnli() -> Task:
    """Whether a premise entails a hypothesis, contradicts it or neither (Camburu et al., 2018).

    Files may give the words that people highlighted, as `highlights_premise` and `highlights_hypothesis`; the hub's
    copy has none.
    """
    return Task(
        data=HubData("esnli/esnli", revision="a160e6a02bbb8d8", labels=dict(enumerate(_LABELS))),
        language="en",
        prompt="Premise: {premise}\nHypothesis: {hypothesis}\nRelation:",
        label_words=_words(" entailment", " neutral", " contradiction"),
        variants={
            "verb": Wording(
                "Premise: {premise}\nHypothesis: {hypothesis}\nDoes the first prove, allow or refute the second? It",
                _words(" proves", " allows", " refutes"),
            ),
            "true-false-unknown": Wording(
                "Premise: {premise}\nHypothesis: {hypothesis}\nTrue, false or unknown? The hypothesis is",
                _words(" true", " unknown", " false"),
            ),
        },
        worked=(
            Shot({"premise": "Two boys kick a ball in a park.", "hypothesis": "Children are outside."}, "entailment"),
            Shot({"premise": "A woman reads on a bench.", "hypothesis": "She waits for a friend."}, "neutral"),
            Shot({"premise": "A man cooks soup at home.", "hypothesis": "The man is asleep."}, "contradiction"),
        ),
    )
