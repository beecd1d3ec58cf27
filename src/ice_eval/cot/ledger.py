"""Replies as scores: the ledger of a step-level run has the columns of every other.

The labels are `same` and `changed`, the target is `same`. A reply gives its label all of the probability; one that
cannot be read gives each a half: it is neither, and any fixed score keeps the comparison with random sets valid.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval.cot.answers import Answer, Reading
from ice_eval.cot.cases import Case
from ice_eval.cot.rows import StepRow
from ice_eval.records import Answer as Said
from ice_eval.records import Span
from ice_eval.results import InputRow, LedgerRow
from ice_eval.servers import Response

LABELS = ("same", "changed")
CHAIN, QUESTION, ANSWER, GOLD = "chain", "question", "answer", "gold"
"""Fields of an input row."""
_NEVER = -1000.0
"""Log-score of what was not answered: its probability is exactly 0, and the number is finite."""
SAME, CHANGED, UNREAD = (0.0, _NEVER), (_NEVER, 0.0), (math.log(0.5), math.log(0.5))

Flags = NDArray[np.float64]  # (rows,): 1 changed, 0 same, NaN unreadable


class Explained(NamedTuple):
    """What attributions said of one case."""

    vectors: Mapping[str, NDArray[np.float64]]
    said: Mapping[str, Said]
    """What the model wrote where it was asked, and why there are no numbers where there are none."""


class Replied(NamedTuple):
    """A row with what the model said to it."""

    row: StepRow
    response: Response
    reading: Reading
    """The answer in it."""


def ledger_row(case: Case, replied: Replied) -> LedgerRow:
    """One reply, scored."""
    row, response, reading = replied
    if not isinstance(reading, Answer):
        scores = UNREAD
    else:
        scores = SAME if case.problem.kind.same(reading, case.own) else CHANGED
    return LedgerRow(row.key, row.kept, scores, text=response.text)


def input_row(case: Case, explained: Explained) -> InputRow:
    """One case as it stands in the folder: the spans of its steps lie in the field `chain`."""
    fields = {QUESTION: case.problem.question, CHAIN: case.chain.response}
    if isinstance(case.answer, Answer):
        fields[ANSWER] = case.answer.value
    if case.problem.gold is not None:
        fields[GOLD] = case.problem.gold.value
    right = case.is_right
    return InputRow(
        case.id,
        fields,
        spans=tuple(Span(CHAIN, step.start, step.end) for step in case.steps),
        gold=None if right is None else int(not right),
        target=None if case.skip_reason is not None else 0,
        skip_reason=case.skip_reason,
        attributions={name: tuple(values.tolist()) for name, values in explained.vectors.items()},
        answers=dict(explained.said),
    )


def changed(rows: Sequence[LedgerRow]) -> Flags:
    """Whether each reply is another answer than the chain's own."""
    scores = np.array([row.scores for row in rows], dtype=np.float64).reshape(-1, 2)
    return np.select([scores[:, 0] > scores[:, 1], scores[:, 0] < scores[:, 1]], [0.0, 1.0], np.nan)
