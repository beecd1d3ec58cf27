"""The interface of operators: (encoded example, keep-masks, fills) -> inputs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ice_eval._registry import Registry
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds, Unit


@dataclass(frozen=True, kw_only=True)
class Operator(ABC):
    """Turns keep-masks of one example into model inputs.

    An operator edits ids, never text, draws nothing itself, and does not change protected tokens. It either keeps the
    length of the input (token `i` of the output replaces token `i` of the input) or drops the tokens not kept.
    """

    units: ClassVar[tuple[Unit, ...]] = ("token", "word")
    """Units that it can remove."""
    needs_fills: ClassVar[bool] = False
    """True if `build` reads `fills`: an id for every token of a unit, drawn once per example."""

    def prepare(self, special: SpecialIds) -> list[str]:
        """Check that a model has the tokens that the operator writes; return flags for the manifest.

        Raises:
            CapabilityError: The model lacks a token, and no other can replace it.
        """
        return []

    @abstractmethod
    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        """Return one input per row of `keep`; `item.without` and `item.overwritten` do most of it."""


operators: Registry[type[Operator]] = Registry("operator", "ice_eval.operators")
operator = operators.register
"""Register an operator class under a name."""
