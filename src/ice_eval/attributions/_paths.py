"""What methods share that follow gradients through the space of embeddings."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ice_eval.errors import CapabilityError
from ice_eval.models import EmbeddedText
from ice_eval.records import Encoded, PerToken

Baseline = Literal["zero", "pad"]
Point = Callable[[], NDArray[np.float64]]
"""Gives (tokens, width); made only when it is needed, since all points of a long text would fill the memory."""


def baseline_of(text: EmbeddedText, name: Baseline) -> NDArray[np.float64]:
    """(tokens, width): a text that says nothing."""
    if name == "zero":
        return np.zeros_like(text.embedding)
    if text.pad is None:
        raise CapabilityError("the model has neither a padding token nor an end of text; use baseline=zero.")
    return np.broadcast_to(text.pad, text.embedding.shape)


def between(start: NDArray[np.float64], end: NDArray[np.float64], share: float | np.float64) -> NDArray[np.float64]:
    """The point that lies that share of the way from start to end."""
    return start + share * (end - start)


def weighted_gradient(text: EmbeddedText, points: Sequence[Point], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(tokens, width): sum of the gradients at some points, each times its weight, a few points per pass."""
    total = np.zeros_like(text.embedding)
    for start in range(0, len(points), text.at_once):
        chosen = slice(start, start + text.at_once)
        slopes = text.gradients(np.stack([point() for point in points[chosen]]))
        total += np.einsum("p,ptd->td", weights[chosen], slopes)
    return total


def at_tokens(item: Encoded, text: EmbeddedText, values: NDArray[np.float64]) -> PerToken:
    """Numbers of the tokens that move, at their places among all tokens."""
    found = np.zeros(len(item.ids))
    found[text.tokens] = values
    return found
