"""Chains of thought: steps, final answers, problems and tasks. `subject` makes them the subject of a run."""

from ice_eval.subjects.chain.answers import (
    AnswerKind,
    FinalAnswer,
    LabelAnswer,
    OptionAnswer,
    Unreadable,
    reasoning_steps,
)
from ice_eval.subjects.chain.numbers import NumberAnswer
from ice_eval.subjects.chain.problems import GivenChain, Problem, ReasoningTask, WorkedExample, given_task, read_given
from ice_eval.subjects.chain.steps import Chain, Step, given_steps, split_steps

__all__ = [
    "AnswerKind", "Chain", "FinalAnswer", "GivenChain", "LabelAnswer", "NumberAnswer", "OptionAnswer", "Problem",
    "ReasoningTask", "Step", "Unreadable", "WorkedExample", "given_steps", "given_task", "read_given",
    "reasoning_steps", "split_steps",
]  # fmt: skip
