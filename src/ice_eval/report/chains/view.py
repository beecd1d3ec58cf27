"""One chain, step by step: the effect of each step on the answer, in the terminal and in the browser of the page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.text import Text

from ice_eval.records import Kind
from ice_eval.report.example import numbers_of, quoted, shade, title_of
from ice_eval.results import ComparedOutcome, ExampleView, InputRow, LedgerRow, RunSettings
from ice_eval.results.chains import ANSWER, CHAIN, GOLD, LABELS, QUESTION, Flags, changed
from ice_eval.results.outcomes import ALL

_MOST_REPLIES = 3
"""Different replies that are shown of one step."""
ALWAYS = "Every random removal of steps changes the answer, so that no single step stands out."
REPLIES = {True: "another answer", False: "the same answer", None: "cannot be read"}
"""Kinds of replies."""


class ChainReply(NamedTuple):
    """A reply of the model, perhaps given several times."""

    text: str
    changed: bool | None
    """Whether it is another answer than the chain's own; None where it cannot be read."""
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
    """Whether steps were taken away one at a time; else together with others."""
    whole: tuple[ChainReply, ...]
    """To the whole chain, asked several times."""
    empty: tuple[ChainReply, ...]
    """Without any step."""
    steps: tuple[StepEffect, ...]
    always: bool = False
    """Whether every random removal changes the answer, so that no step stands out although all may matter."""


def is_chain(view: ExampleView) -> bool:
    """Return whether an example is a chain of a step-level run."""
    return view.labels == LABELS and CHAIN in view.example.fields


def chain_view(example: InputRow, rows: Sequence[LedgerRow], operator: str) -> ChainView:
    """Return the effects of the steps of a chain under one operator.

    Where every step was taken away alone, its effect is how much more often the answer changes then than for the whole
    chain. Else random sets of steps tell: how much more often it changes with the step among them than without.
    """
    whole = [row for row in rows if row.key.kind in (Kind.FULL, Kind.AGAIN)]
    removals = [
        row  # explanations look for steps that matter, so that their rows are no sample of all
        for row in rows
        if row.key.operator == operator
        and (row.key.kind == Kind.PROBE or (row.key.kind == Kind.RANDOM and row.key.direction == "necessity"))
    ]
    drawn = [row for row in removals if row.key.kind == Kind.RANDOM]
    every = range(len(example.spans))
    gone = [[row for row in removals if set(every) - set(row.kept) == {step}] for step in every]
    alone = all(gone)
    there: list[Sequence[LedgerRow]] = [whole for _ in every]
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
        empty=_replies_of([row for row in rows if row.key.kind == Kind.EMPTY]),
        steps=tuple(map(_effect, texts, gone, there)),
        always=not alone and bool(_read(drawn).size) and bool(_read(drawn).all()),
    )


def _effect(text: str, gone: Sequence[LedgerRow], there: Sequence[LedgerRow]) -> StepEffect:
    """Return the effect of a step, from the rows without it and those with it."""
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
    view: ExampleView, compared: Sequence[ComparedOutcome], *, n_random: int, colour: bool
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
        yield Text()
        yield from _compared(each, view)
    if n_random:
        yield from _random(view, operator, n_random)


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


def _compared(each: ComparedOutcome, view: ExampleView) -> Iterator[Text]:
    line = each.line
    if line.error is not None:
        yield Text(f"{title_of(line)}: {line.error}")
        return
    yield Text(f"{title_of(line)}: {numbers_of(line)}", style="bold")
    act = "alone" if line.direction == "sufficiency" else "removed"
    for row in view.rationale_rows(line):
        yield Text(f"  {_numbers(line.rationale)} {act}: {_reply(row)}")


def _random(view: ExampleView, operator: str, n_random: int) -> Iterator[Text]:
    rows = [row for row in view.rows if row.key.kind == Kind.RANDOM and row.key.operator == operator]
    for direction in dict.fromkeys(row.key.direction for row in rows):
        there = [row for row in rows if row.key.direction == direction]
        some = there if n_random < 0 else there[:n_random]
        yield Text()
        yield Text(f"{len(some)} of {len(there)} random rows under {operator}, {direction}", style="bold")
        for row in some:
            gone = [step for step in range(len(view.example.spans)) if step not in row.kept]
            what = f"{_numbers(row.kept)} alone" if direction == "sufficiency" else f"{_numbers(gone)} removed"
            yield Text(f"  {what}: {_reply(row)}")


def _reply(row: LedgerRow) -> str:
    [reply] = _replies_of([row])
    return f"{quoted(reply.text)} ({REPLIES[reply.changed]})"


def _numbers(steps: Sequence[int]) -> str:
    """Return the numbers of steps, counted from 1."""
    named = ", ".join(str(step + 1) for step in steps)
    return f"step {named}" if len(steps) == 1 else f"steps {named or 'none'}"


_LONGEST_REPLY = 300
"""Characters of a reply that are shown; `ice show` prints the rest."""


def chain_record(example: InputRow, rows: Sequence[LedgerRow], config: RunSettings) -> dict[str, Any] | None:
    """Return what the example browser of the page shows of a chain beside its text; None for a skipped one."""
    if example.skip_reason is not None:
        return None
    found = chain_view(example, rows, config.operators[0])
    return {
        "answer": found.answer,
        "gold": found.gold,
        "right": found.is_right,
        "operator": found.operator,
        "alone": found.alone,
        "remark": ALWAYS if found.always else None,
        "whole": _replies(found.whole),
        "empty": _replies(found.empty),
        "steps": [
            {
                "effect": None if step.effect is None else round(step.effect, 3),
                "changed": step.n_changed,
                "read": step.n_read,
                "replies": _replies(step.replies),
            }
            for step in found.steps
        ],
    }


def _replies(replies: Sequence[ChainReply]) -> list[tuple[str, bool | None, int]]:
    """Return the text, whether it is another answer, and how often it came, of the most frequent replies."""
    return [
        (text if len(text) <= _LONGEST_REPLY else text[:_LONGEST_REPLY] + " …", changed, times)
        for text, changed, times in replies[:_MOST_REPLIES]
    ]
