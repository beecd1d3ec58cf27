"""Summaries as tables: the same cells in the terminal, in Markdown, CSV, LaTeX and HTML."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A title, a header, and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def summary_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Win rate, interval, effect size, p-value and verdict of every configuration.

    Columns that say the same in every row (a single model, task, k or direction) are left out.
    """
    lines = [line for summary in summaries for line in summary["configurations"]]
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("model", lambda line: str(line["model"])),
        ("task", lambda line: str(line["task"])),
        ("attribution", lambda line: str(line["attribution"])),
        ("operator", lambda line: str(line["operator"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: f"{line['k']:g}"),
        ("n", lambda line: str(line["n"])),
        ("win rate", lambda line: percent(line["win_rate"])),
        ("95 % CI", lambda line: interval(line["win_rate_ci"])),
        # The mean is in summary.json: a null with next to no spread makes it arbitrarily large.
        ("median effect", lambda line: number(line["effect_size_median"])),
        ("p", lambda line: p_value(line["p_value"])),
        ("verdict", lambda line: str(line["verdict"] or "–")),
    ]
    return _table("Faithfulness", lines, columns)


def agreement_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """Whether the operators agree about an attribution."""
    lines = [line for summary in summaries for line in summary["agreement"]]
    columns: list[tuple[str, Callable[[Line], str]]] = [
        ("model", lambda line: str(line["model"])),
        ("task", lambda line: str(line["task"])),
        ("attribution", lambda line: str(line["attribution"])),
        ("operators", lambda line: " − ".join(line["operators"])),
        ("direction", lambda line: str(line["direction"])),
        ("k", lambda line: f"{line['k']:g}"),
        ("gap", lambda line: "–" if line["gap"] is None else f"{100 * line['gap']:+.1f} pp"),
        ("95 % CI", lambda line: interval(line["gap_ci"], signed=True)),
        ("crosses 55 %", lambda line: str(line["crosses_threshold"] or "–")),
        ("same word", lambda line: {True: "yes", False: "no", None: "–"}[line["same_taxonomy"]]),
    ]
    return _table("Operator agreement", lines, columns)


_OPTIONAL = {"model", "task", "direction", "k"}


def _table(title: str, lines: Sequence[Line], columns: Sequence[tuple[str, Callable[[Line], str]]]) -> Table:
    cells = {name: [cell(line) for line in lines] for name, cell in columns}
    shown = [name for name, values in cells.items() if name not in _OPTIONAL or len(set(values)) > 1]
    return Table(title, tuple(shown), tuple(zip(*(cells[name] for name in shown), strict=True)))


FLAGS = {
    "small_n": "fewer than 50 examples: the intervals are rough.",
    "ties": "more than 1 % of random sets tie with the rationale: a tie says nothing for or against it.",
    "depends_on_score_order": "the verdict would differ if sets were ranked by how well they reproduce s(x).",
    "exact_for_some": "short texts have fewer sets than were asked for: all of them were used, and the test is exact.",
    "protocol_paper": "the choices of the paper's text: own fills in every row, ties lost, percentile intervals.",
    "protocol_released": "the choices of the paper's released package; not to be mixed with other results.",
    "scope_prompt": "words of the prompt's template were removed too, not only those of the text.",
    "blacklist_without_gold": "the data have no labels: infill avoided the label words only.",
    "mask-unk_writes_end_of_text": "the model has no unknown token: mask-unk wrote end-of-text tokens.",
    "mask-pad_writes_end_of_text": "the model has no padding token: mask-pad wrote end-of-text tokens.",
    "effect_below_noise": "the effect is smaller than what rounding moves a score by: the verdict rests on rounding.",
    "out_of_memory": "the device ran out of memory: batches were made smaller, which may move scores by rounding.",
    "no_examples": "no example could be evaluated.",
}
"""What the flags of a summary mean."""


def _span(rates: Sequence[float]) -> str:
    """The range of some win rates, where above 100 % means that there is none."""
    low, high = (percent(rate) if rate <= 1 else "none (too few examples)" for rate in (min(rates), max(rates)))
    return low if low == high else f"{low} to {high}"


def notes(summary: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the numbers."""
    lines = summary["configurations"]
    found = []
    accuracy = {line["accuracy"] for line in lines}
    if accuracy - {None}:
        found.append(f"The model is right on {percent(max(a for a in accuracy if a is not None))} of the examples.")
    detectable = [line["detectable_win_rate"] for line in lines if line["detectable_win_rate"] is not None]
    if detectable:
        found.append(f"Smallest mean win rate told from chance with power 80 %: {_span(detectable)}.")
    skipped = max(line["n_skipped"] for line in lines)
    if skipped:
        found.append(f"{skipped} examples take no part; examples.jsonl says why.")
    shares = sorted({line["significant_floor_share"] for line in lines if line["significant_reason"]})
    if shares:
        share = percent(shares[-1])
        limit = (
            "none can be significant"
            if shares[-1] > 1
            else f"fewer than {share} significant ones cannot be told from none"
        )
        found.append(f"Single examples: at this m {limit}; raise m.")
    flags = sorted({flag for line in lines for flag in line["flags"]})
    return found + [f"{flag}{_where(flag, lines)}: {FLAGS.get(flag, '')}" for flag in flags]


def _where(flag: str, lines: Sequence[Line]) -> str:
    """The rows that a flag is about, unless it is about all."""
    flagged = [f"{line['attribution']} under {line['operator']}" for line in lines if flag in line["flags"]]
    return "" if len(flagged) == len(lines) else f" ({', '.join(dict.fromkeys(flagged))})"


def _markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        plain = (" ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
        return "| " + " | ".join(plain) + " |"

    rule = "|" + "|".join(" --- " for _ in table.header) + "|"
    return "\n".join([f"**{table.title}**", "", row(table.header), rule, *(row(cells) for cells in table.rows)])


def _csv(table: Table) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows(table.rows)
    return stream.getvalue().rstrip("\n")


_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
     "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "−": "$-$", "–": "--"}
)  # fmt: skip


def _latex(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    body = [row(cells) for cells in table.rows]
    head = [rf"\begin{{tabular}}{{{'l' * len(table.header)}}}", r"\toprule", row(table.header), r"\midrule"]
    return "\n".join([*head, *body, r"\bottomrule", r"\end{tabular}"])


FORMATS: Mapping[str, Callable[[Table], str]] = {"md": _markdown, "csv": _csv, "latex": _latex}


def formatted(table: Table, style: str) -> str:
    """The table as text in one of `FORMATS`."""
    return FORMATS[style](table)
