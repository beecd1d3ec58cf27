"""Requests to a model and its answers, beside scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.choices import LabelScoring as LabelScoring
from ice_eval.records import Ids, LabelIds, LogScores, PerToken

Prior = Sequence[float]
"""Log-scores of the labels without a text, which contextual calibration takes off."""


@dataclass(frozen=True)
class Labels:
    """Labels of a task as a model scores them."""

    names: tuple[str, ...]
    ids: LabelIds
    """Token ids of the label words; for a classifier the index of the class, alone."""
    scoring: LabelScoring = "first"
    """By the first token of the label word, or by all of them (chain rule)."""
    are_classes: bool = False
    """True if `ids` are indices of classes, not tokens."""
    classes: tuple[str, ...] = ()
    """Names of all classes of a classifier, in their order; empty where they have none."""
    note: str | None = None
    """A message for the user on how labels were matched."""

    @property
    def is_open(self) -> bool:
        """True if there is a single answer: its score is its log-probability among all texts."""
        return len(self.ids) == 1

    @property
    def reserve(self) -> int:
        """Tokens that a label adds to the input."""
        return max(len(ids) for ids in self.ids) - 1 if self.scoring == "full" else 0


class Pending(NamedTuple):
    """Scores that may still be computed by a device."""

    collect: Callable[[], LogScores]
    """Waits for them."""
    tokens: int
    """Tokens that they cost."""
    holds: object = None
    """Objects that the device still reads for them."""


class Gradients(NamedTuple):
    """Embedding of every token, and the gradient of the target's log-odds there; both (tokens, width).

    Tokens that all examples begin with, which are computed once for all, have no gradient: they belong to no unit.
    """

    embedding: NDArray[np.float64]
    gradient: NDArray[np.float64]


@dataclass
class Observations:
    """Attentions and gradients of some examples, in their order; empty where not requested."""

    attentions: list[PerToken] = field(default_factory=list)
    gradients: list[Gradients] = field(default_factory=list)

    def __iadd__(self, other: "Observations") -> "Observations":
        self.attentions += other.attentions
        self.gradients += other.gradients
        return self


class AttentionMaps(NamedTuple):
    """All attention weights of one example, (layers, heads, queries, keys)."""

    weights: NDArray[np.float32]
    gradients: NDArray[np.float32] | None
    """Gradients of the target's log-odds with respect to the weights; None where not requested."""
    position: int
    """The token that answers."""


class Generated(NamedTuple):
    """A completion of a prompt."""

    text: str | None
    """None where the prompt and an answer do not fit into what the model takes."""
    tokens: int
    """Tokens that it cost: those of the prompt, and those that were written."""


class Conversation(NamedTuple):
    """A chat that a model is to go on with."""

    turns: Sequence[tuple[str, str]]
    """Role and text of each turn so far."""
    max_tokens: int
    """Longest answer."""
    temperature: float = 0.0
    """0: at every step the likeliest token."""
    uniforms: Callable[[int], NDArray[np.float64]] | None = None
    """So many numbers in [0, 1), always the same: one for each step, by which a token is drawn at its temperature."""


class Reply(NamedTuple):
    """The turn that a model added to a chat."""

    text: str | None
    """None where the chat leaves no room for an answer in what the model takes."""
    n_read: int
    """Tokens of the chat, as its template writes them."""
    n_written: int = 0
    """Tokens of the answer, with the one that ends it."""
    ended: bool = False
    """Whether the model came to an end; False: the limit cut it."""


class EmbeddedText(ABC):
    """One example as points in the space of embeddings: those of the tokens of its units move, the template stays."""

    tokens: Ids
    """(tokens,): places of the tokens that move."""
    embedding: NDArray[np.float64]
    """(tokens, width): where they are in the text."""
    pad: NDArray[np.float64] | None
    """(width,): the embedding of padding, or of the end of a text where there is no padding token."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Points that suit one pass."""

    @abstractmethod
    def log_odds(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(points, tokens, width) -> (points,): log-odds of the target."""

    @abstractmethod
    def gradients(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(points, tokens, width) -> the same: gradients of the log-odds."""
