"""Chains of thought, step by step: steps, final answers, and the problems that are reasoned about."""

from ice_eval.cot.answer_steps import AnswerStep, reasoning_steps, states_answer
from ice_eval.cot.answers import Answer, Kind, Label, Number, Option, Reading, Unreadable
from ice_eval.cot.steps import Chain, Step, given_steps, split_steps

__all__ = [
    "Answer",
    "AnswerStep",
    "Chain",
    "Kind",
    "Label",
    "Number",
    "Option",
    "Reading",
    "Step",
    "Unreadable",
    "given_steps",
    "reasoning_steps",
    "split_steps",
    "states_answer",
]
