"""One chain as lines of text: its steps numbered and shaded by what they do."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from ice_eval.records import Kind
from ice_eval.report.chains.effects import ALWAYS, MOST_REPLIES, REPLIES, ChainView, Reply, chain_view, replies_of
from ice_eval.report.example import numbers_of, quoted, shade, title_of
from ice_eval.results import Compared, ExampleView, LedgerRow
from ice_eval.results.outcomes import ALL


def chain_lines(view: ExampleView, compared: Sequence[Compared], *, n_random: int, colour: bool) -> Iterator[Text]:
    """The chain, what each of its steps does, what explanations chose, and random rows: all of them if negative."""
    operator = operator_of(view)
    found = chain_view(view.example, view.rows, operator)
    yield Text(f"question: {found.question}")
    yield Text(f"own answer: {found.answer}{_judged(found)}")
    yield from _replies("whole chain", found.whole)
    yield from _replies("no steps", found.empty)
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
        yield from _replies("      without it", step.replies)
    for each in compared:
        yield Text()
        yield from _compared(each, view)
    if n_random:
        yield from _random(view, operator, n_random)


def operator_of(view: ExampleView) -> str:
    """The operator that is looked at: the first of those that were chosen, or of all."""
    chosen = [each.line.operator for each in view.compared if each.line.operator != ALL]
    scored = [row.key.operator for row in view.rows if row.key.kind == Kind.RANDOM]
    return next((name for name in [*chosen, *scored] if name), "delete")


def _judged(found: ChainView) -> str:
    if found.is_right is None:
        return ""
    return " (right)" if found.is_right else f" (wrong: {found.gold})"


def _replies(name: str, replies: Sequence[Reply]) -> Iterator[Text]:
    for reply in replies[:MOST_REPLIES]:
        times = f", {reply.times} times" if reply.times > 1 else ""
        yield Text(f"{name}: {quoted(reply.text)} ({REPLIES[reply.changed]}{times})")
    if len(replies) > MOST_REPLIES:
        yield Text(f"{name}: {len(replies) - MOST_REPLIES} other replies")


def _compared(each: Compared, view: ExampleView) -> Iterator[Text]:
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
        yield from (_row(row, len(view.example.spans)) for row in some)


def _row(row: LedgerRow, n_steps: int) -> Text:
    if row.key.direction == "sufficiency":
        return Text(f"  {_numbers(row.kept)} alone: {_reply(row)}")
    gone = [step for step in range(n_steps) if step not in row.kept]
    return Text(f"  {_numbers(gone)} removed: {_reply(row)}")


def _reply(row: LedgerRow) -> str:
    [reply] = replies_of([row])
    return f"{quoted(reply.text)} ({REPLIES[reply.changed]})"


def _numbers(steps: Sequence[int]) -> str:
    """As a reader counts."""
    named = ", ".join(str(step + 1) for step in steps)
    return f"step {named}" if len(steps) == 1 else f"steps {named or 'none'}"
