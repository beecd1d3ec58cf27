"""Rows of tables that figures can be drawn from beside runs: a paper's own numbers, or a grid's."""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """Of one model on one data set."""

    model: str
    dataset: str
    attribution: str
    operator: str
    win_rate: float | None
    """A fraction; None where there is no valid result."""


@dataclass(frozen=True, kw_only=True)
class LanguageWinRate:
    """Of one model in one language."""

    model: str
    language: str
    operator: str
    win_rate: float | None


@dataclass(frozen=True, kw_only=True)
class Plausibility:
    """One example: how well the rationale fits the human one, and how faithful it is."""

    model: str
    """Or an attribution, where one model is drawn: it heads a panel."""
    overlap: float
    """Intersection over union with the human rationale."""
    win_rate: float
    operator: str = ""
    """Several get a row of panels each."""
    group: Hashable = None
    """Equal for examples that depend on each other; None for one that stands for itself."""


@dataclass(frozen=True, kw_only=True)
class PromptWinRate:
    """The same model, task and attribution under one wording of the prompt."""

    model: str
    task: str
    attribution: str
    prompt: str
    win_rate: float
    low: float | None = None
    high: float | None = None
    """Limits of its interval, where one is known."""


@dataclass(frozen=True, kw_only=True)
class ChainOfThought:
    """One model on one task: whether its steps matter (SRC), and whether its answers are right."""

    model: str
    task: str
    src: float
    accuracy: float
    low: float | None = None
    high: float | None = None
    """Limits of the interval of SRC, where one is known."""
    published: bool = False
    """Whether it is a published number, to be told from one's own."""
