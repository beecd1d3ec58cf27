"""What each step does by itself."""

from dataclasses import dataclass

import numpy as np

from ice_eval.cot.answers import Answer
from ice_eval.cot.attributions._base import Probe, StepAttribution, StepLens, Unexplained, step_attribution
from ice_eval.cot.cases import Case, reading_of
from ice_eval.errors import ConfigError
from ice_eval.records import PerUnit

_UNREAD = 0.5


@step_attribution("leave-one-out")
@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(StepAttribution):
    """Steps without which the answer is another one, by the share of `samples` replies that changed.

    A reply that cannot be read counts one half, as it does where explanations are judged: it is neither the same nor
    changed. To leave out its problem would judge the method by the problems alone that the model answers cleanly.

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
        changed = [not kind.same(each, case.own) if isinstance(each, Answer) else _UNREAD for each in readings]
        if not any(isinstance(each, Answer) for each in readings):
            raise Unexplained("without any one of the steps no answer could be read")
        shares: PerUnit = np.array(changed, dtype=np.float64).reshape(len(case.steps), self.samples).mean(axis=1)
        return shares
