"""One chain, step by step: what the answer does when a step is gone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ice_eval.records import Kind
from ice_eval.results import ExampleView, InputRow, LedgerRow
from ice_eval.subjects.chain.summary import ANSWER, CHAIN, GOLD, LABELS, QUESTION, Flags, changed

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
    whole = [row for row in rows if row.key.kind in (Kind.FULL, Kind.AGAIN)]
    removals = [row for row in rows if _is_removal(row, operator)]
    drawn = [row for row in removals if row.key.kind == Kind.RANDOM]
    alone = _alone(removals, whole, len(example.spans))
    sides = _among_others(drawn, len(example.spans)) if alone is None else alone
    texts = [example.fields[CHAIN][span.start : span.end] for span in example.spans]
    return ChainView(
        question=example.fields.get(QUESTION, ""),
        answer=example.fields.get(ANSWER),
        gold=example.fields.get(GOLD),
        is_right=None if example.gold is None else example.gold == 0,
        operator=operator,
        alone=alone is not None,
        whole=replies_of(whole),
        empty=replies_of([row for row in rows if row.key.kind == Kind.EMPTY]),
        steps=tuple(_effect(text, each) for text, each in zip(texts, sides, strict=True)),
        always=alone is None and bool(_read(drawn).size) and bool(_read(drawn).all()),
    )


class _Sides(NamedTuple):
    """Rows that tell what a step does: those without it, and those with it."""

    gone: Sequence[LedgerRow]
    there: Sequence[LedgerRow]


def _alone(removals: Sequence[LedgerRow], whole: Sequence[LedgerRow], n_steps: int) -> list[_Sides] | None:
    """Each step taken away alone, beside the whole chain; None where that was not done to every step."""
    every = set(range(n_steps))
    gone = [[row for row in removals if every - set(row.kept) == {step}] for step in range(n_steps)]
    return [_Sides(rows, whole) for rows in gone] if all(gone) else None


def _among_others(drawn: Sequence[LedgerRow], n_steps: int) -> list[_Sides]:
    """Random sets with each step among those taken away, beside the others."""
    return [
        _Sides([row for row in drawn if step not in row.kept], [row for row in drawn if step in row.kept])
        for step in range(n_steps)
    ]


def _is_removal(row: LedgerRow, operator: str) -> bool:
    """Steps were taken away, whoever chose them but an explanation, which looks for those that matter."""
    key = row.key
    chosen = key.kind in (Kind.RANDOM, Kind.PROBE)
    return chosen and (key.operator, key.direction) == (operator, "necessity")


def _effect(text: str, sides: _Sides) -> StepEffect:
    gone, there = _read(sides.gone), _read(sides.there)
    effect = float(gone.mean() - there.mean()) if gone.size and there.size else None
    return StepEffect(text, effect, int(gone.sum()), int(gone.size), replies_of(sides.gone))


def _read(rows: Sequence[LedgerRow]) -> Flags:
    """Whether the answer changed, of the rows whose reply can be read."""
    flags = changed(rows)
    return flags[~np.isnan(flags)]


def replies_of(rows: Sequence[LedgerRow]) -> tuple[Reply, ...]:
    """Different replies with how often each came, the most frequent first."""
    counts = Counter(
        ((row.text or "").strip(), None if np.isnan(flag) else bool(flag))
        for row, flag in zip(rows, changed(rows), strict=True)
    )
    return tuple(Reply(text, flag, count) for (text, flag), count in counts.most_common())
