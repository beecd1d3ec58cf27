"""How problems are put to a model: once with all the room to think, then with some of the steps and none."""

import string
from collections.abc import Sequence

from ice_eval.cot.tasks import Problem

_ASK = """{question}

Work this out step by step, with one short step on each line. Then finish with one last line of the form
Answer: {form}"""

_CONCLUDE = """{question}

These steps have been worked out already:
{steps}

Rely on them and give the final answer at once, with no further working, as a single line of the form
Answer: {form}"""


def ask_prompt(problem: Problem) -> str:
    """Asks for a chain of steps and a final answer."""
    return _ASK.format(question=shown(problem), form=problem.kind.form)


def conclude_prompt(problem: Problem, steps: Sequence[str]) -> str:
    """Asks for the final answer alone, given some of the steps, in their order."""
    return _CONCLUDE.format(question=shown(problem), steps="\n".join(steps) or "(none)", form=problem.kind.form)


def shown(problem: Problem) -> str:
    """The question with its options, each behind its letter."""
    options = zip(string.ascii_uppercase, problem.options, strict=False)
    return "\n".join([problem.question, *(f"{letter}. {option}" for letter, option in options)])
