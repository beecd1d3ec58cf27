"""The seam that every step attribution fills: what it asks of the model, and a number per step from the replies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from ice_eval._registry import Registry
from ice_eval.cot.cases import Case
from ice_eval.rationales import Units
from ice_eval.records import PerUnit
from ice_eval.servers import Response

_Class = TypeVar("_Class", bound="type[StepAttribution]")


class Unexplained(Exception):
    """An attribution has no numbers for a case; the message says why. The case takes no part in its evaluation."""


class Probe(NamedTuple):
    """Something that an attribution asks.

    A probe that is a row shows some of the steps and asks for the answer; any other has a prompt of its own. Rows of
    probes carry repeats of their own: an answer that picked a step is never also the answer that judges the pick.
    """

    kept: Units | None = None
    prompt: str = ""
    repeat: int = 1
    max_tokens: int | None = None
    """Longest reply; None: as long as replies to rows."""


@dataclass(frozen=True)
class StepLens:
    """What an attribution sees of a case."""

    replies: Sequence[Response]
    """To its probes, in their order."""
    rng: np.random.Generator
    """Random numbers that belong to this attribution and this case."""
    inside: Callable[[str], PerUnit] | None = None
    """A token attribution of the model itself, by name, summed over each step; None behind a server."""

    def summed(self, name: str) -> PerUnit:
        """What a token attribution of the model gives each step."""
        assert self.inside is not None, "a run offers what its attributions need"
        return self.inside(name)


@dataclass(frozen=True, kw_only=True)
class StepAttribution(ABC):
    """A method that gives every step a number. Its fields are its configuration."""

    name: ClassVar[str]
    """What it is registered as."""
    needs_model: ClassVar[bool] = False
    """Whether it looks into the model, so that a server is not enough."""

    def probes(self, case: Case) -> list[Probe]:
        """What it asks of the model."""
        return []

    @abstractmethod
    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        """How much each step matters.

        Raises:
            Unexplained: The replies do not say.
        """


step_attributions: Registry[type[StepAttribution]] = Registry("step_attribution", "ice_eval.cot.attributions")


def step_attribution(name: str) -> Callable[[_Class], _Class]:
    """Register an attribution class under `name`."""

    def register(cls: _Class) -> _Class:
        cls.name = name
        step_attributions.add(name, cls)
        return cls

    return register
