"""What methods share that follow gradients through the space of embeddings."""

import itertools
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import CapabilityError, ConfigError
from ice_eval.models import EmbeddedText
from ice_eval.records import Encoded, PerToken

Baseline = Literal["zero", "pad"]


class Step(NamedTuple):
    """A point where the gradient is taken, and the way that it is multiplied with; (tokens, width) each."""

    point: NDArray[np.float64]
    way: NDArray[np.float64]


def check_baseline(name: str) -> None:
    """Refuse a baseline that there is not.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in get_args(Baseline):
        raise ConfigError(f"baseline = '{name}'; {' or '.join(get_args(Baseline))} is expected.")


def baseline_of(text: EmbeddedText, name: Baseline) -> NDArray[np.float64]:
    """(tokens, width): a text that says nothing."""
    if name == "zero":
        return np.zeros_like(text.embedding)
    if text.pad is None:
        raise CapabilityError("the model has neither a padding token nor an end of text; use baseline=zero.")
    return np.broadcast_to(text.pad, text.embedding.shape)


def between(start: NDArray[np.float64], end: NDArray[np.float64], share: float) -> Step:
    """The point that lies that share of the way from start to end, and the whole way."""
    return Step(start + share * (end - start), end - start)


def weighted_products(text: EmbeddedText, steps: Iterable[Step], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(tokens,): gradients times ways, summed over steps with their weights; a few steps share a pass.

    Steps are made as they are needed: all those of a long text would fill the memory.
    """
    total, waiting = np.zeros(len(text.tokens)), iter(steps)
    for start in range(0, len(weights), text.at_once):
        some = list(itertools.islice(waiting, text.at_once))
        slopes = text.gradients(np.stack([step.point for step in some]))
        ways = np.stack([step.way for step in some])
        total += np.einsum("p,ptd,ptd->t", weights[start : start + len(some)], slopes, ways)
    return total


def at_tokens(item: Encoded, text: EmbeddedText, values: NDArray[np.float64]) -> PerToken:
    """Numbers of the tokens that move, at their places among all tokens."""
    found = np.zeros(len(item.ids))
    found[text.tokens] = values
    return found
