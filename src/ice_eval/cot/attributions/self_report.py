"""The model's own word for which steps mattered."""

from dataclasses import dataclass

import numpy as np
import regex

from ice_eval.cot.attributions._base import Probe, StepAttribution, StepLens, Unexplained, step_attribution
from ice_eval.cot.cases import Case, whole_words
from ice_eval.cot.prompts import rate_prompt
from ice_eval.records import PerUnit

_RATING = regex.compile(
    r"^[\s*_#-]*(?:step\s*)?\(?(?P<step>\d{1,4})\)?[\s*_]*[:.)=–-]+[\s*_]*(?P<rating>\d{1,3}(?:\.\d+)?)"
    r"(?:\s*(?:/|out of)\s*10)?[ \t*_]*(?:$|[(\[,;:–-])",
    regex.IGNORECASE | regex.MULTILINE,
)
"""A step's number and its rating, perhaps with a remark; "1. 3 apples are left" is a step that was copied."""
_TOKENS_PER_LINE, _MORE_TOKENS = 12, 64
_HIGHEST = 10.0


@step_attribution("self-report")
@dataclass(frozen=True, kw_only=True)
class SelfReport(StepAttribution):
    """Steps by the importance from 0 to 10 that the model itself gives them when asked.

    A reply that leaves a step out, or rates it outside of the scale, gives no numbers: the problem takes no part.
    """

    def probes(self, case: Case) -> list[Probe]:
        prompt = rate_prompt(case.problem, case.texts, case.own.value)
        return [Probe(prompt=prompt, repeat=0, max_tokens=_MORE_TOKENS + _TOKENS_PER_LINE * len(case.steps))]

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        [reply] = lens.replies
        rated = {
            int(match["step"]): float(match["rating"])
            for match in _RATING.finditer(_after_thinking(whole_words(reply)))
        }
        missing = [number for number in range(1, len(case.steps) + 1) if number not in rated]
        if missing:
            raise Unexplained(f"{len(missing)} of {len(case.steps)} steps are not rated")
        ratings = np.array([rated[number] for number in range(1, len(case.steps) + 1)])
        if ratings.max() > _HIGHEST:
            raise Unexplained(f"a rating of {ratings.max():g} is not on the scale from 0 to 10")
        return ratings


def _after_thinking(text: str) -> str:
    """What a reasoning model says when it is done; drafts count for nothing."""
    return text.rpartition("</think>")[2]
