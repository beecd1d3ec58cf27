"""Chains of thought, step by step: steps, final answers, and the problems that are put to a model."""

from ice_eval.cot.answer_steps import AnswerStep, reasoning_steps, states_answer
from ice_eval.cot.answers import Answer, Kind, Label, Number, Option, Reading, Unreadable
from ice_eval.cot.asking import Asker
from ice_eval.cot.config import CotConfig
from ice_eval.cot.given import Given, read_given
from ice_eval.cot.prompts import ask_prompt, conclude_prompt
from ice_eval.cot.run import Backend, Source, execute_chains
from ice_eval.cot.steps import Chain, Step, given_steps, split_steps
from ice_eval.cot.summary import rescore_chains
from ice_eval.cot.tasks import CotTask, Problem, cot_task, cot_tasks

__all__ = [
    "Answer",
    "AnswerStep",
    "Asker",
    "Backend",
    "Chain",
    "CotConfig",
    "CotTask",
    "Given",
    "Kind",
    "Label",
    "Number",
    "Option",
    "Problem",
    "Reading",
    "Source",
    "Step",
    "Unreadable",
    "ask_prompt",
    "conclude_prompt",
    "cot_task",
    "cot_tasks",
    "execute_chains",
    "given_steps",
    "read_given",
    "reasoning_steps",
    "rescore_chains",
    "split_steps",
    "states_answer",
]
