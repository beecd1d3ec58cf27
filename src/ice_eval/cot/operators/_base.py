"""The two seams that step operators fill: what stands for the steps not kept, and the steps in another order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from ice_eval._registry import Registry

_Class = TypeVar("_Class", bound="type[StepOperator]")


class StepOperator(ABC):
    """Something that is done to a chain; either a `Removal` or an `Arrangement`."""

    name: ClassVar[str]
    """What it is registered as."""


class Removal(StepOperator):
    """Keeps some steps; what stands in the place of the others decides which operator it is."""

    needs_fills: ClassVar[bool] = False
    """Whether it writes steps of other problems."""

    @abstractmethod
    def show(self, steps: Sequence[str], kept: Sequence[int], fills: Sequence[str]) -> list[str]:
        """The steps that the model is shown.

        Args:
            steps: All steps of the chain.
            kept: Which of them stay, ascending.
            fills: A step of another problem for each step, where the operator needs them.
        """


class Arrangement(StepOperator):
    """Shows steps in an order of its own: a permutation, or a beginning."""

    @abstractmethod
    def orders(self, n_steps: int, count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Up to `count` different lists of steps in the order in which they are shown."""


step_operators: Registry[type[StepOperator]] = Registry("step_operator", "ice_eval.cot.operators")


def step_operator(name: str) -> Callable[[_Class], _Class]:
    """Register an operator class under `name`."""

    def register(cls: _Class) -> _Class:
        cls.name = name
        step_operators.add(name, cls)
        return cls

    return register
