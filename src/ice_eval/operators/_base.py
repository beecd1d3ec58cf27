"""The interface of operators: (encoded example, keep-masks, fills) -> inputs."""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, get_args

from ice_eval._registry import Registry
from ice_eval.choices import Pose
from ice_eval.errors import ConfigError
from ice_eval.records import Encoded, Fills, Inputs, KeepMasks, SpecialIds, Unit, marked


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
    keeps_meaning: ClassVar[bool] = False
    """True if what is written in place of a unit says the same: then nothing is removed."""

    def prepare(self, special: SpecialIds) -> list[str]:
        """Check that a model has the tokens that the operator writes; return flags for the manifest.

        Raises:
            CapabilityError: The model lacks a token, and no other can replace it.
        """
        return []

    @abstractmethod
    def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
        """Return one input per row of `keep`; `item.without` and `item.overwritten` do most of it."""


class _Operators(Registry[type[Operator]]):
    """Operators by name; `delete@prefill` shows the steps that `delete` leaves in the pose `prefill`."""

    def get(self, name: str, *, given: str = "") -> type[Operator]:
        bare, _, pose = name.partition("@")
        return posed(super().get(bare, given=given), pose) if pose else super().get(name, given=given)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).partition("@")[0])


POSE_MARK = 1 << 19
"""First id that marks a pose: behind the id of a problem it says how the steps are shown."""


@functools.cache
def posed(operator: type[Operator], pose: str) -> type[Operator]:
    """Return an operator whose inputs are marked with a pose; the model is asked in another way, about the same units.

    Raises:
        ConfigError: There is no such pose, or the operator does not act on steps.
    """
    if pose not in get_args(Pose) or "step" not in operator.units:
        raise ConfigError(f"'@{pose}' is not a pose; expected: {', '.join(get_args(Pose))}.")
    mark = POSE_MARK + get_args(Pose).index(pose)

    class Posed(operator):  # type: ignore[valid-type, misc]
        units: ClassVar[tuple[Unit, ...]] = ("step",)

        def build(self, item: Encoded, keep: KeepMasks, *, fills: Fills) -> Inputs:
            return marked(super().build(item, keep, fills=fills), mark)

    return Posed


operators: Registry[type[Operator]] = _Operators("operator", "ice_eval.operators")
operator = operators.register
"""Register an operator class under a name."""


def pose_of(operator: str | None) -> str:
    """Return the pose that an operator's name ends with; empty for the first pose."""
    return (operator or "").partition("@")[2]


def draws_fills(name: str) -> bool:
    """Return True for operators that write fills; False where the package of an operator is not installed."""
    return name in operators and operators.get(name).needs_fills


def is_removal(name: str) -> bool:
    """Return True for operators that take units away: not for other words, nor for the same act in another pose."""
    return not pose_of(name) and not (name in operators and operators.get(name).keeps_meaning)
