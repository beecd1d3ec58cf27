"""Step attributions: a number per step, from the model, from its replies to probes, or from the text alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import regex

from ice_eval._registry import Registry
from ice_eval.errors import ConfigError
from ice_eval.rationales import Units
from ice_eval.records import PerUnit
from ice_eval.servers import Response
from ice_eval.subjects.chain.answers import FinalAnswer
from ice_eval.subjects.chain.problems import Case, reading_of, whole_words

_Class = TypeVar("_Class", bound="type[StepAttribution]")


class Unexplained(Exception):
    """An attribution has no numbers for a case; the message says why. Its evaluation skips the case."""


class StepProbe(NamedTuple):
    """A question that an attribution asks.

    A probe that is a row shows some of the steps and asks for the answer; any other has a prompt of its own. Rows of
    probes carry repeats of their own: an answer that picked a step is never also the answer that judges the pick.
    """

    kept: Units | None = None
    prompt: str = ""
    repeat: int = 1
    max_tokens: int | None = None
    """Longest reply; None: as long as replies to rows."""


@dataclass(frozen=True)
class StepLens:
    """The data that an attribution gets about a case."""

    replies: Sequence[Response]
    """To its probes, in their order."""
    rng: np.random.Generator
    """Random numbers that belong to this attribution and this case."""
    inside: Callable[[str], PerUnit] | None = None
    """A token attribution of the model itself, by name, summed over each step; None behind a server."""

    def summed(self, name: str) -> PerUnit:
        """Return a token attribution of the model, summed over each step."""
        assert self.inside is not None, "a run offers what its attributions need"
        return self.inside(name)


@dataclass(frozen=True, kw_only=True)
class StepAttribution(ABC):
    """A method that gives every step a number. Its fields are its configuration."""

    name: ClassVar[str]
    """The name it is registered under."""
    needs_model: ClassVar[bool] = False
    """Whether it looks into the model, so that a server is not enough."""

    def probes(self, case: Case) -> list[StepProbe]:
        """Return the questions that it asks."""
        return []

    @abstractmethod
    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        """Return the importance of each step.

        Raises:
            Unexplained: The replies do not say.
        """


# Files in the folder of this module are discovered, too.
step_attributions: Registry[type[StepAttribution]] = Registry("step_attribution", "ice_eval.subjects.chain")


def step_attribution(name: str) -> Callable[[_Class], _Class]:
    """Register an attribution class under `name`."""

    def register(cls: _Class) -> _Class:
        cls.name = name
        step_attributions.add(name, cls)
        return cls

    return register


@step_attribution("attention")
@dataclass(frozen=True, kw_only=True)
class StepAttention(StepAttribution):
    """Attention from the last token before the answer, mean over layers and heads, summed over each step's tokens."""

    needs_model = True

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return lens.summed("attention")


@step_attribution("gradient")
@dataclass(frozen=True, kw_only=True)
class StepGradient(StepAttribution):
    """Size of the gradient of the answer's log-probability at each token, summed over each step's tokens."""

    needs_model = True

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return lens.summed("gradient")


@step_attribution("length")
@dataclass(frozen=True, kw_only=True)
class StepLength(StepAttribution):
    """The longest steps, by characters."""

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return np.array([len(text) for text in case.texts], dtype=np.float64)


@step_attribution("position")
@dataclass(frozen=True, kw_only=True)
class StepPosition(StepAttribution):
    """The last steps, or the first: what an explanation must beat to say more than the order of the steps."""

    highest: Literal["last", "first"] = "last"

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        places = np.arange(len(case.steps), dtype=np.float64)
        return places if self.highest == "last" else -places


@step_attribution("random")
@dataclass(frozen=True, kw_only=True)
class RandomSteps(StepAttribution):
    """Steps at random: it must score one half, or the evaluation is broken."""

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        return lens.rng.random(len(case.steps))


_UNREAD = 0.5


@step_attribution("leave-one-out")
@dataclass(frozen=True, kw_only=True)
class StepLeaveOneOut(StepAttribution):
    """Steps without which the answer is another one, by the share of `samples` replies that changed.

    A reply that cannot be read counts one half, as it does where explanations are judged: it is neither the same nor
    changed. To leave out its problem would judge the method by the problems alone that the model answers cleanly.

    Its probes have repeats that no evaluated row has: with the same replies it would pick the steps where noise has
    changed the answer, and then be praised for that very noise.
    """

    samples: int = 1
    """Replies for each step; several say more than all or nothing, where the temperature is not 0."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(f"leave-one-out: samples = {self.samples}; at least 1 is needed.")

    def probes(self, case: Case) -> list[StepProbe]:
        return [
            StepProbe(kept=case.without(step), repeat=1 + sample)
            for step in range(len(case.steps))
            for sample in range(self.samples)
        ]

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        kind = case.problem.kind
        readings = [reading_of(reply, kind) for reply in lens.replies]
        changed = [not kind.same(each, case.own) if isinstance(each, FinalAnswer) else _UNREAD for each in readings]
        if not any(isinstance(each, FinalAnswer) for each in readings):
            raise Unexplained("without any one of the steps no answer could be read")
        shares: PerUnit = np.array(changed, dtype=np.float64).reshape(len(case.steps), self.samples).mean(axis=1)
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
_TOKENS_PER_LINE, _MORE_TOKENS = 12, 64
_HIGHEST = 10.0


@step_attribution("self-report")
@dataclass(frozen=True, kw_only=True)
class SelfReport(StepAttribution):
    """Steps by the importance from 0 to 10 that the model itself gives them when asked.

    A reply that leaves a step out, or rates it outside of the scale, gives no numbers: the problem is skipped.
    """

    def probes(self, case: Case) -> list[StepProbe]:
        lines = [f"{number}. {' '.join(text.split())}" for number, text in enumerate(case.texts, start=1)]
        prompt = RATE.format(question=case.problem.shown, answer=case.own.value, steps="\n".join(lines))
        return [StepProbe(prompt=prompt, repeat=0, max_tokens=_MORE_TOKENS + _TOKENS_PER_LINE * len(case.steps))]

    def attribute(self, case: Case, lens: StepLens) -> PerUnit:
        [reply] = lens.replies
        text = whole_words(reply).rpartition("</think>")[2]  # drafts of a reasoning model count for nothing
        rated = {int(match["step"]): float(match["rating"]) for match in _RATING.finditer(text)}
        numbers = range(1, len(case.steps) + 1)
        missing = [number for number in numbers if number not in rated]
        if missing:
            raise Unexplained(f"{len(missing)} of {len(case.steps)} steps are not rated")
        ratings = np.array([rated[number] for number in numbers])
        if ratings.max() > _HIGHEST:
            raise Unexplained(f"a rating of {ratings.max():g} is not on the scale from 0 to 10")
        return ratings
