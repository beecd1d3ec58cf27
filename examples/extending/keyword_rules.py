"""A model of your own: any function from texts to label probabilities, and a name for it."""

from ice_eval.models import LoadSettings, Model, load_model, model

POINTS = {"gorgeous": 2, "great": 2, "good": 1, "fun": 1, "slow": -1, "dull": -1, "terrible": -2, "worst": -2}


def probabilities(texts: list[str]) -> list[list[float]]:
    """A row of (negative, positive) for each text: every keyword moves the probability by a tenth."""
    points = [sum(POINTS.get(word, 0) for word in text.lower().split()) for text in texts]
    positive = [min(max(0.5 + 0.1 * each, 0.01), 0.99) for each in points]
    return [[1 - each, each] for each in positive]


@model("keyword-rules")
def keyword_rules(how: LoadSettings) -> Model:
    """Eight keywords with points."""
    how.refuse_for("a set of rules")
    return load_model(probabilities)
