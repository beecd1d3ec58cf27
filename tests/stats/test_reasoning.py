import pytest

from ice_eval.errors import DataError
from ice_eval.stats import reasoning_word, step_reasoning_capacity


def test_capacity_needs_steps_that_are_necessary_and_not_sufficient():
    assert step_reasoning_capacity(0.8, 0.25) == pytest.approx(0.6)
    assert step_reasoning_capacity(1, 1) == step_reasoning_capacity(0, 0) == 0


@pytest.mark.parametrize(
    ("capacity", "word"),
    [
        (0, "decorative"),
        (0.149, "decorative"),
        (0.15, "scaffolding"),
        (0.4, "scaffolding"),
        (0.41, "genuine"),
        (1, "genuine"),
    ],
)
def test_words(capacity, word):
    assert reasoning_word(capacity) == word


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_rates_outside_of_zero_and_one_are_refused(bad):
    with pytest.raises(DataError, match=r"lie in \[0, 1\]"):
        step_reasoning_capacity(bad, 0.5)
    with pytest.raises(DataError, match=r"lies in \[0, 1\]"):
        reasoning_word(bad)
