"""One chain, step by step: what the answer does when a step is gone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ice_eval.cot.ledger import ANSWER, CHAIN, GOLD, LABELS, QUESTION, changed
from ice_eval.cot.rows import AGAIN
from ice_eval.results import ExampleView, InputRow, LedgerRow
from ice_eval.results.schema import PROBE, SHARED_NULL

MOST_REPLIES = 3
"""Different replies that are shown of one step."""
ALWAYS = "Every random removal of steps changes the answer, so that no single step stands out."
REPLIES = {True: "another answer", False: "the same answer", None: "cannot be read"}
"""What a reply may be."""


class Reply(NamedTuple):
    """What the model said, perhaps several times."""

    text: str
    changed: bool | None
    """Whether it is another answer than the chain's own; None where it cannot be read."""
    times: int


class StepEffect(NamedTuple):
    """What one step does."""

    text: str
    effect: float | None
    """Share of replies that change where it is gone, less the share where it is there; None where none was read."""
    n_changed: int
    n_read: int
    replies: tuple[Reply, ...]
    """Where it is gone, the most frequent first."""


@dataclass(frozen=True)
class ChainView:
    """One chain with what its steps do."""

    question: str
    answer: str | None
    gold: str | None
    is_right: bool | None
    operator: str
    alone: bool
    """Whether steps were taken away one at a time; else together with others."""
    whole: tuple[Reply, ...]
    """To the whole chain, asked several times."""
    empty: tuple[Reply, ...]
    """Without any step."""
    steps: tuple[StepEffect, ...]
    always: bool = False
    """Whether every random removal changes the answer, so that no step stands out although all may matter."""


def is_chain(view: ExampleView) -> bool:
    """Whether an example is a chain of a step-level run."""
    return view.labels == LABELS and CHAIN in view.example.fields


def chain_view(example: InputRow, rows: Sequence[LedgerRow], operator: str) -> ChainView:
    """What the rows of a chain say of its steps, under one operator.

    Where every step was taken away alone, its effect is how much more often the answer changes then than for the whole
    chain. Else random sets of steps tell: how much more often it changes with the step among them than without.
    """
    n_steps = len(example.spans)
    whole = [row for row in rows if row.key.kind in {"full", AGAIN}]
    removals = [row for row in rows if _is_removal(row, operator)]
    alone = [[row for row in removals if set(range(n_steps)) - set(row.kept) == {step}] for step in range(n_steps)]
    singly = all(alone)
    together = [row for row in removals if row.key.kind == SHARED_NULL]
    chain = example.fields[CHAIN]
    effects = []
    for step, span in enumerate(example.spans):
        gone = alone[step] if singly else [row for row in together if step not in row.kept]
        there = whole if singly else [row for row in together if step in row.kept]
        effects.append(_effect(chain[span.start : span.end], gone, there))
    return ChainView(
        question=example.fields.get(QUESTION, ""),
        answer=example.fields.get(ANSWER),
        gold=example.fields.get(GOLD),
        is_right=None if example.gold is None else example.gold == 0,
        operator=operator,
        alone=singly,
        whole=replies_of(whole),
        empty=replies_of([row for row in rows if row.key.kind == "empty"]),
        steps=tuple(effects),
        always=not singly and bool(_read(together).size) and bool(_read(together).all()),
    )


def _is_removal(row: LedgerRow, operator: str) -> bool:
    """Steps were taken away, whoever chose them but an explanation, which looks for those that matter."""
    key = row.key
    chosen = key.kind == SHARED_NULL or key.kind.startswith(PROBE)
    return chosen and (key.operator, key.direction) == (operator, "necessity")


def _effect(text: str, gone: Sequence[LedgerRow], there: Sequence[LedgerRow]) -> StepEffect:
    flags = _read(gone)
    kept = _read(there)
    effect = float(flags.mean() - kept.mean()) if flags.size and kept.size else None
    return StepEffect(text, effect, int(flags.sum()), int(flags.size), replies_of(gone))


def _read(rows: Sequence[LedgerRow]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    flags = changed(rows)
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = flags[~np.isnan(flags)]
    return found


def replies_of(rows: Sequence[LedgerRow]) -> tuple[Reply, ...]:
    """Different replies with how often each came, the most frequent first."""
    counts = Counter(
        ((row.text or "").strip(), None if np.isnan(flag) else bool(flag))
        for row, flag in zip(rows, changed(rows), strict=True)
    )
    return tuple(Reply(text, flag, count) for (text, flag), count in counts.most_common())
