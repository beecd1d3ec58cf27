"""What each step does by itself."""

from dataclasses import dataclass

import numpy as np

from ice_eval.cot.answers import Unreadable
from ice_eval.cot.attributions._base import Probe, StepAttribution, StepLens, Unexplained, step_attribution
from ice_eval.cot.cases import Case, reading_of
from ice_eval.errors import ConfigError
from ice_eval.records import PerUnit


@step_attribution("leave-one-out")
@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(StepAttribution):
    """Steps without which the answer is another one, by the share of `samples` replies that changed.

    It asks on its own account, with repeats that no evaluated row has: with the same replies it would pick the steps
    where noise has changed the answer, and then be praised for that very noise.
    """

    samples: int = 1
    """Replies for each step; several tell more than all or nothing, where the model is not asked at temperature 0."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(f"leave-one-out: samples = {self.samples}; at least 1 is needed.")

    def probes(self, case: Case) -> list[Probe]:
        return [
            Probe(kept=case.without(step), repeat=1 + sample)
            for step in range(len(case.steps))
            for sample in range(self.samples)
        ]

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        kind = case.problem.kind
        readings = [reading_of(reply, kind) for reply in lens.replies]
        changed = np.array([
            np.nan if isinstance(reading, Unreadable) else not kind.same(reading, case.own) for reading in readings
        ], dtype=np.float64).reshape(len(case.steps), self.samples)  # fmt: skip
        known = ~np.isnan(changed)
        if not known.any(axis=1).all():
            raise Unexplained("without one of the steps no answer could be read")
        shares: PerUnit = np.where(known, changed, 0).sum(axis=1) / known.sum(axis=1)
        return shares
