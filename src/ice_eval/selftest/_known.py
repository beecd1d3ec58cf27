"""Models whose truth is known, and attributions that know it to a degree."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ice_eval.attributions import Attribution, Computed
from ice_eval.models import Model
from ice_eval.models.toy import BIAS, WEIGHTS, Toy
from ice_eval.records import Encoded, PerUnit
from ice_eval.seeding import rng_for
from ice_eval.selftest._texts import NEUTRAL, texts
from ice_eval.tasks import Records, Task

PROMPT = "Review: {text}\nSentiment:"
LABEL_WORDS = {"negative": " negative", "positive": " positive"}


@dataclass(frozen=True)
class KnownModel:
    """A model that ranks rows of equal length by the sum of what their words contribute."""

    name: str
    model: Model
    decisive: Mapping[str, float]
    """What a word adds to the side of the second label."""
    fillers: Mapping[str, float]
    """The same of the words that stand between decisive ones: little or nothing."""
    bias: float = 0.0
    sparse: float = 0.0
    """Share of texts with a single decisive word, so that many sets tie at the top and at the bottom."""
    unique: bool = False
    """Whether the best set of a text, and the worst, never tie with another."""

    def task(self, n: int, *, seed: int, purpose: str) -> Task:
        """`n` texts of its words. They have no labels: infill may write words that contribute, and is noisy."""
        settings = {"bias": self.bias, "sparse": self.sparse}
        drawn = texts(n, self.decisive, self.fillers, **settings, seed=seed, purpose=purpose)
        rows = [{"id": f"{purpose}-{index}", "text": text} for index, text in enumerate(drawn)]
        return Task(data=Records(rows), prompt=PROMPT, label_words=LABEL_WORDS, name=f"selftest-{purpose}")

    def truth(self, item: Encoded) -> PerUnit:
        """What each unit contributes to the label that the model predicts."""
        every = {**self.decisive, **self.fillers}
        values = np.array([every[text.strip()] for text in item.texts])
        return values if self.bias + values.sum() > 0 else -values

    def attribution(self, *, noise: float = 0.0, sign: float = 1.0, seed: int = 0) -> Attribution:
        """The truth, with noise of so many spreads, or its negation."""

        def function(item: Encoded) -> PerUnit:
            truth = sign * self.truth(item)
            draws = rng_for(seed, item.example_id, "selftest-noise", repr(noise)).standard_normal(item.n_units)
            disturbed: PerUnit = truth + noise * truth.std() * draws
            return disturbed

        return Computed(function=function)


def toy() -> KnownModel:
    """The bag of words that ships with the package."""
    return KnownModel("toy", Toy(), WEIGHTS, dict.fromkeys(NEUTRAL, 0.0), bias=BIAS, sparse=0.25)
