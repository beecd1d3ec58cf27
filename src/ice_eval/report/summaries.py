"""The summaries of runs as tables: how faithful explanations are, whether operators agree, and what it cost."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ice_eval import stats
from ice_eval.report.tables import (
    EMPTY,
    Column,
    Table,
    count,
    interval,
    naming,
    number,
    p_value,
    percent,
    points,
    table_of,
    word_of_rate,
    word_of_verdict,
)
from ice_eval.results import Manifest, Summary, SummaryLine
from ice_eval.results.records import AgreementLine, RobustnessLine
from ice_eval.results.summary import adjusted_jointly

L = TypeVar("L", SummaryLine, AgreementLine, RobustnessLine)
_THRESHOLD = f"{100 * stats.WEAKLY_FAITHFUL:g} %"


@dataclass(frozen=True)
class _Numbered(Generic[L]):
    """A line of a summary, and the number of its run where model and task do not tell runs apart."""

    run: str
    line: L


def _field(row: _Numbered[L], name: str) -> object:
    return row.run if name == "run" else getattr(row.line, name)


def explanation_tables(summaries: Sequence[Summary]) -> list[Table]:
    """All tables about the explanations of some runs that have a row."""
    found = (summary_table(summaries), agreement_table(summaries), robustness_table(summaries))
    return [table for table in found if table.rows]


def summary_table(summaries: Sequence[Summary]) -> Table:
    """Win rate, interval, effect size, p-value and verdict of every configuration.

    Columns that say the same in every row (a single model or task, the usual null, k or direction) are left out.
    P-values are adjusted over all rows of the table, whichever runs they come from. The highest win rate is the best
    one, among the rows that differ in their attribution alone.
    """
    rows = _numbered(summaries, [summary.configurations for summary in adjusted_jointly(summaries)])
    names = ("run", "model", "task", "attribution", "null", "operator", "direction", "k", "n")
    columns: list[Column[_Numbered[SummaryLine]]] = [
        *naming(*names, get=_field),
        ("win rate", lambda row: percent(row.line.win_rate)),
        ("95 % CI", lambda row: interval(row.line.win_rate_ci)),
        # The mean is in summary.json: a null with next to no spread makes it arbitrarily large.
        ("median effect", lambda row: _effect(row.line)),
        # A single example tests nothing about a mean: its value of 1 would read like a result.
        ("p", lambda row: p_value(row.line.p_value if row.line.n > 1 else None)),
        ("p adj.", lambda row: p_value(row.line.p_adjusted if row.line.n > 1 else None)),
        *naming("verdict", get=_field),
    ]
    of_steps = bool(summaries) and all(summary.chains is not None for summary in summaries)
    if of_steps:  # a reply is the same answer or another one: there is no spread to measure effects in
        columns = [column for column in columns if column[0] != "median effect"]
    return table_of(
        "Faithfulness of the explanations of steps" if of_steps else "Faithfulness",
        rows,
        columns,
        best=("win rate", _highest(rows)),
        coloured={
            "win rate": lambda row: word_of_rate(row.line.win_rate, row.line.verdict),
            "verdict": lambda row: word_of_verdict(row.line.verdict),
        },
    )


def agreement_table(summaries: Sequence[Summary]) -> Table:
    """Whether the operators agree about an attribution."""
    names = ("run", "model", "task", "attribution", "null", "operators", "direction", "k")
    columns: list[Column[_Numbered[AgreementLine]]] = [
        *naming(*names, get=_field),
        ("gap", lambda row: points(row.line.gap)),
        ("95 % CI", lambda row: interval(row.line.gap_ci, signed=True)),
        (f"crosses {_THRESHOLD}", lambda row: row.line.crosses_threshold or EMPTY),
        ("same word", lambda row: {True: "yes", False: "no", None: EMPTY}[row.line.same_taxonomy]),
        ("rank corr. (ceiling)", lambda row: _rank_correlation(row.line)),
        ("disagree", lambda row: percent(row.line.disagree_rate)),
    ]
    rows = _numbered(summaries, [summary.agreement for summary in summaries])
    return table_of("Operator agreement", rows, columns)


def robustness_table(summaries: Sequence[Summary]) -> Table:
    """Whether a conclusion stands under every operator, in a word."""
    columns: list[Column[_Numbered[RobustnessLine]]] = [
        *naming("run", "model", "task", "attribution", "null", "direction", "k", get=_field),
        (f"against {_THRESHOLD} (one-sided 95 % bounds)", lambda row: _sides(row.line)),
        ("spread", lambda row: EMPTY if row.line.spread is None else f"{100 * row.line.spread:.1f} pp"),
        ("conclusion", lambda row: _conclusion(row.line)),
    ]
    rows = _numbered(summaries, [summary.robustness for summary in summaries])
    return table_of("Over all operators", rows, columns)


_MEASURABLE_S = 0.1


def cost_table(manifest: Manifest) -> Table:
    """Seconds and probes of each attribution; no rows unless at least two took something, and not the same.

    Attributions that share a pass, as attention and gradients, share its cost equally: where there is nothing else,
    there is nothing to compare.
    """
    cost = manifest.cost
    seconds, rows, tokens, answers = (
        ({}, {}, {}, {})
        if cost is None
        else (cost.attribution_seconds, cost.attribution_rows, cost.probe_tokens, cost.answer_tokens)
    )
    costly = [
        seconds.get(name, 0) for name in {**seconds, **rows} if seconds.get(name, 0) >= _MEASURABLE_S or rows.get(name)
    ]
    if len(costly) < 2 or (max(costly) - min(costly) < _MEASURABLE_S and not rows):
        seconds = {}
    columns: list[Column[str]] = [
        ("attribution", str),
        ("seconds", lambda name: f"{seconds[name]:.1f}"),
        ("probes", lambda name: count(rows.get(name))),
        ("tokens of probes", lambda name: count(tokens.get(name))),
    ]
    if answers:
        columns.append(("tokens of answers", lambda name: count(answers.get(name))))
    return table_of("What each attribution cost", list(seconds), columns)


def _numbered(summaries: Sequence[Summary], parts: Iterable[Sequence[L]]) -> list[_Numbered[L]]:
    """The lines of all summaries, with the number of their run where model and task do not tell runs apart."""
    runs = [{(line.model, line.task) for line in summary.configurations} for summary in summaries]
    alike = any(one & other for one, other in itertools.combinations(runs, 2))
    return [_Numbered(str(run) if alike else "", line) for run, lines in enumerate(parts, start=1) for line in lines]


def _highest(rows: Sequence[_Numbered[SummaryLine]]) -> set[int]:
    """The lines with the highest win rate among those that differ in their attribution alone."""
    rivals: dict[tuple[object, ...], dict[int, float]] = {}
    for index, row in enumerate(rows):
        line = row.line
        if line.win_rate is not None:
            place = row.run, line.model, line.task, line.configuration._replace(attribution="")
            rivals.setdefault(place, {})[index] = line.win_rate
    return {
        index
        for rates in rivals.values()
        for index, rate in rates.items()
        if len(rates) > 1 and rate == max(rates.values())
    }


def _effect(line: SummaryLine) -> str:
    """The median and its word; next to a limit with as many digits as it takes to lie on the side that the word says.

    0.496 is small, and medium is from 0.5 on: `+0.50 small` would contradict itself.
    """
    value, word = line.effect_size_median, line.effect_word
    if value is None or word is None:
        return number(value)
    digits = next((each for each in range(2, 10) if stats.effect_word(round(value, each)) == word), 2)
    return f"{value:+.{digits}f} {word.removesuffix(' negative')}"


def _rank_correlation(line: AgreementLine) -> str:
    found, ceiling = line.rank_correlation, line.rank_correlation_ceiling
    return f"{EMPTY if found is None else f'{found:.2f}'} {EMPTY if ceiling is None else f'({ceiling:.2f})'}"


def _conclusion(line: RobustnessLine) -> str:
    """The word; a conclusion that stands may be a poor one, so it says on which side."""
    if line.word == "robust" and line.sides is not None:
        return f"robust ({line.sides[0]} {_THRESHOLD})"
    return line.word or EMPTY


def _sides(line: RobustnessLine) -> str:
    if line.sides is None:
        return EMPTY
    return ", ".join(f"{name} {side}" for name, side in zip(line.operators, line.sides, strict=True))
