"""One example, chain or claim: its text with an attribution, its null, the effects of its steps, and lines of text."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.style import Style
from rich.text import Text
from scipy.special import expit

from ice_eval.errors import without_controls
from ice_eval.nulls import SIZE
from ice_eval.operators import pose_of
from ice_eval.records import Kind, Span
from ice_eval.report.colours import AGAINST, SUPPORT, WHITE
from ice_eval.results import ComparedOutcome, ExampleOutcome, ExampleView, InputRow, LedgerRow
from ice_eval.results.chains import ANSWER, CHAIN, GOLD, LABELS, QUESTION, Flags, changed
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import ClaimLine
from ice_eval.results.view import Scores, passages_named, passages_of, set_of
from ice_eval.table import EMPTY, percent, share, whole, written

N_BINS = 24
LARGEST_LOG_ODDS = 30.0
"""Limit of drawn log-odds: the probability is 1 to the thirteenth digit."""
_FAINT = 0.1
"""Limit of strength below which a unit has no shade."""
_GREY = "#6b6b6b"
"""Start of all shades: as dark as the full ones, so that a weak unit does not stand out on any background."""
_BARS = "▁▂▃▄▅▆▇█"
NOT_TESTED = "not tested"
"""Word of a claim without a test."""
_BEGINNING = 120
"""Characters of a passage that stand for it where it was printed in full before."""
Place = tuple[str | None, str | None]
"""Operator and direction."""


class TextPiece(NamedTuple):
    """A stretch of text: a unit, or the text between two."""

    text: str
    strength: float
    """Attribution of the unit from -1 to 1, relative to the largest magnitude in the text."""
    in_rationale: bool


class Histogram(NamedTuple):
    """Null of one example, and the position of the rationale in it, by probability or log-probability per token."""

    counts: tuple[int, ...]
    place: int
    low: float
    """Score at the left end."""
    high: float
    rationale: float
    null: tuple[float, float]
    """The lowest and the highest score of a random set."""


def pieces(view: ExampleView, line: ExampleOutcome) -> Iterator[tuple[str, list[TextPiece]]]:
    """Yield every explained field with its text in pieces, as one configuration sees it."""
    example = view.example
    nothing = np.zeros(len(example.spans))
    strengths = np.nan_to_num(example.attributions.get(line.attribution, nothing), posinf=0.0, neginf=0.0)
    strengths = nothing if strengths.size != nothing.size else strengths / (np.abs(strengths).max(initial=0.0) or 1.0)
    rationale = set(line.rationale)
    for name, text in example.fields.items():
        if any(span.field == name for span in example.spans):
            cut = cut_at_units(text, example.spans, name)
            yield name, [TextPiece(part, float(strengths[u]) if u >= 0 else 0.0, u in rationale) for part, u in cut]


def cut_at_units(text: str, spans: Sequence[Span], field: str) -> list[tuple[str, int]]:
    """Return the text of a field in pieces, each with its unit; -1 is the text between units."""
    # Also used for the page, because a browser counts characters in another way than Python.
    found, place = list[tuple[str, int]](), 0
    units = [(unit, span) for unit, span in enumerate(spans) if span.field == field]
    for unit, span in sorted(units, key=lambda each: each[1].start):
        found += [(text[place : span.start], -1), (text[max(span.start, place) : span.end], unit)]
        place = max(place, span.end)
    return [(piece, unit) for piece, unit in (*found, (text[place:], -1)) if piece]


def histogram(scores: Scores) -> Histogram:
    """Return the null in bins of equal width on the scale of log-odds, which does not saturate."""
    values = np.append(scores.null, scores.rationale)
    if not scores.is_open:
        values = np.clip(values, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    null, rationale, low, high = values[:-1], values[-1], values.min(), values.max()
    edges = np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)
    counts, _ = np.histogram(null, bins=edges)
    place = int(np.clip(np.searchsorted(edges, rationale, side="right") - 1, 0, N_BINS - 1))
    ends = np.array([low, high, rationale, null.min(), null.max()])
    first, last, own, *reach = (ends if scores.is_open else expit(ends)).tolist()
    return Histogram(tuple(counts.tolist()), place, first, last, own, (reach[0], reach[1]))


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + " …"


def title_of(line: ExampleOutcome) -> str:
    null = "" if line.null == SIZE else f", null {line.null}"
    return f"{line.attribution} under {line.operator}, {line.direction}, k = {share(line.k)}{null}"


def numbers_of(line: ExampleOutcome, *, paper: bool = False) -> str:
    """Return win rate and p-value of one example, or why it has none; `paper` adds NSR and effect by its names."""
    if line.error is not None:
        return line.error
    beside = f", NSR = {written(line.nsr, 'number')}, d_null = {written(line.effect_size, 'effect')}" if paper else ""
    name = "WR" if paper else "win rate"
    return f"{name} {100 * line.win_rate:.0f} % of {line.m}{beside}, p = {line.p_value:.3f}"


def heading(line: ExampleOutcome, *, paper: bool) -> Text:
    style = "" if line.error is not None else "bold"
    return Text(f"{title_of(line)}: {numbers_of(line, paper=paper)}", style=style)


def quoted(text: str) -> str:
    """Return a quoted text on one line. `repr` would also escape the joiners of emoji and Persian or Hindi words."""
    escaped = (repr(c)[1:-1] if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c for c in text)
    return f"'{''.join(escaped)}'"


def shade(strength: float) -> Style:
    """Return the background for a strength between -1 and 1; none for a negligible one."""
    if abs(strength) < _FAINT:
        return Style()
    full = SUPPORT if strength > 0 else AGAINST
    mixed = (round(a + (b - a) * abs(strength)) for a, b in zip(rgb(_GREY), rgb(full), strict=True))
    return Style(color=WHITE, bgcolor="#" + "".join(f"{part:02x}" for part in mixed))


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def example_lines(view: ExampleView, *, n_random: int = 0, colour: bool = False, paper: bool = False) -> Iterator[Text]:
    """Yield the example, its rationales, and `n_random` random rows under each operator (all if negative).

    With `paper`, rationales have the numbers of the paper.
    """
    example = view.example
    yield Text(f"example {example.example_id}", style="bold")
    if is_chain(view) and example.skip_reason is None:
        yield from chain_lines(view, n_random=n_random, colour=colour, paper=paper)
        return
    yield from (Text(f"{name}: {text}") for name, text in example.fields.items())
    if example.skip_reason is not None:
        yield Text(f"skipped: {example.skip_reason}")
        return
    if view.is_claim:
        yield from claim_lines(view)
    elif view.is_open:
        yield Text("scores: mean log-probability of the tokens of the text that the model wrote")
    else:
        gold = "unknown" if example.gold is None else view.labels[example.gold]
        yield Text(f"explained label: {view.target}, gold: {gold}")
    for name, answer in example.answers.items():
        read = answer.problem or f"{answer.n_named} words of the text, {answer.n_absent} others"
        said = answer.problem if answer.text is None else f"the model answered {quoted(answer.text)} ({read})"
        yield Text(f"{name}: {said}")
    yield from (_score_line(row, view) for row in view.rows if row.key.kind in (Kind.FULL, Kind.EMPTY))
    for each in shown(view):
        yield Text()
        yield from _compared_lines(each, view, colour=colour, paper=paper)
    chosen = {(each.line.operator, each.line.direction) for each in shown(view)}
    yield from random_lines(view, n_random, chosen, lambda row: _score_line(row, view))


def shown(view: ExampleView) -> list[ComparedOutcome]:
    """Return the comparisons that are shown: the average over operators only where there is nothing else."""
    single = [each for each in view.compared if each.line.operator != ALL]
    return single or list(view.compared)


def harmless(line: Text) -> Text:
    """Return a line, which may have the text of an example, without what a terminal would obey."""
    line.plain = without_controls(line.plain, is_text=True)
    return line


def probabilities(row: LedgerRow, labels: tuple[str, ...]) -> dict[str, float | None]:
    """Return the probability of every label; None where a score is not finite."""
    return {label: float(np.exp(z)) if np.isfinite(z) else None for label, z in zip(labels, row.scores, strict=True)}


def _compared_lines(each: ComparedOutcome, view: ExampleView, *, colour: bool, paper: bool) -> Iterator[Text]:
    line = each.line
    yield heading(line, paper=paper)
    if line.error is not None:
        return
    for passage in passages_of(view.example, line.rationale) if view.is_claim else ():
        yield Text(f"  passage {passage.name}: {shortened(passage.text, _BEGINNING)}")
    fields = [] if view.is_claim else list(pieces(view, line))
    for name, found in fields:
        text = Text(f"  {name}: " if len(fields) > 1 else "  ")
        for piece in found:  # the attribution as a shade and the rationale underlined, or in brackets
            emphasis = Style(bold=piece.in_rationale, underline=piece.in_rationale)
            marked = f"[{piece.text}]" if piece.in_rationale and not colour else piece.text
            text.append(marked, style=shade(piece.strength) + emphasis if colour else None)
        yield text
    if each.scores is not None:
        yield from _null_lines(histogram(each.scores), less_is_better=line.direction == "necessity")
    yield from (_score_line(row, view) for row in view.rationale_rows(line))


def _null_lines(found: Histogram, *, less_is_better: bool) -> Iterator[Text]:
    """Yield the null as bars on a line that also includes the rationale, and a mark at the rationale under them."""
    bars = "".join(" " if n == 0 else _BARS[(len(_BARS) - 1) * n // max(found.counts)] for n in found.counts)
    better = " (less is better)" if less_is_better else ""
    ends, reached = (f"{low:.3f} to {high:.3f}" for low, high in ((found.low, found.high), found.null))
    reach = "" if reached == ends else f", {reached}"
    yield Text(f"  {found.low:.3f} {bars} {found.high:.3f}  {sum(found.counts)} random sets{reach}{better}")
    yield Text(f"  {' ' * len(f'{found.low:.3f} ')}{' ' * found.place}▲ {found.rationale:.3f} rationale")


def random_lines(
    view: ExampleView, n_random: int, chosen: Container[Place], written: Callable[[LedgerRow], Text]
) -> Iterator[Text]:
    """Yield `n_random` random rows under each operator and direction that is chosen (all if negative)."""
    groups: dict[Place, list[LedgerRow]] = {}
    for row in view.rows if n_random else ():
        if row.key.kind == Kind.RANDOM and (row.key.operator, row.key.direction) in chosen:
            groups.setdefault((row.key.operator, row.key.direction), []).append(row)
    for (operator, direction), rows in groups.items():
        some = rows if n_random < 0 else rows[:n_random]
        yield Text()
        yield Text(f"{len(some)} of {len(rows)} random rows under {operator}, {direction}", style="bold")
        yield from map(written, some)


def _score_line(row: LedgerRow, view: ExampleView) -> Text:
    """Return the score of a row, its kind, and its text; of a claim, the passages that are kept or removed."""
    key, score = row.key, row.scores[0] if view.is_open else probabilities(row, view.labels)[view.target]
    value = "not finite" if score is None or not np.isfinite(score) else f"{score:.3f}"
    name = ":".join(part for part in (key.kind.label, None if key.null == SIZE else key.null, key.attribution) if part)
    if key.kind == Kind.EMPTY:
        name = f"empty ({key.operator})" if key.operator else "empty"
    if view.is_claim:
        act = {"necessity": " removed", "sufficiency": " alone"}.get(key.direction or "", "")
        named = passages_named(view.example, set_of(view.example, row)) or "none"
        return Text(f"  {value}  {name:<20} passages: {named}{act}")
    return Text(f"  {value}  {name:<20} {quoted((row.text or '').strip())}")


MOST_REPLIES = 3
"""Different replies that are shown of one step."""
ALWAYS = "Every random removal of steps changes the answer, so that no single step stands out."
REPLIES = {True: "another answer", False: "the same answer", None: "cannot be read"}


# --- claims of cited answers ----------------------------------------------------------------------------------------


def claim_scores(line: ClaimLine) -> list[tuple[str, str, str]]:
    """Return the scores of a claim, per token and in sum, each with the passages that it was scored with."""

    def written(value: float | None, times: int | None) -> str:
        return EMPTY if value is None or times is None else f"{value * times:z.2f}".replace("-", "−")

    names = ("all passages", "closed book", "cited alone", "without cited")
    scores = (line.score_full, line.score_empty, line.score_kept, line.score_removed)
    return [(name, written(score, 1), written(score, line.n_tokens)) for name, score in zip(names, scores, strict=True)]


def claim_test(line: ClaimLine, example: InputRow) -> list[str]:
    """Return sentences on the test of a claim and on the best set of other passages; none for one without numbers."""
    if line.win_rate is None or line.p_value is None:
        return []
    rate = f"{whole(line.win_rate)} of {line.n_sets} random {'set' if line.n_sets == 1 else 'sets'}"
    found = [f"Its citations win against {rate}, ties counted half (p = {written(line.p_value, 'p-value')})."]
    if line.preserved is not None:
        found.append(f"Alone they preserve {percent(line.preserved)} of what all passages add.")
    if line.other_preserved is not None:
        named = f"{'passage' if len(line.other) == 1 else 'passages'} {passages_named(example, line.other)}"
        found.append(f"The best other set ({named}) preserves {percent(line.other_preserved)}.")
    return found


def claim_lines(view: ExampleView) -> Iterator[Text]:
    scale = "mean log-probability of the claim's tokens" if view.is_open else "1 if a reply states the claim, else 0"
    yield Text(f"scores: {scale}")
    line = view.claim
    if line is None:
        return
    yield Text(f"word: {line.word or NOT_TESTED} ({line.reason})", style="bold")
    yield Text(f"cites: {passages_named(view.example, line.cites) or 'none'}")
    for name, mean, total in claim_scores(line):
        yield Text(f"  {name:<14} {mean:>8}" + (f" per token {total:>9} in sum" if view.is_open else ""))
    yield from map(Text, claim_test(line, view.example))


# --- chains of thought ----------------------------------------------------------------------------------------------


class ChainReply(NamedTuple):
    """A reply of the model, perhaps given several times."""

    text: str
    changed: bool | None
    """True if it is another answer than the chain's own; None where it cannot be read."""
    times: int


class StepEffect(NamedTuple):
    text: str
    effect: float | None
    """Share of replies that change where it is gone, less the share where it is there; None where none was read."""
    n_changed: int
    n_read: int
    replies: tuple[ChainReply, ...]
    """Where it is gone, the most frequent first."""


class ChainView(NamedTuple):
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
    kinds, pose = (Kind.FULL, Kind.EMPTY, Kind.AGAIN), pose_of(operator)
    references = [row for row in rows if row.key.kind in kinds and pose_of(row.key.operator) == pose]
    whole = [row for row in references if row.kept]
    # Explanations look for steps that matter, so that their rows are no sample of all.
    own = [row for row in rows if row.key.operator == operator]
    removed = ((Kind.RANDOM, "necessity"), (Kind.PROBE, "sufficiency"), (Kind.PROBE, "necessity"), (Kind.PROBE, None))
    sample = [row for row in own if (row.key.kind, row.key.direction) in removed]
    drawn = [row for row in sample if row.key.kind == Kind.RANDOM]
    every = range(len(example.spans))
    gone = [[row for row in sample if set(every) - set(row.kept) == {step}] for step in every]
    there, alone = [whole for _ in every], all(gone)
    if not alone:
        gone = [[row for row in drawn if step not in row.kept] for step in every]
        there = [[row for row in drawn if step in row.kept] for step in every]
    texts = [example.fields[CHAIN][span.start : span.end] for span in example.spans]
    answers = _read(drawn)
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
        always=not alone and bool(answers.size and answers.all()),
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


def chain_lines(view: ExampleView, *, n_random: int, colour: bool, paper: bool) -> Iterator[Text]:
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

    def row_line(row: LedgerRow) -> Text:
        alone = row.key.direction == "sufficiency"
        steps = [str(step + 1) for step in range(len(found.steps)) if (step in row.kept) == alone]
        named = f"{'step' if len(steps) == 1 else 'steps'} {', '.join(steps) or 'none'}"
        [reply] = _replies_of([row])
        act = "alone" if alone else "removed"
        return Text(f"  {named} {act}: {quoted(reply.text)} ({REPLIES[reply.changed]})")

    for each in shown(view):
        yield from (Text(), heading(each.line, paper=paper))
        yield from map(row_line, view.rationale_rows(each.line) if each.line.error is None else ())
    yield from random_lines(view, n_random, [(operator, "sufficiency"), (operator, "necessity")], row_line)


def operator_of(view: ExampleView) -> str:
    """Return the operator that is shown: the first of those that were chosen, or of all."""
    chosen = [each.line.operator for each in view.compared if each.line.operator != ALL]
    scored = [row.key.operator for row in view.rows if row.key.kind == Kind.RANDOM]
    return next(filter(None, [*chosen, *scored]), "delete")


def _reply_lines(name: str, replies: Sequence[ChainReply]) -> Iterator[Text]:
    for reply in replies[:MOST_REPLIES]:
        times = f", {reply.times} times" if reply.times > 1 else ""
        yield Text(f"{name}: {quoted(reply.text)} ({REPLIES[reply.changed]}{times})")
    if len(replies) > MOST_REPLIES:
        yield Text(f"{name}: {len(replies) - MOST_REPLIES} other replies")
