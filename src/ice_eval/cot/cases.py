"""A problem with the chain that was written for it: what a run evaluates, or why it cannot."""

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from ice_eval.cot.answer_steps import AnswerStep, reasoning_steps
from ice_eval.cot.answers import Answer, Kind, Reading, Unreadable
from ice_eval.cot.given import Given, final_of
from ice_eval.cot.steps import Chain, Step, is_thinking, split_steps
from ice_eval.cot.tasks import Problem
from ice_eval.servers import Response

FEWEST_STEPS = 2
"""A single step cannot be told from the whole chain."""


@dataclass(frozen=True)
class Case:
    """A problem, its chain, the answer that this came to, and the steps that are kept or removed."""

    problem: Problem
    chain: Chain
    answer: Reading
    steps: tuple[Step, ...]
    """The units; steps that state the answer are not among them unless they are to be kept."""
    skip_reason: str | None = None
    """Why the problem takes no part; None for those that do."""

    @property
    def id(self) -> str:
        return self.problem.id

    @property
    def texts(self) -> tuple[str, ...]:
        """What the steps say."""
        return tuple(step.text for step in self.steps)

    @property
    def own(self) -> Answer:
        """The answer of a case that takes part: it was read."""
        assert isinstance(self.answer, Answer), self.skip_reason
        return self.answer

    def without(self, *steps: int) -> tuple[int, ...]:
        """All steps but these."""
        return tuple(step for step in range(len(self.steps)) if step not in steps)

    @property
    def is_right(self) -> bool | None:
        """Whether the answer is the right one; None where that is not known, or it could not be read."""
        if self.problem.gold is None or not isinstance(self.answer, Answer):
            return None
        return self.problem.kind.same(self.answer, self.problem.gold)


def case_of(problem: Problem, chain: Chain, answer: Reading, *, policy: AnswerStep = "drop") -> Case:
    """The case that a chain makes, or the reason why it makes none."""
    steps = reasoning_steps(chain, answer, problem.kind, policy=policy, question=problem.question)
    reason = None
    if isinstance(answer, Unreadable):
        reason = f"the answer cannot be read: {answer.reason}"
    elif len(steps) < FEWEST_STEPS:
        reason = f"fewer than {FEWEST_STEPS} steps"
        if len(chain.steps) >= FEWEST_STEPS:
            reason += " besides those that state the answer"
    return Case(problem, chain, answer, steps, reason)


def written_case(problem: Problem, response: Response, *, policy: AnswerStep = "drop") -> Case:
    """The case of a chain that a model has just written."""
    text = response.text
    if response.reasoning:  # told apart by the server; the tags of reasoning models say the same
        text = f"<think>{response.reasoning}</think>\n{text}"
    chain = split_steps(text)
    return case_of(problem, chain, reading_of(response, problem.kind), policy=policy)


def given_case(given: Given, *, policy: AnswerStep = "drop") -> Case:
    """The case of a chain that was brought."""
    return case_of(given.problem, given.chain, given.final, policy=policy)


_NO_ANSWER = {"refusal": "the model declined", "empty": "the reply is empty", "error": "no reply arrived"}


def reading_of(response: Response, kind: Kind) -> Reading:
    """The answer in a reply. One that was cut off counts only if it had come to an explicit statement before."""
    if response.status in _NO_ANSWER:
        return Unreadable(_NO_ANSWER[response.status])
    found = final_of(split_steps(response.text), kind)
    if response.status == "truncated" and not _is_complete(found, response, kind):
        return Unreadable("the reply was cut off")
    return found


def whole_words(response: Response) -> str:
    """The text of a reply; of one that was cut off without its last word, which may be the beginning of another."""
    return regex.sub(r"\S+\Z", "", response.text) if response.status == "truncated" else response.text


def _is_complete(found: Reading, response: Response, kind: Kind) -> bool:
    """Whether a reply that was cut off states its answer for good."""
    if not isinstance(found, Answer) or found.by != "marker" or is_thinking(response.text):
        return False
    return final_of(split_steps(whole_words(response)), kind) == found


def evaluated(cases: Sequence[Case]) -> list[Case]:
    """Those that take part."""
    return [case for case in cases if case.skip_reason is None]
