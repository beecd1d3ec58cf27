"""Step-level reasoning capacity: whether the steps of a chain of thought carry its answer."""

from typing import Literal

from ice_eval.errors import DataError
from ice_eval.stats.verdict import reaches

Reasoning = Literal["decorative", "scaffolding", "genuine"]

_SCAFFOLDING, _GENUINE = 0.15, 0.4


def step_reasoning_capacity(necessity: float, sufficiency: float) -> float:
    """`Nec * (1 - Suf)`: high where removing steps changes the answer and a few steps alone do not give it.

    Args:
        necessity: Share of random removals of steps that change the answer.
        sufficiency: Share of random retained subsets of the same size that keep it.

    Raises:
        DataError: If one is not in [0, 1].
    """
    if not (0 <= necessity <= 1 and 0 <= sufficiency <= 1):  # NaN fails this too
        raise DataError(f"necessity and sufficiency lie in [0, 1], got {necessity} and {sufficiency}")
    return necessity * (1 - sufficiency)


def reasoning_word(capacity: float) -> Reasoning:
    """The paper's word for a capacity: decorative [0, .15), scaffolding [.15, .4], genuine (.4, 1].

    Raises:
        DataError: If `capacity` is not in [0, 1].
    """
    if not 0 <= capacity <= 1:
        raise DataError(f"a step-level reasoning capacity lies in [0, 1], got {capacity}")
    if not reaches(capacity, _SCAFFOLDING):
        return "decorative"
    return "scaffolding" if reaches(_GENUINE, capacity) else "genuine"
