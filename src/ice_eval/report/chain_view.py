"""One chain, step by step: the effect of each step on the answer, in the terminal and in the browser of the page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.text import Text

from ice_eval.operators import pose_of
from ice_eval.records import Kind
from ice_eval.report.example import heading, quoted, random_lines, shade, shortened
from ice_eval.results import ComparedOutcome, ExampleView, InputRow, LedgerRow, RunSettings
from ice_eval.results.chains import ANSWER, CHAIN, GOLD, LABELS, QUESTION, Flags, changed
from ice_eval.results.outcomes import ALL

_MOST_REPLIES = 3
"""Different replies that are shown of one step."""
_LONGEST_REPLY = 300
"""Characters of a reply that the page shows; `ice show` prints the rest."""
ALWAYS = "Every random removal of steps changes the answer, so that no single step stands out."
REPLIES = {True: "another answer", False: "the same answer", None: "cannot be read"}


class ChainReply(NamedTuple):
    """A reply of the model, perhaps given several times."""

    text: str
    changed: bool | None
    """True if it is another answer than the chain's own; None where it cannot be read."""
    times: int


class StepEffect(NamedTuple):
    """The effect of one step."""

    text: str
    effect: float | None
    """Share of replies that change where it is gone, less the share where it is there; None where none was read."""
    n_changed: int
    n_read: int
    replies: tuple[ChainReply, ...]
    """Where it is gone, the most frequent first."""


@dataclass(frozen=True)
class ChainView:
    """One chain with the effects of its steps."""

    question: str
    answer: str | None
    gold: str | None
    is_right: bool | None
    operator: str
    alone: bool
    """True if steps were removed one at a time; else together with others."""
    whole: tuple[ChainReply, ...]
    """To the whole chain, asked several times."""
    empty: tuple[ChainReply, ...]
    """Without any step."""
    steps: tuple[StepEffect, ...]
    always: bool = False
    """True if every random removal changes the answer, so that no step stands out although all may matter."""


def is_chain(view: ExampleView) -> bool:
    """Return whether an example is a chain of a run about chains."""
    return view.labels == LABELS and CHAIN in view.example.fields


def chain_view(example: InputRow, rows: Sequence[LedgerRow], operator: str) -> ChainView:
    """Return the effects of the steps of a chain under one operator.

    Where every step was taken away alone, its effect is how much more often the answer changes then than for the whole
    chain. Else random sets of steps tell: how much more often it changes with the step among them than without.
    """
    references = [
        row
        for row in rows
        if row.key.kind in (Kind.FULL, Kind.EMPTY, Kind.AGAIN) and pose_of(row.key.operator) == pose_of(operator)
    ]
    whole = [row for row in references if row.kept]
    removals = [
        row
        for row in rows
        if row.key.operator == operator and (row.key.direction == "necessity" or row.key.kind == Kind.PROBE)
    ]
    # Explanations look for steps that matter, so that their rows are no sample of all.
    drawn = [row for row in removals if row.key.kind == Kind.RANDOM]
    sample = [row for row in removals if row.key.kind in (Kind.RANDOM, Kind.PROBE)]
    every = range(len(example.spans))
    gone = [[row for row in sample if set(every) - set(row.kept) == {step}] for step in every]
    there, alone = [whole for _ in every], all(gone)
    if not alone:
        gone = [[row for row in drawn if step not in row.kept] for step in every]
        there = [[row for row in drawn if step in row.kept] for step in every]
    texts = [example.fields[CHAIN][span.start : span.end] for span in example.spans]
    return ChainView(
        question=example.fields.get(QUESTION, ""),
        answer=example.fields.get(ANSWER),
        gold=example.fields.get(GOLD),
        is_right=None if example.gold is None else example.gold == 0,
        operator=operator,
        alone=alone,
        whole=_replies_of(whole),
        empty=_replies_of([row for row in references if not row.kept]),
        steps=tuple(map(_effect, texts, gone, there)),
        always=not alone and bool(_read(drawn).size) and bool(_read(drawn).all()),
    )


def _effect(text: str, gone: Sequence[LedgerRow], there: Sequence[LedgerRow]) -> StepEffect:
    without, with_it = _read(gone), _read(there)
    effect = float(without.mean() - with_it.mean()) if without.size and with_it.size else None
    return StepEffect(text, effect, int(without.sum()), int(without.size), _replies_of(gone))


def _read(rows: Sequence[LedgerRow]) -> Flags:
    """Return whether the answer changed, for the rows whose reply can be read."""
    flags = changed(rows)
    return flags[~np.isnan(flags)]


def _replies_of(rows: Sequence[LedgerRow]) -> tuple[ChainReply, ...]:
    """Return different replies with how often each came, the most frequent first."""
    counts = Counter(
        ((row.text or "").strip(), None if np.isnan(flag) else bool(flag))
        for row, flag in zip(rows, changed(rows), strict=True)
    )
    return tuple(ChainReply(text, flag, count) for (text, flag), count in counts.most_common())


def chain_lines(
    view: ExampleView, compared: Sequence[ComparedOutcome], *, n_random: int, colour: bool, paper: bool
) -> Iterator[Text]:
    """Yield the chain, the effect of each step, what explanations chose, and random rows: all of them if negative."""
    operator = operator_of(view)
    found = chain_view(view.example, view.rows, operator)
    yield Text(f"question: {found.question}")
    judged = {None: "", True: " (right)", False: f" (wrong: {found.gold})"}[found.is_right]
    yield Text(f"own answer: {found.answer}{judged}")
    yield from _reply_lines("whole chain", found.whole)
    yield from _reply_lines("no steps", found.empty)
    for name, said in view.example.answers.items():
        yield Text(f"{name}: {said.problem if said.text is None else f'the model wrote {quoted(said.text)}'}")
    yield Text()
    gone = "removed alone" if found.alone else "among those removed"
    yield Text(f"steps, and how much more often the answer changes with each {gone} ({operator})", style="bold")
    if found.always:
        yield Text(ALWAYS)
    for number, step in enumerate(found.steps, start=1):
        effect = "   – " if step.effect is None else f"{step.effect:+.2f}"
        head = Text(f"{number:>3}  {effect}  {step.n_changed}/{step.n_read}  ")
        yield head.append(step.text, style=shade(step.effect or 0.0) if colour else "")
        yield from _reply_lines("      without it", step.replies)
    for each in compared:
        yield from (Text(), heading(each.line, paper=paper))
        for row in view.rationale_rows(each.line) if each.line.error is None else ():
            yield _row_line(row, each.line.rationale, each.line.direction)
    chosen = [(operator, "sufficiency"), (operator, "necessity")]

    def random_line(row: LedgerRow) -> Text:
        gone = [step for step in range(len(found.steps)) if step not in row.kept]
        return _row_line(row, row.kept if row.key.direction == "sufficiency" else gone, row.key.direction)

    yield from random_lines(view, n_random, chosen, random_line)


def _row_line(row: LedgerRow, steps: Sequence[int], direction: str | None) -> Text:
    """Return the reply to a row in which just these steps are kept, or removed; they are counted from 1."""
    named = ", ".join(str(step + 1) for step in steps)
    numbers = f"step {named}" if len(steps) == 1 else f"steps {named or 'none'}"
    [reply] = _replies_of([row])
    act = "alone" if direction == "sufficiency" else "removed"
    return Text(f"  {numbers} {act}: {quoted(reply.text)} ({REPLIES[reply.changed]})")


def operator_of(view: ExampleView) -> str:
    """Return the operator that is shown: the first of those that were chosen, or of all."""
    chosen = [each.line.operator for each in view.compared if each.line.operator != ALL]
    scored = [row.key.operator for row in view.rows if row.key.kind == Kind.RANDOM]
    return next((name for name in [*chosen, *scored] if name), "delete")


def _reply_lines(name: str, replies: Sequence[ChainReply]) -> Iterator[Text]:
    for reply in replies[:_MOST_REPLIES]:
        times = f", {reply.times} times" if reply.times > 1 else ""
        yield Text(f"{name}: {quoted(reply.text)} ({REPLIES[reply.changed]}{times})")
    if len(replies) > _MOST_REPLIES:
        yield Text(f"{name}: {len(replies) - _MOST_REPLIES} other replies")


def chain_record(example: InputRow, rows: Sequence[LedgerRow], config: RunSettings) -> dict[str, Any] | None:
    """Return what the example browser of the page shows of a chain beside its text; None for a skipped one."""
    if example.skip_reason is not None:
        return None
    found = chain_view(example, rows, config.operators[0])
    steps = [
        {
            "effect": None if effect is None else round(effect, 3),
            "changed": n,
            "read": read,
            "replies": _replies(replies),
        }
        for _, effect, n, read, replies in found.steps
    ]
    about = {"answer": found.answer, "gold": found.gold, "right": found.is_right, "operator": found.operator}
    about |= {"alone": found.alone, "remark": ALWAYS if found.always else None}
    return {**about, "whole": _replies(found.whole), "empty": _replies(found.empty), "steps": steps}


def _replies(replies: Sequence[ChainReply]) -> list[ChainReply]:
    """Return the most frequent replies, shortened."""
    return [reply._replace(text=shortened(reply.text, _LONGEST_REPLY)) for reply in replies[:_MOST_REPLIES]]
