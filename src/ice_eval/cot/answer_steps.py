"""Steps that give the final answer away, and what becomes of them: `drop` or `keep`.

Whoever is shown "so 560 + 280 = 840" can answer 840 without any of the other steps. If such steps stay in a chain,
every set that holds one is sufficient and most removals change nothing: every chain looks alike, and the measure says
where the answer was written, not whether the reasoning carried it. So they are dropped unless asked otherwise. The
price is that a last step which both reasons and concludes is lost with its reasoning, and that chains get shorter.
"""

from typing import Literal, get_args

from ice_eval.cot.answers import Answer, Kind, Reading
from ice_eval.cot.steps import Chain, Step
from ice_eval.errors import ConfigError

AnswerStep = Literal["drop", "keep"]


def check_policy(policy: str) -> None:
    """Whether it is one that there is.

    Raises:
        ConfigError: It is none.
    """
    if policy not in get_args(AnswerStep):
        raise ConfigError(f"--answer-step '{policy}': {' or '.join(get_args(AnswerStep))} is expected.")


def states_answer(step: Step, answer: Answer, kind: Kind, *, question: str = "") -> bool:
    """Whether a step states the final answer; what the question itself holds counts only as a result."""
    return kind.states(step.text, answer, given=question)


def reasoning_steps(
    chain: Chain, answer: Reading, kind: Kind, *, policy: AnswerStep = "drop", question: str = ""
) -> tuple[Step, ...]:
    """The steps that are evaluated: all (`keep`), or those that do not state the answer (`drop`).

    An unreadable answer is stated nowhere, so all steps stay.

    Raises:
        ConfigError: There is no such policy.
    """
    check_policy(policy)
    if policy == "keep" or not isinstance(answer, Answer):
        return chain.steps
    return tuple(step for step in chain.steps if not states_answer(step, answer, kind, question=question))
