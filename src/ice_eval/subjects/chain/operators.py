"""Step operators: some steps are removed or replaced, or all are shown in another order."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from ice_eval._registry import Registry
from ice_eval.rationales import in_random_order

_Class = TypeVar("_Class", bound="type[StepOperator]")


class StepOperator(ABC):
    """A change of a chain; either a `StepRemoval` or a `StepArrangement`."""

    name: ClassVar[str]
    """The name it is registered under."""


class StepRemoval(StepOperator):
    """Keeps some steps, and removes or replaces the others."""

    needs_fills: ClassVar[bool] = False
    """Whether it writes steps of other problems."""

    @abstractmethod
    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        """Return the steps that the model is shown.

        Args:
            steps: All steps of the chain.
            kept: Indices of those that stay, ascending.
            fills: A step of another problem for each step, where the operator needs them.
        """


class StepArrangement(StepOperator):
    """Shows steps in an order of its own: a permutation, or a beginning."""

    @abstractmethod
    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Return up to `count` different lists of steps in the order in which they are shown."""


# Files in the folder of this module are discovered, too.
step_operators: Registry[type[StepOperator]] = Registry("step_operator", "ice_eval.subjects.chain")


def step_operator(name: str) -> Callable[[_Class], _Class]:
    """Register an operator class under `name`."""

    def register(cls: _Class) -> _Class:
        cls.name = name
        step_operators.add(name, cls)
        return cls

    return register


@step_operator("delete")
class StepDelete(StepRemoval):
    """Steps that are not kept are gone: the paper's step-delete (some removed) and step-retain (some kept)."""

    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        return [steps[index] for index in kept]


@step_operator("replace")
class StepReplace(StepRemoval):
    """Steps that are not kept give their place to steps of other problems, so that chains keep their length."""

    needs_fills = True

    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        stay = set(kept)
        return [step if index in stay else fills[index] for index, step in enumerate(steps)]


@step_operator("shuffle")
class StepShuffle(StepArrangement):
    """All steps, word for word, in other orders: whether the answer hangs on their sequence."""

    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        own = tuple(range(n_steps))
        orders = in_random_order(
            math.factorial(n_steps),
            every=lambda: itertools.permutations(own),
            draw=lambda rng: tuple(int(step) for step in rng.permutation(n_steps)),
            rng=rng,
        )
        return list(itertools.islice((order for order in orders if order != own), count))


@step_operator("truncate")
class StepTruncate(StepArrangement):
    """The chain cut off after each step: from which step on the answer stands."""

    # Early answering (Lanham et al., 2023).
    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        # No step, and all of them, are asked in any case. Every cut counts, so `count` does not limit them.
        return [tuple(range(length)) for length in range(1, n_steps)]
