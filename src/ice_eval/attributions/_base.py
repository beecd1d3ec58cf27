"""The seam that every attribution fills, and the lens through which it sees the model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from ice_eval._registry import Registry
from ice_eval._seeding import rng_for
from ice_eval.errors import DataError
from ice_eval.models import Gradients, Labels, Model
from ice_eval.records import Encoded, PerToken, PerUnit

_Class = TypeVar("_Class", bound="type[Attribution]")

NEEDS = frozenset({"attentions", "gradients"})
"""What an attribution may declare."""


@dataclass(frozen=True)
class Lens:
    """What one attribution may ask of a model: only what it declared.

    Always for a batch of encoded examples, so that forward passes are shared.
    """

    model: Model
    labels: Labels
    targets: Mapping[str, int]
    """Example id -> index of the label that is explained."""
    needs: frozenset[str]
    seed: int
    name: str
    """The attribution that looks through this lens; its random numbers are its own."""

    def attentions(self, batch: Sequence[Encoded]) -> list[PerToken]:
        """Attention from the scoring position to every token, mean over layers and heads."""
        self._allow("attentions")
        return self.model.attentions(batch)

    def gradients(self, batch: Sequence[Encoded]) -> list[Gradients]:
        """Embedding of every token, and the gradient of the target's log-odds there."""
        self._allow("gradients")
        return self.model.gradients(batch, [self.targets[item.example_id] for item in batch], self.labels)

    def rng(self, item: Encoded) -> np.random.Generator:
        """Random numbers that belong to this attribution and this example."""
        return rng_for(self.seed, item.example_id, f"attribution:{self.name}")

    def _allow(self, need: str) -> None:
        if need not in self.needs:
            raise TypeError(f"the attribution '{self.name}' did not declare needs={{'{need}'}}")


@dataclass(frozen=True, kw_only=True)
class Attribution(ABC):
    """A method that gives every unit a number. Its fields are its configuration."""

    needs: ClassVar[frozenset[str]] = frozenset()
    brought: ClassVar[bool] = False
    """Whether the numbers come from the user, so that a run folder must be checked to hold the same."""

    @abstractmethod
    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        """One array per example: how much each unit matters."""


def one_per_unit(name: str, item: Encoded, values: PerUnit) -> PerUnit:
    """The values, if there is one for every unit.

    Raises:
        DataError: There is not; the message shows the units.
    """
    if values.shape != (item.n_units,):
        raise DataError(
            f"the attribution '{name}' gave {values.size} numbers for example '{item.example_id}', which has "
            f"{item.n_units} units: {' | '.join(item.texts[:20])}"
        )
    return values


attributions: Registry[type[Attribution]] = Registry("attribution", "ice_eval.attributions")


def attribution(name: str, *, needs: set[str] | None = None) -> Callable[[_Class], _Class]:
    """Register an attribution class, and what it needs of the model ("attentions", "gradients")."""
    unknown = (needs or set()) - NEEDS
    if unknown:
        raise TypeError(
            f"the attribution '{name}' needs {sorted(unknown)}, which no lens offers; known: {sorted(NEEDS)}"
        )

    def register(cls: _Class) -> _Class:
        cls.needs = frozenset(needs or ())
        attributions.add(name, cls)
        return cls

    return register
