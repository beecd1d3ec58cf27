import numpy as np
import pytest
from tests.small_runs import Waves, picks, run, task_of, texts

from ice_eval.seeding import rng_for

N = 40


def annotated():
    """Texts in which somebody marked three words at random, two of them neighbours; and the places of those words."""
    rng = np.random.default_rng(7)
    for text in texts(N):
        words, first = text.split(), int(rng.integers(0, 5))
        starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
        spans = [[starts[place], starts[place] + len(words[place])] for place in (first, first + 1, 8)]
        yield {"text": text, "rationale": spans}, (first, first + 1, 8)


def drawn(name):
    """An attribution of independent random numbers."""
    return lambda item: rng_for(0, name, item.example_id).random(item.n_units)


@pytest.fixture(scope="package")
def small():
    """A finished run with human rationales: numbers out of a hat, helpful ones, and the marks with a little noise."""
    records, places = zip(*annotated(), strict=True)

    def marked(item):
        return np.isin(np.arange(item.n_units), places[int(item.example_id)]) + 0.1 * drawn("noise")(item)

    methods = {"hat": drawn("hat"), "other": drawn("other"), "marked": marked, "useful": picks("useful", towards=5.0)}
    return run(task_of(records), model=Waves(), attributions=methods, operators=["delete", "mask-unk"], m=10, n=N)


@pytest.fixture(scope="package")
def unannotated():
    """A finished run without human rationales, of one attribution and single-unit rationales."""
    return run(texts(6), attributions={"hat": drawn("hat")}, m=5, k=0.05)
