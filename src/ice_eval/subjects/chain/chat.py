"""Prompts for chains, and for answers after some of their steps."""

from collections.abc import Sequence

from ice_eval.choices import Pose
from ice_eval.servers import Message
from ice_eval.subjects.chain.problems import Problem, WorkedExample

ASK = """{question}

Work this out step by step, with one short step on each line. Then finish with one last line of the form
Answer: {form}"""

CONCLUDE = """{question}

These steps have been worked out already:
{steps}

Rely on them and give the final answer at once, with no further working, as a single line of the form
Answer: {form}"""

NEUTRAL = """{question}

Notes:
{steps}

Give the final answer, with no further working, as a single line of the form
Answer: {form}"""

PROMPTS = (ASK, CONCLUDE, NEUTRAL)
BEGUN = "Answer:"
"""Last words of a turn that the model goes on with."""

Turns = tuple[Message, Message]
"""A question and its reply."""


def ask_prompt(problem: Problem, *, shown: str | None = None) -> str:
    """Return the prompt for a chain of steps and a final answer; `shown` is the question with more around it."""
    return ASK.format(question=shown or problem.shown, form=problem.kind.form)


def conclude_prompt(problem: Problem, steps: Sequence[str], *, pose: Pose = "user") -> str:
    """Return the prompt for the final answer alone, given some of the steps, in their order.

    Before a turn that the model goes on with (`prefill`) it is the prompt for the chain.
    """
    if pose == "prefill":
        return ask_prompt(problem)
    words = NEUTRAL if pose == "neutral" else CONCLUDE
    return words.format(question=problem.shown, steps="\n".join(steps) or "(none)", form=problem.kind.form)


def asked_turns(example: WorkedExample) -> Turns:
    """Return a worked example as question and reply, before a question for a chain."""
    reply = "\n".join([*example.steps, f"Answer: {example.answer}"])
    return Message("user", ask_prompt(example.problem)), Message("assistant", reply)


def concluded_turns(example: WorkedExample, *, pose: Pose = "user") -> Turns:
    """Return the same before a question for the answer alone."""
    asked = conclude_prompt(example.problem, example.steps, pose=pose)
    return Message("user", asked), Message("assistant", f"Answer: {example.answer}")
