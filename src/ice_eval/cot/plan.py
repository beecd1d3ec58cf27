"""What a run over chains would ask, and which of the chains that are there would take no part."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ice_eval.cot.cases import given_case
from ice_eval.cot.config import CotConfig
from ice_eval.cot.given import Given
from ice_eval.cot.tasks import Problem
from ice_eval.servers import RequestPlan


@dataclass(frozen=True, kw_only=True)
class ChainPlan(RequestPlan):
    """The plan of the requests, with what is known beforehand of the problems."""

    n_problems: int
    skipped: dict[str, int]
    """Chains that were brought and cannot be evaluated, by reason; nothing is asked about them."""

    def __str__(self) -> str:
        if not self.skipped:
            return super().__str__()
        reasons = "; ".join(f"{reason} ({count})" for reason, count in self.skipped.items())
        return (
            f"{sum(self.skipped.values()):,} of {self.n_problems:,} chains take no part: {reasons}\n{super().__str__()}"
        )


def skipped_chains(problems: Sequence[Problem | Given], config: CotConfig) -> dict[str, int]:
    """How many of the chains that were brought take no part, by reason, the most frequent first."""
    cases = [given_case(each, policy=config.answer_step) for each in problems if isinstance(each, Given)]
    return dict(Counter(case.skip_reason for case in cases if case.skip_reason is not None).most_common())
