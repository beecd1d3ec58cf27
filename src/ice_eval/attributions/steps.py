"""Attributions of the steps of a chain of thought."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from scipy.special import expit

from ice_eval.attributions._base import Attribution, Lens, attribution, check_number
from ice_eval.models import Generated
from ice_eval.records import Answer, Encoded, PerUnit
from ice_eval.servers import NO_REPLY


@attribution("leave-one-out", needs={"values"})
@dataclass(frozen=True, kw_only=True)
class StepLeaveOneOut(Attribution):
    """Steps without which the answer is another one, by the share of `samples` replies that changed.

    A reply that cannot be read counts one half, as it does where explanations are judged. Every probe is a request of
    its own, never one that judges the explanation: else the method would pick the steps where noise changed the answer,
    and win by that very noise.
    """

    units = ("step",)
    samples: int = 1
    """Replies for each step; several say more than all or nothing, where the temperature is not 0."""

    def __post_init__(self) -> None:
        check_number("leave-one-out: samples", self.samples)

    def n_probes(self, n_units: int) -> int:
        return n_units * self.samples

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        masks = [~np.eye(item.n_units, dtype=bool) for item in batch]
        samples = [lens.values(batch, masks, repeat=1 + sample) for sample in range(self.samples)]
        return [self._share(lens, *each) for each in zip(batch, *samples, strict=True)]

    def _share(self, lens: Lens, item: Encoded, *samples: PerUnit) -> PerUnit:
        odds = np.array(samples)
        if not odds.any():  # even odds: the reply could not be read
            lens.note(item, Answer(None, 0, problem="without any one of the steps no answer could be read"))
            return np.full(item.n_units, np.nan)
        shares: PerUnit = expit(-odds).mean(axis=0)
        return shares


RATE = """{question}

This question was answered "{answer}" after these steps:
{steps}

Rate how much the answer depended on each step, from 0 (it would be the same without it) to 10 (it would be another).
Write one line for every step, with its number, a colon and the rating, and nothing else."""
_RATING = regex.compile(
    r"^[\s*_#-]*(?:step\s*)?\(?(?P<step>\d{1,4})\)?[\s*_]*[:.)=–-]+[\s*_]*(?P<rating>\d{1,3}(?:\.\d+)?)"
    r"(?:\s*(?:/|out of)\s*10)?[ \t*_]*(?:$|[(\[,;:–-])",
    regex.IGNORECASE | regex.MULTILINE,
)
"""A step's number and its rating, perhaps with a remark; "1. 3 apples are left" is a step that was copied."""
_TOKENS_PER_LINE, _MORE_TOKENS, _FEWEST_LINES = 12, 64, 8
_HIGHEST = 10.0


@attribution("self-report", needs={"generate"})
class SelfReport(Attribution):
    """Steps by the importance from 0 to 10 that the model itself gives them when asked.

    A reply that leaves a step out, or rates it outside of the scale, gives no numbers: the problem is skipped.
    """

    units = ("step",)

    def attribute(self, lens: Lens, batch: Sequence[Encoded]) -> list[PerUnit]:
        asked, found = [rating_request(item) for item in batch], dict[str, PerUnit]()
        for limit in sorted({most for _, most in asked}):
            own = [(item, prompt) for item, (prompt, most) in zip(batch, asked, strict=True) if most == limit]
            replies = lens.generate([prompt for _, prompt in own], max_tokens=limit)
            for (item, _), reply in zip(own, replies, strict=True):
                found[item.example_id] = self._read(lens, item, reply)
        return [found[item.example_id] for item in batch]

    def _read(self, lens: Lens, item: Encoded, reply: Generated) -> PerUnit:
        text = (reply.text or "").rpartition("</think>")[2]  # drafts of a reasoning model count for nothing
        rated = {int(match["step"]): float(match["rating"]) for match in _RATING.finditer(text)}
        ratings = np.array([rated.get(number, np.nan) for number in range(1, item.n_units + 1)])
        n_missing, problem = int(np.isnan(ratings).sum()), None
        if reply.text is None:
            problem = NO_REPLY
        elif n_missing:
            problem = f"{n_missing} of {item.n_units} steps are not rated"
        elif ratings.max() > _HIGHEST:
            problem = f"a rating of {ratings.max():g} is not on the scale from 0 to 10"
        lens.note(item, Answer(reply.text, reply.tokens, problem=problem))
        return ratings if problem is None else np.full(item.n_units, np.nan)


def rating_request(item: Encoded) -> tuple[str, int]:
    """Return the prompt that asks for ratings of all steps, and the tokens that a reply may have."""
    lines = [f"{number}. {' '.join(text.split())}" for number, text in enumerate(item.texts, start=1)]
    prompt = RATE.format(question=item.fields["question"], answer=item.fields["answer"], steps="\n".join(lines))
    lines_of = max(_FEWEST_LINES, 1 << (item.n_units - 1).bit_length())  # few limits, so that most are asked together
    return prompt, _MORE_TOKENS + _TOKENS_PER_LINE * lines_of
