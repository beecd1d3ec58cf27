"""The summaries of runs as tables: how faithful explanations are, whether operators agree, and what it cost."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ice_eval import stats
from ice_eval.report.tables import (
    EMPTY,
    Column,
    Line,
    Table,
    count,
    interval,
    naming,
    number,
    p_value,
    percent,
    points,
    table_of,
    text,
    word_of_rate,
    word_of_verdict,
)


def explanation_tables(summaries: Sequence[Mapping[str, Any]]) -> list[Table]:
    """All tables about the explanations of some runs that have a row."""
    found = (summary_table(summaries), agreement_table(summaries), robustness_table(summaries))
    return [table for table in found if table.rows]


def summary_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Win rate, interval, effect size, p-value and verdict of every configuration.

    Columns that say the same in every row (a single model or task, the usual null, k or direction) are left out.
    P-values are adjusted over all rows of the table, whichever runs they come from. The highest win rate is the best
    one, among the rows that differ in their attribution alone.
    """
    lines = adjusted(_lines(summaries, "configurations"))
    columns: list[Column] = [
        *naming("run", "model", "task", "attribution", "null", "operator", "direction", "k", "n"),
        ("win rate", lambda line: percent(line["win_rate"])),
        ("95 % CI", lambda line: interval(line["win_rate_ci"])),
        # The mean is in summary.json: a null with next to no spread makes it arbitrarily large.
        ("median effect", _effect),
        # A single example tests nothing about a mean: its value of 1 would read like a result.
        ("p", lambda line: p_value(line["p_value"] if line["n"] > 1 else None)),
        ("p adj.", lambda line: p_value(line["p_adjusted"] if line["n"] > 1 else None)),
        *naming("verdict"),
    ]
    of_steps = bool(summaries) and all("cot" in summary for summary in summaries)
    if of_steps:  # a reply is the same answer or another one: there is no spread to measure effects in
        columns = [column for column in columns if column[0] != "median effect"]
    return table_of(
        "Faithfulness of the explanations of steps" if of_steps else "Faithfulness",
        lines,
        columns,
        best=("win rate", _highest(lines)),
        coloured={"win rate": _rate_word, "verdict": _verdict_word},
    )


def agreement_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Whether the operators agree about an attribution."""
    columns: list[Column] = [
        *naming("run", "model", "task", "attribution", "null", "operators", "direction", "k"),
        ("gap", lambda line: points(line["gap"])),
        ("95 % CI", lambda line: interval(line["gap_ci"], signed=True)),
        ("crosses 55 %", text("crosses_threshold")),
        ("same word", lambda line: {True: "yes", False: "no", None: EMPTY}[line["same_taxonomy"]]),
        ("rank corr. (ceiling)", _rank_correlation),
        ("disagree", lambda line: percent(line.get("disagree_rate"))),
    ]
    return table_of("Operator agreement", _lines(summaries, "agreement"), columns)


def robustness_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Whether a conclusion stands under every operator, in a word."""
    columns: list[Column] = [
        *naming("run", "model", "task", "attribution", "null", "direction", "k"),
        ("against 55 % (one-sided 95 % bounds)", _sides),
        ("spread", lambda line: EMPTY if line["spread"] is None else f"{100 * line['spread']:.1f} pp"),
        ("conclusion", _conclusion),
    ]
    return table_of("Over all operators", _lines(summaries, "robustness"), columns)


_MEASURABLE_S = 0.1


def cost_table(manifest: Mapping[str, Any]) -> Table:
    """What each attribution took; no rows unless at least two took something, and not the same.

    What several attributions look at together, as attention and gradients, they pay in equal shares: where there is
    nothing else, there is nothing to compare.
    """
    seconds, rows = manifest.get("attribution_seconds", {}), manifest.get("attribution_rows", {})
    tokens = manifest.get("probe_tokens", {})
    costly = [
        seconds.get(name, 0) for name in {**seconds, **rows} if seconds.get(name, 0) >= _MEASURABLE_S or rows.get(name)
    ]
    if len(costly) < 2 or (max(costly) - min(costly) < _MEASURABLE_S and not rows):
        seconds = {}
    lines = [{"attribution": n, "seconds": s, "rows": rows.get(n), "tokens": tokens.get(n)} for n, s in seconds.items()]
    columns: list[Column] = [
        *naming("attribution"),
        ("seconds", lambda line: f"{line['seconds']:.1f}"),
        ("probes", lambda line: count(line["rows"])),
        ("tokens of probes", lambda line: count(line["tokens"])),
    ]
    answers = manifest.get("answer_tokens", {})
    if answers:
        columns.append(("tokens of answers", lambda line: count(answers.get(line["attribution"]))))
    return table_of("What each attribution cost", lines, columns)


def adjusted(lines: Sequence[Line]) -> list[Line]:
    """Lines with the p-values of all of them adjusted together (Benjamini-Yekutieli)."""
    found = stats.adjusted_known([line["p_value"] for line in lines])
    return [{**line, "p_adjusted": p_adjusted} for line, p_adjusted in zip(lines, found, strict=True)]


def jointly(summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Summaries with the p-values of all their configurations adjusted together."""
    lines = iter(adjusted([line for summary in summaries for line in summary["configurations"]]))
    return [{**summary, "configurations": [next(lines) for _ in summary["configurations"]]} for summary in summaries]


def _lines(summaries: Sequence[Mapping[str, Any]], part: str) -> list[Line]:
    """The lines of all summaries, with the number of their run where model and task do not tell runs apart."""
    runs = [{(line["model"], line["task"]) for line in summary["configurations"]} for summary in summaries]
    alike = any(one & other for one, other in itertools.combinations(runs, 2))
    return [
        {**line, "run": run if alike else ""}
        for run, summary in enumerate(summaries, start=1)
        for line in summary.get(part, ())
    ]


def _highest(lines: Sequence[Line]) -> set[int]:
    """The lines with the highest win rate among those that differ in their attribution alone."""
    rivals: dict[tuple[Any, ...], list[int]] = {}
    for index, line in enumerate(lines):
        if line["win_rate"] is not None:
            names = ("run", "model", "task", "operator", "direction", "k", "null")
            rivals.setdefault(tuple(line.get(name) for name in names), []).append(index)
    highest = {place: max(lines[index]["win_rate"] for index in found) for place, found in rivals.items()}
    return {
        index
        for place, found in rivals.items()
        for index in found
        if len(found) > 1 and lines[index]["win_rate"] == highest[place]
    }


def _rate_word(line: Line) -> str | None:
    return word_of_rate(line["win_rate"], line["verdict"])


def _verdict_word(line: Line) -> str | None:
    return word_of_verdict(line["verdict"])


def _effect(line: Line) -> str:
    """The median and its word; next to a limit with as many digits as it takes to lie on the side that the word says.

    0.496 is small, and medium is from 0.5 on: `+0.50 small` would contradict itself.
    """
    value, word = line["effect_size_median"], line.get("effect_word")
    if value is None or word is None:
        return number(value)
    digits = next((each for each in range(2, 10) if stats.effect_word(round(value, each)) == word), 2)
    return f"{value:+.{digits}f} {word.removesuffix(' negative')}"


def _rank_correlation(line: Line) -> str:
    found, ceiling = line["rank_correlation"], line.get("rank_correlation_ceiling")
    return f"{EMPTY if found is None else f'{found:.2f}'} {EMPTY if ceiling is None else f'({ceiling:.2f})'}"


def _conclusion(line: Line) -> str:
    """The word; a conclusion that stands may be a poor one, so it says on which side."""
    return f"robust ({line['sides'][0]} 55 %)" if line["word"] == "robust" else str(line["word"] or EMPTY)


def _sides(line: Line) -> str:
    if line["sides"] is None:
        return EMPTY
    return ", ".join(f"{name} {side}" for name, side in zip(line["operators"], line["sides"], strict=True))
