"""The seam that every operator fills: (encoded example, keep-masks, fills) -> inputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ice_eval._registry import Registry
from ice_eval.errors import CapabilityError
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds

_Class = TypeVar("_Class", bound="type[Operator]")


@dataclass(frozen=True, kw_only=True)
class Operator(ABC):
    """Turns keep-masks of one example into model inputs.

    An operator edits ids, never text, draws nothing itself, and leaves protected tokens alone. It either keeps the
    length of the input (token `i` of the output stands for token `i` of the input) or drops the tokens not kept.
    """

    needs_fills: ClassVar[bool] = False
    """Whether `build` reads `fills`: an id for every token of a unit, drawn once per example."""

    def prepare(self, special: SpecialIds) -> list[str]:
        """Whether a model has what the operator writes; returns flags for the manifest.

        Raises:
            CapabilityError: It has not, and nothing can stand in.
        """
        return []

    @abstractmethod
    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        """Return one input per row of `keep`; `item.without` and `item.overwritten` do most of it."""


def or_end_of_text(name: str, token: int | None, special: SpecialIds) -> tuple[int, list[str]]:
    """A special token, or the end-of-text token in its place, with a flag that says so."""
    if token is not None:
        return token, []
    if special.end is None:
        raise CapabilityError(
            f"the operator '{name}' needs a token to write, and this model has no such token, or reads plain text; use "
            "delete or infill."
        )
    return special.end, [f"{name}_writes_end_of_text"]


operators: Registry[type[Operator]] = Registry("operator", "ice_eval.operators")


def operator(name: str) -> Callable[[_Class], _Class]:
    """Register an operator class under `name`."""

    def register(cls: _Class) -> _Class:
        operators.add(name, cls)
        return cls

    return register
