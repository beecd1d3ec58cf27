"""Chains of thought, step by step: steps, final answers, the problems, and the servers that are asked."""

from ice_eval.cot.answer_steps import AnswerStep, reasoning_steps, states_answer
from ice_eval.cot.answers import Answer, Kind, Label, Number, Option, Reading, Unreadable
from ice_eval.cot.budget import Budget, Plan
from ice_eval.cot.chat import Chat, Progress
from ice_eval.cot.exchange import Message, Request, Response, Tokens
from ice_eval.cot.given import Given, read_given
from ice_eval.cot.server import Server
from ice_eval.cot.steps import Chain, Step, given_steps, split_steps
from ice_eval.cot.store import ResponseStore, read_responses
from ice_eval.cot.tasks import CotTask, Problem, cot_task, cot_tasks

__all__ = [
    "Answer",
    "AnswerStep",
    "Budget",
    "Chain",
    "Chat",
    "CotTask",
    "Given",
    "Kind",
    "Label",
    "Message",
    "Number",
    "Option",
    "Plan",
    "Problem",
    "Progress",
    "Reading",
    "Request",
    "Response",
    "ResponseStore",
    "Server",
    "Step",
    "Tokens",
    "Unreadable",
    "cot_task",
    "cot_tasks",
    "given_steps",
    "read_given",
    "read_responses",
    "reasoning_steps",
    "split_steps",
    "states_answer",
]
