"""Summaries as tables: the same cells in the terminal, in Markdown, CSV, LaTeX and HTML."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ice_eval import stats
from ice_eval._controls import without_controls
from ice_eval.rationales import Share
from ice_eval.results.agreements import kappas
from ice_eval.stats.verdict import ALL_EQUAL, GROUPS_EQUAL, NOT_DISTINGUISHABLE, UNDETERMINED

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A title, a header, and rows of text, without the control characters that names may hold."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of the cells that are printed bold."""
    words: tuple[tuple[str | None, ...], ...] = ()
    """For every cell the word of the taxonomy that colours it, if any; empty where no cell has one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", without_controls(self.title))
        object.__setattr__(self, "header", tuple(map(without_controls, self.header)))
        object.__setattr__(self, "rows", tuple(tuple(map(without_controls, row)) for row in self.rows))


def word_of_verdict(verdict: str | None) -> str | None:
    """The word that colours a verdict: of a range the lower one, as that is what is sure."""
    if verdict == NOT_DISTINGUISHABLE:
        return "near-random"
    return next((word for word in stats.TAXONOMY if (verdict or "").startswith(word)), None)


def word_of_rate(win_rate: float | None, verdict: str | None) -> str | None:
    """The word that colours a win rate; none is alarming that cannot be told from chance, or without an interval."""
    if win_rate is None or verdict in (NOT_DISTINGUISHABLE, UNDETERMINED, ALL_EQUAL, GROUPS_EQUAL):
        return word_of_verdict(verdict)
    return stats.taxonomy(win_rate)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(value: Sequence[float] | None, *, signed: bool = False) -> str:
    """`[48.1, 55.0]`, in percent."""
    if value is None:
        return "–"
    return "[" + ", ".join(f"{100 * limit:+.1f}" if signed else f"{100 * limit:.1f}" for limit in value) + "]"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def p_value(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 0.00005:
        return "<0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def share(k: Share | None) -> str:
    """Of units in a rationale; those of some attributions have a size of their own."""
    return "own" if k is None else k if isinstance(k, str) else f"{k:g}"


def summary_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Win rate, interval, effect size, p-value and verdict of every configuration.

    Columns that say the same in every row (a single model or task, the usual null, k or direction) are left out.
    P-values are adjusted over all rows of the table, whichever runs they come from. The highest win rate is the best
    one, among the rows that differ in their attribution alone.
    """
    lines = adjusted(_lines(summaries, "configurations"))
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("run", lambda line: str(line["run"])),
        ("model", lambda line: str(line["model"])),
        ("task", lambda line: str(line["task"])),
        ("attribution", lambda line: str(line["attribution"])),
        ("null", lambda line: str(line.get("null", "size"))),
        ("operator", lambda line: str(line["operator"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: share(line["k"])),
        ("n", lambda line: str(line["n"])),
        ("win rate", lambda line: percent(line["win_rate"])),
        ("95 % CI", lambda line: interval(line["win_rate_ci"])),
        # The mean is in summary.json: a null with next to no spread makes it arbitrarily large.
        ("median effect", lambda line: _effect(line)),
        # A single example tests nothing about a mean: its value of 1 would read like a result.
        ("p", lambda line: p_value(line["p_value"] if line["n"] > 1 else None)),
        ("p adj.", lambda line: p_value(line.get("p_adjusted") if line["n"] > 1 else None)),
        ("verdict", lambda line: str(line["verdict"] or "–")),
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


def agreement_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Whether the operators agree about an attribution."""
    lines = _lines(summaries, "agreement")
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("run", lambda line: str(line["run"])),
        ("model", lambda line: str(line["model"])),
        ("task", lambda line: str(line["task"])),
        ("attribution", lambda line: str(line["attribution"])),
        ("null", lambda line: str(line.get("null", "size"))),
        ("operators", lambda line: " − ".join(line["operators"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: share(line["k"])),
        ("gap", lambda line: "–" if line["gap"] is None else f"{100 * line['gap']:+.1f} pp"),
        ("95 % CI", lambda line: interval(line["gap_ci"], signed=True)),
        ("crosses 55 %", lambda line: str(line["crosses_threshold"] or "–")),
        ("same word", lambda line: {True: "yes", False: "no", None: "–"}[line["same_taxonomy"]]),
        ("rank corr. (ceiling)", _rank_correlation),
        ("disagree", lambda line: percent(line.get("disagree_rate"))),
    ]
    return table_of("Operator agreement", lines, columns)


def robustness_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Whether a conclusion stands under every operator, in a word."""
    lines = _lines(summaries, "robustness")
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("run", lambda line: str(line["run"])),
        ("model", lambda line: str(line["model"])),
        ("task", lambda line: str(line["task"])),
        ("attribution", lambda line: str(line["attribution"])),
        ("null", lambda line: str(line["null"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: share(line["k"])),
        ("against 55 % (one-sided 95 % bounds)", _sides),
        ("spread", lambda line: "–" if line["spread"] is None else f"{100 * line['spread']:.1f} pp"),
        ("conclusion", _conclusion),
    ]
    return table_of("Over all operators", lines, columns)


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
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("attribution", lambda line: str(line["attribution"])),
        ("seconds", lambda line: f"{line['seconds']:.1f}"),
        ("probes", lambda line: _count(line["rows"])),
        ("tokens of probes", lambda line: _count(line["tokens"])),
    ]
    answers = manifest.get("answer_tokens", {})
    if answers:
        columns.append(("tokens of answers", lambda line: _count(answers.get(line["attribution"]))))
    return table_of("What each attribution cost", lines, columns)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def tables(summaries: Sequence[Mapping[str, Any]]) -> list[Table]:
    """All tables of some runs that have a row."""
    found = (summary_table(summaries), agreement_table(summaries), robustness_table(summaries))
    return [table for table in found if table.rows]


def adjusted(lines: Sequence[Line]) -> list[Line]:
    """Lines with the p-values of all of them adjusted together (Benjamini-Yekutieli)."""
    found = stats.adjusted_known([line["p_value"] for line in lines])
    return [{**line, "p_adjusted": p_adjusted} for line, p_adjusted in zip(lines, found, strict=True)]


def jointly(summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Summaries with the p-values of all their configurations adjusted together."""
    lines = iter(adjusted([line for summary in summaries for line in summary["configurations"]]))
    return [{**summary, "configurations": [next(lines) for _ in summary["configurations"]]} for summary in summaries]


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
    return " ".join(
        "–" if value is None else text.format(value)
        for value, text in ((line["rank_correlation"], "{:.2f}"), (line.get("rank_correlation_ceiling"), "({:.2f})"))
    )


def _conclusion(line: Line) -> str:
    """The word; a conclusion that stands may be a poor one, so it says on which side."""
    return f"robust ({line['sides'][0]} 55 %)" if line["word"] == "robust" else str(line["word"] or "–")


def _sides(line: Line) -> str:
    if line["sides"] is None:
        return "–"
    return ", ".join(f"{name} {side}" for name, side in zip(line["operators"], line["sides"], strict=True))


_OPTIONAL = {"run", "model", "task", "prompt", "language", "null", "direction", "k"}
_USUAL = {"null": "size", "direction": "sufficiency", "k": "0.2"}
"""What a reader assumes of a table that does not say it."""


def table_of(
    title: str,
    lines: Sequence[Line],
    columns: Sequence[tuple[str, Callable[[Line], str]]],
    *,
    best: tuple[str, set[int]] | None = None,
    coloured: Mapping[str, Callable[[Line], str | None]] = MappingProxyType({}),
) -> Table:
    """Lines as a table, without the columns that name a run, model, … and say the same in every row.

    A null, direction or k that is not the usual one is shown though it is the same in every row.

    Args:
        title: Of the table.
        lines: One for each row.
        columns: Names, and what makes a cell of a line.
        best: A column, and the lines that stand out in it.
        coloured: Columns whose cells have the colour of a word, and what finds it in a line.
    """
    cells = {name: [cell(line) for line in lines] for name, cell in columns}
    shown = [name for name, values in cells.items() if name not in _OPTIONAL or _says_something(name, values)]
    bold = frozenset((line, shown.index(best[0])) for line in best[1]) if best else frozenset()
    words = (tuple(coloured[name](line) if name in coloured else None for name in shown) for line in lines)
    rows = tuple(zip(*(cells[name] for name in shown), strict=True))
    return Table(title, tuple(shown), rows, bold, tuple(words) if coloured else ())


def _says_something(name: str, values: Sequence[str]) -> bool:
    found = set(values)
    return len(found) > 1 or (name in _USUAL and not found <= {_USUAL[name]})


FLAGS = {
    "small_n": "fewer than 50 examples: the intervals are rough.",
    "ties": "more than 1 % of random sets tie with the rationale: a tie says nothing for or against it.",
    "depends_on_score_order": "the verdict would differ if sets were ranked by how well they reproduce s(x).",
    "few_groups": "fewer than 20 groups: intervals are too narrow, at 12 groups they cover 92 % instead of 95 %.",
    "grouped": "several examples share a passage: whole groups were resampled, and errors allow for it.",
    "adaptive_dataset": "a pilot chose the number of random sets: enough for the data set, not for single examples.",
    "adaptive_examples": "each example took as many random sets as its tests needed.",
    "exact_for_some": "short texts have fewer sets than were asked for: all of them were used, and the test is exact.",
    "protocol_paper": "the choices of the paper's text: own fills in every row, ties lost, percentile intervals.",
    "protocol_released": "the choices of the paper's released package; not to be mixed with other results.",
    "scope_prompt": "words of the prompt's template were removed too, not only those of the text.",
    "sign_abs": "signed attributions rank units by magnitude, whether they speak for the label or against it.",
    "adapted_model": "the model is a copy that was fine-tuned on inputs with units removed, not the deployed one.",
    "blacklist_without_gold": "the data have no labels: infill avoided the label words only.",
    "mask-unk_writes_end_of_text": "the model has no unknown token: mask-unk wrote end-of-text tokens.",
    "mask-pad_writes_end_of_text": "the model has no padding token: mask-pad wrote end-of-text tokens.",
    "effect_below_noise": "the effect is smaller than what rounding moves a score by: the verdict rests on rounding.",
    "out_of_memory": "the device ran out of memory: batches were made smaller, which may move scores by rounding.",
    "labels_not_listed": "the server named too few tokens to find a label in some rows; their examples were left out.",
    "no_examples": "no example could be evaluated.",
}
"""What the flags of a summary mean."""
STEP_FLAGS = {
    **FLAGS,
    "small_n": "fewer than 50 chains: the intervals are rough.",
    "exact_for_some": "short chains have fewer sets than were asked for: all of them were used, and the test is exact.",
    "depends_on_score_order": "the verdict would differ if sets were ranked by how well they match the whole chain.",
}
"""The same where steps of chains are explained."""


def _span(rates: Sequence[float]) -> str:
    """The range of some win rates, where above 100 % means that there is none."""
    low, high = (percent(rate) if rate <= 1 else "none (too few examples)" for rate in (min(rates), max(rates)))
    return low if low == high else f"{low} to {high}"


def notes(*summaries: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the numbers, each thing once."""
    several = [*(note for summary in summaries for note in _notes(summary)), *_kappa_notes(summaries)]
    return list(dict.fromkeys(several))


_ENOUGH_FOR_KAPPA = 8
_NAMED = 5


def _kappa_notes(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """How far operators agree on a word over all configurations; a handful of them says nothing."""
    lines = [{**line, "run": run} for run, summary in enumerate(summaries) for line in summary["configurations"]]
    return [
        f"{' and '.join(found['operators'])} agree on the word with weighted κ = {found['kappa']:.2f} over "
        f"{found['n_configurations']} configurations."
        for found in kappas(lines)
        if found["kappa"] is not None and found["n_configurations"] >= _ENOUGH_FOR_KAPPA
    ]


def _notes(summary: Mapping[str, Any]) -> list[str]:
    lines = summary["configurations"]
    of_steps = "cot" in summary
    found = []
    # Where examples drop out for one attribution only, the others' lines are about more of them.
    judged = [line for line in lines if line["accuracy"] is not None]
    if judged and not of_steps:
        most = max(judged, key=lambda line: int(line["n"]))
        found.append(f"The model is right on {percent(most['accuracy'])} of the examples.")
    detectable = [line["detectable_win_rate"] for line in lines if line["detectable_win_rate"] is not None]
    if any(line["n"] for line in lines):
        smallest = _span(detectable) if detectable else "unknown (one example, or no spread)"
        found.append(f"Smallest mean win rate told from chance with power 80 %: {smallest}.")
    few = [line for line in lines if line["effect_size_median"] is not None and line.get("effect_word") is None]
    for line in [] if of_steps else few:
        defined = line["n"] - line["effect_size_undefined"]
        found.append(
            f"{line['attribution']} under {line['operator']}: effect sizes exist for {defined} of {line['n']} examples."
        )
    found += _skipped(lines)
    reasons = {line["significant_reason"] for line in lines if line["significant_floor_share"] is None} - {None}
    found += [f"Single examples: {reason}." for reason in sorted(reasons)]
    by_floor = [line for line in lines if line["significant_reason"] and line["significant_floor_share"] is not None]
    shares = sorted({line["significant_floor_share"] for line in by_floor})
    if shares:
        share = percent(shares[-1])
        limit = (
            "none can be significant"
            if shares[-1] > 1
            else f"fewer than {share} significant ones cannot be told from none"
        )
        cause = "with so few sets of steps" if of_steps else "at this m"
        found.append(f"Single examples: {cause} {limit}{'' if of_steps else '; raise m'}.")
    found += _disagreements(summary["agreement"])
    flags, meanings = sorted({flag for line in lines for flag in line["flags"]}), STEP_FLAGS if of_steps else FLAGS
    return found + [f"{flag}{_where(flag, lines)}: {meanings.get(flag, '')}" for flag in flags]


def _skipped(lines: Sequence[Line]) -> Iterator[str]:
    """How many examples take no part, and for whom more than for others."""
    counts = {line["attribution"]: 0 for line in lines}
    for line in lines:
        counts[line["attribution"]] = max(line["n_skipped"], counts[line["attribution"]])
    least = min(counts.values(), default=0)
    if least:
        yield f"{_take_no_part(least)}; examples.jsonl says why."
    for name, count in counts.items():
        if count > least:
            yield f"{_take_no_part(count)} for {name}; examples.jsonl says why."


def _take_no_part(n: int) -> str:
    return "1 example takes no part" if n == 1 else f"{n} examples take no part"


def _disagreements(lines: Sequence[Line]) -> Iterator[str]:
    """The examples that two operators judge most differently, once for all k and directions of an attribution."""
    named: dict[tuple[str, str, str], list[list[str]]] = {}
    for line in lines:
        if line.get("disagree"):
            null = "" if line["null"] == "size" else f" (null: {line['null']})"
            named.setdefault((line["attribution"], null, " and ".join(line["operators"])), []).append(line["disagree"])
    for (attribution, null, operators), ranked in named.items():
        by_rank = [each for same in itertools.zip_longest(*ranked) for each in same if each is not None]
        examples = ", ".join(list(dict.fromkeys(by_rank))[:_NAMED])
        yield (
            f"{attribution}{null}: {operators} disagree most about the examples {examples}; "
            "`ice show` prints what the model saw of them."
        )


def _where(flag: str, lines: Sequence[Line]) -> str:
    """The rows that a flag is about, unless it is about all."""
    flagged = [f"{line['attribution']} under {line['operator']}" for line in lines if flag in line["flags"]]
    return "" if len(flagged) == len(lines) else f" ({', '.join(dict.fromkeys(flagged))})"
