"""Chains of thought, step by step: steps, final answers, problems, and runs over them."""

from ice_eval.subjects.chain.answers import (
    AnswerKind,
    FinalAnswer,
    LabelAnswer,
    OptionAnswer,
    Unreadable,
    reasoning_steps,
)
from ice_eval.subjects.chain.attributions import (
    StepAttribution,
    StepLens,
    StepProbe,
    Unexplained,
    step_attribution,
    step_attributions,
)
from ice_eval.subjects.chain.levels import answer_tests
from ice_eval.subjects.chain.local import AnswerScorer, LocalChat, encode_chain
from ice_eval.subjects.chain.numbers import NumberAnswer
from ice_eval.subjects.chain.operators import (
    StepArrangement,
    StepOperator,
    StepRemoval,
    step_operator,
    step_operators,
)
from ice_eval.subjects.chain.problems import (
    CotTask,
    GivenChain,
    Problem,
    WorkedExample,
    cot_task,
    cot_tasks,
    read_given,
)
from ice_eval.subjects.chain.rows import ADDABLE, CotConfig, ask_prompt, conclude_prompt, expected_requests
from ice_eval.subjects.chain.run import (
    Asker,
    ChainPlan,
    ChatBackend,
    ProblemSource,
    execute_chains,
    skipped_chains,
)
from ice_eval.subjects.chain.steps import Chain, Step, given_steps, split_steps
from ice_eval.subjects.chain.summary import rescore_chains

__all__ = [
    "ADDABLE",
    "AnswerKind",
    "AnswerScorer",
    "Asker",
    "Chain",
    "ChainPlan",
    "ChatBackend",
    "CotConfig",
    "CotTask",
    "FinalAnswer",
    "GivenChain",
    "LabelAnswer",
    "LocalChat",
    "NumberAnswer",
    "OptionAnswer",
    "Problem",
    "ProblemSource",
    "Step",
    "StepArrangement",
    "StepAttribution",
    "StepLens",
    "StepOperator",
    "StepProbe",
    "StepRemoval",
    "Unexplained",
    "Unreadable",
    "WorkedExample",
    "answer_tests",
    "ask_prompt",
    "conclude_prompt",
    "cot_task",
    "cot_tasks",
    "encode_chain",
    "execute_chains",
    "expected_requests",
    "given_steps",
    "read_given",
    "reasoning_steps",
    "rescore_chains",
    "skipped_chains",
    "split_steps",
    "step_attribution",
    "step_attributions",
    "step_operator",
    "step_operators",
]
