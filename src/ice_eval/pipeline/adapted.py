"""A run of a model that was adapted from another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ice_eval.results.records import Adaptation


@dataclass(frozen=True)
class Adapted:
    """How a model came from the deployed one, and the labels that the deployed one's run explains.

    The copy may answer otherwise than the deployed model; what is explained is the deployed model's answer.
    """

    how: str
    """Part of the run's identity, so that it is never taken for a run of the deployed model, or of another copy."""
    targets: Mapping[str, int] = field(repr=False)
    """By example id; examples without one are skipped."""
    record: Adaptation = field(repr=False)
    """For the manifest."""
