"""One example as lines of text: shaded in a terminal, with brackets where there are no colours."""

from collections.abc import Iterator

import numpy as np
from rich.style import Style
from rich.text import Text

from ice_eval._controls import without_controls
from ice_eval.nulls import SIZE
from ice_eval.records import Answer, Kind
from ice_eval.report.chains import chain_lines, is_chain
from ice_eval.report.highlight import Piece, histogram, pieces
from ice_eval.report.written import numbers_of, quoted, shade, title_of
from ice_eval.results import Compared, ExampleView, LedgerRow
from ice_eval.results.outcomes import ALL

_BARS = "▁▂▃▄▅▆▇█"


def example_lines(view: ExampleView, *, n_random: int = 0, colour: bool = False) -> Iterator[Text]:
    """The example, its rationales, and random rows: as many as asked for under each operator, all if negative."""
    example = view.example
    yield Text(f"example {example.example_id}", style="bold")
    if is_chain(view) and example.skip_reason is None:
        yield from chain_lines(view, shown(view), n_random=n_random, colour=colour)
        return
    yield from (Text(f"{name}: {text}") for name, text in example.fields.items())
    if example.skip_reason is not None:
        yield Text(f"takes no part: {example.skip_reason}")
        return
    gold = "unknown" if example.gold is None else view.labels[example.gold]
    yield Text(f"explained label: {view.target}, gold: {gold}")
    yield from (Text(_answer_line(name, answer)) for name, answer in example.answers.items())
    yield from (_score_line(row, view) for row in view.rows if row.key.kind in (Kind.FULL, Kind.EMPTY))
    for each in shown(view):
        yield Text()
        yield from _compared_lines(each, view, colour=colour)
    if n_random:
        yield from _random_lines(view, n_random)


def shown(view: ExampleView) -> list[Compared]:
    """What is worth showing: the average over operators only where it is all there is."""
    single = [each for each in view.compared if each.line.operator != ALL]
    return single or list(view.compared)


def harmless(line: Text) -> Text:
    """Without the control characters that a text may hold: they would be obeyed by the terminal."""
    line.plain = without_controls(line.plain)
    return line


def probabilities(row: LedgerRow, labels: tuple[str, ...]) -> dict[str, float | None]:
    """Of every label; None where a score is not finite."""
    return {label: float(np.exp(z)) if np.isfinite(z) else None for label, z in zip(labels, row.scores, strict=True)}


def _answer_line(name: str, answer: Answer) -> str:
    """What the model said, and what came of it."""
    if answer.text is None:
        return f"{name}: {answer.problem}"
    read = answer.problem or f"{answer.n_named} words of the text, {answer.n_absent} others"
    return f"{name}: the model answered {quoted(answer.text)} ({read})"


def _compared_lines(each: Compared, view: ExampleView, *, colour: bool) -> Iterator[Text]:
    line = each.line
    if line.error is not None:
        yield Text(f"{title_of(line)}: {line.error}")
        return
    yield Text(f"{title_of(line)}: {numbers_of(line)}", style="bold")
    fields = list(pieces(view, line))
    for name, found in fields:
        yield Text(f"  {name}: " if len(fields) > 1 else "  ").append_text(_marked(found, colour=colour))
    yield from _null_lines(each)
    yield from (_score_line(row, view) for row in view.rationale_rows(line))


def _marked(found: list[Piece], *, colour: bool) -> Text:
    """Attributions as shades and the rationale underlined; without colours the rationale in brackets."""
    line = Text()
    for piece in found:
        if colour:
            emphasis = Style(bold=piece.in_rationale, underline=piece.in_rationale)
            line.append(piece.text, style=shade(piece.strength) + emphasis)
        else:
            line.append(f"[{piece.text}]" if piece.in_rationale else piece.text)
    return line


def _null_lines(each: Compared) -> Iterator[Text]:
    """The null as bars on a line that reaches to the rationale too, and the rationale's place under them."""
    if each.scores is None:
        return
    found = histogram(each.scores)
    most = max(found.counts)
    bars = "".join(" " if n == 0 else _BARS[(len(_BARS) - 1) * n // most] for n in found.counts)
    better = " (less is better)" if each.line.direction == "necessity" else ""
    ends, reached = (f"{low:.3f} to {high:.3f}" for low, high in ((found.low, found.high), found.null))
    reach = "" if reached == ends else f", {reached}"
    yield Text(f"  {found.low:.3f} {bars} {found.high:.3f}  {sum(found.counts)} random sets{reach}{better}")
    yield Text(f"        {' ' * found.place}▲ {found.rationale:.3f} rationale")


def _random_lines(view: ExampleView, n_random: int) -> Iterator[Text]:
    sets = [row for row in view.rows if row.key.kind == Kind.RANDOM]
    chosen = {(each.line.operator, each.line.direction) for each in shown(view)}
    for operator, direction in dict.fromkeys((row.key.operator, row.key.direction) for row in sets):
        if (operator, direction) not in chosen:
            continue
        random = [row for row in sets if (row.key.operator, row.key.direction) == (operator, direction)]
        some = random if n_random < 0 else random[:n_random]
        yield Text()
        yield Text(f"{len(some)} of {len(random)} random rows under {operator}, {direction}", style="bold")
        yield from (_score_line(row, view) for row in some)


def _score_line(row: LedgerRow, view: ExampleView) -> Text:
    probability = probabilities(row, view.labels)[view.target]
    value = "not finite" if probability is None else f"{probability:.3f}"
    return Text(f"  {value}  {_named(row):<20} {quoted((row.text or '').strip())}")


def _named(row: LedgerRow) -> str:
    """Return what a row is: its kind, and whose or which it is."""
    key = row.key
    if key.kind == Kind.EMPTY:
        return f"empty ({key.operator})" if key.operator else "empty"
    null = None if key.null == SIZE else key.null
    return ":".join(part for part in (key.kind.label, null, key.attribution) if part)
