"""Tables of runs: their explanations, their cost, their differences; and any table as Markdown or LaTeX."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from ice_eval import stats
from ice_eval.choices import TableColumns, protocol_of
from ice_eval.files import as_text
from ice_eval.report.chains import cot_tables
from ice_eval.report.citations import citation_tables
from ice_eval.report.colours import expected, verdict_of, word_of_line
from ice_eval.results import Manifest, Plan, RunFolder, Summary, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine, Measures, RankingLine, RobustnessLine
from ice_eval.results.summary import CONTROL, adjusted_jointly
from ice_eval.table import EMPTY, Column, Table, columns, estimate, naming, percent, table_of, written

L = TypeVar("L", SummaryLine, AgreementLine, RobustnessLine, RankingLine)
_FEW_PAIRS = 10
"""Largest number of pairs that are printed for each setting; all are in the summary."""
THRESHOLD = f"{100 * stats.WEAKLY_FAITHFUL:g} %"


def run_names(folders: Sequence[RunFolder]) -> list[tuple[str, str]]:
    """Return the model and the task of every run, which together distinguish different folders."""
    # Models are named by the last part of their path where that is enough, and with their folder where it is not.
    runs = {folder.path.resolve(): folder for folder in folders}
    configs = [folder.manifest().config for folder in runs.values()]
    models = {config.model for config in configs}
    short = {model: Path(model).name if Path(model).is_absolute() else model for model in models}
    if len(set(short.values())) < len(models):
        short = {model: model for model in models}
    pairs = [(short[config.model], config.task) for config in configs]
    paths = [as_text(Path(folder.path.name)) for folder in runs.values()]
    if len(set(paths)) < len(paths):
        paths = [as_text(folder.path) for folder in runs.values()]
    names = dict[Path, tuple[str, str]]()
    for run, (model, task), path in zip(runs, pairs, paths, strict=True):
        names[run] = (f"{model} ({path})", task) if pairs.count((model, task)) > 1 else (model, task)
    return [names[folder.path.resolve()] for folder in folders]


def tables(
    summaries: Sequence[Summary], *, simultaneous: bool = False, columns: TableColumns | None = None
) -> list[Table]:
    """Return all tables of some runs that have a row; those of chains and cited answers come first.

    `simultaneous` says that the summaries hold simultaneous intervals. `columns` are those of `summary_table`.
    """
    found = [*cot_tables(*summaries), *citation_tables(*summaries)]
    found.append(summary_table(summaries, simultaneous=simultaneous, columns=columns))
    found += (table(summaries) for table in (ranking_table, pairs_table, agreement_table, robustness_table))
    return [table for table in found if table.rows]


def _effect(line: SummaryLine) -> str:
    """Return the rank-biserial effect with its interval."""
    if line.rank_effect is None or line.rank_effect_ci is None:
        return EMPTY
    low, high = line.rank_effect_ci
    return f"{line.rank_effect:+z.2f} [{low:+z.2f}, {high:+z.2f}]"


def _rank_correlation(line: AgreementLine) -> str:
    ceiling = line.rank_correlation_ceiling
    return f"{written(line.rank_correlation, 'fraction')} {EMPTY if ceiling is None else f'({ceiling:.2f})'}"


_SIMULTANEOUS = "95 % CI (simultaneous)"
_UNTIED = Column(  # the largest win rate that ties leave, in brackets
    "win_rate_untied",
    "of untied (at most)",
    "text",
    get=lambda line: f"{percent(line.win_rate_untied)} ({percent(line.win_rate_attainable)})",
)
_NAMING = naming("model", "task", "attribution", "null", "operator", "direction", "k", "n")
_SUMMARY = (
    *_NAMING,
    Column("win_rate", "win rate", "percent", word=word_of_line),
    *(Column(each.name, *each.metadata["column"]) for each in fields(Measures) if "column" in each.metadata),
    _UNTIED,
    Column("rank_effect", "effect", "text", get=_effect),
    # A single example tests nothing about a mean: its value of 1 would read like a result.
    Column("p_value", "p", "p-value", get=lambda line: line.p_value if line.n > 1 else None),
    Column("p_adjusted", "p adj.", "p-value", get=lambda line: line.p_adjusted if line.n > 1 else None),
    Column("verdict", "verdict", "text", get=verdict_of, word=word_of_line),
)


def _paper_columns(lines: Sequence[SummaryLine]) -> tuple[Column, ...]:
    """Return the columns of the paper; p-values only where they are adjusted as there."""
    of_kept = all(line.direction == "sufficiency" for line in lines)
    by_fdr = all(protocol_of(line.flags).fdr is not None for line in lines if line.n)
    adjusted = Column("p_adjusted", "p (BH)", "p-value", get=lambda line: line.p_adjusted if line.n > 1 else None)
    return (
        *_NAMING,
        Column("win_rate", "WR", "percent", word=_paper_colour),
        Column("win_rate_ci", "95 % CI", "percent interval"),
        Column("nsr_mean", "NSR (Suf.)" if of_kept else "NSR"),
        Column("significant_rate", "sig. rate", "percent"),
        Column("effect_size_median", "d_null", "effect"),
        *((adjusted,) if by_fdr else ()),
        Column("taxonomy", "word (estimate)", "text", get=_paper_word, word=_paper_colour),
    )


def _paper_word(line: SummaryLine) -> str | None:
    return f"control, expected {expected([line])}" if line.attribution == CONTROL else line.taxonomy


def _paper_colour(line: SummaryLine) -> str | None:
    return None if line.attribution == CONTROL else line.taxonomy


def in_paper_columns(summaries: Sequence[Summary], asked: TableColumns | None = None) -> bool:
    """Return True if configurations are shown in the columns of the paper: as asked, or else by their protocols."""
    lines = [line for summary in summaries for line in summary.configurations if line.n]
    own = {protocol_of(line.flags).columns for line in lines}
    return asked == "paper" or (asked is None and own == {"paper"})


def summary_table(
    summaries: Sequence[Summary], *, simultaneous: bool = False, columns: TableColumns | None = None
) -> Table:
    """Return the numbers and the word of every configuration, in our columns or those of the paper.

    Columns with one value in all rows (a single model or task, the usual null, k or direction) are omitted. P-values
    are adjusted over all rows of the table. The highest win rate is marked among rows that differ in their attribution
    alone. The header of the intervals says if they are simultaneous. By default the protocols of the runs choose the
    columns.
    """
    runs, lines = _numbered(summaries, [summary.configurations for summary in adjusted_jointly(summaries)])
    of_steps = bool(summaries) and all(summary.chains is not None for summary in summaries)
    title = "Faithfulness of the explanations of steps" if of_steps else "Faithfulness"
    paper = in_paper_columns(summaries, columns)
    hidden = {_UNTIED} if all("ties" not in line.flags for line in lines) else set()
    shown = _paper_columns(lines) if paper else [each for each in _SUMMARY if each not in hidden]
    if simultaneous:
        shown = [replace(each, header=_SIMULTANEOUS) if each.field == "win_rate_ci" else each for each in shown]
    return table_of(title, lines, shown, runs=runs, best=("WR" if paper else "win rate", _highest(runs, lines)))


def agreement_table(summaries: Sequence[Summary]) -> Table:
    """Return the agreement of every two operators about an attribution."""
    runs, lines = _numbered(summaries, [summary.agreement for summary in summaries])
    shown = (
        *naming("model", "task", "attribution", "null", "operators", "direction", "k"),
        *estimate("gap", "gap", "points"),
        Column("crosses_threshold", f"crosses {THRESHOLD}", "text"),
        Column("same_taxonomy", "same word", "yes/no"),
        Column("rank_correlation", "rank corr. (ceiling)", "text", get=_rank_correlation),
        Column("disagree_rate", "disagree", "percent"),
    )
    return table_of("Operator agreement", lines, shown, runs=runs)


def robustness_table(summaries: Sequence[Summary]) -> Table:
    """Return one word for every attribution on whether a conclusion holds under every operator."""

    def sides(line: RobustnessLine) -> str | None:
        return None if line.sides is None else ", ".join(map(" ".join, zip(line.operators, line.sides, strict=True)))

    runs, lines = _numbered(summaries, [summary.robustness for summary in summaries])
    shown = (
        *naming("model", "task", "attribution", "null", "direction", "k"),
        Column("sides", f"against {THRESHOLD} (95 % intervals)", "text", get=sides),
        Column("spread", "spread", "width"),
        Column("word", "conclusion", "text"),
    )
    return table_of("Over all operators", lines, shown, runs=runs)


def ranking_table(summaries: Sequence[Summary]) -> Table:
    """Return the order of attributions under every operator; `>` where one is ahead beyond doubt."""
    runs, lines = _numbered(summaries, [summary.rankings for summary in summaries])
    shown = (
        *naming("model", "task", "null", "operator", "direction", "k"),
        Column("ranking", "ranking (95 % simultaneous)", "text", get=str),
    )
    return table_of("Head to head", lines, shown, runs=runs)


def pairs_table(summaries: Sequence[Summary]) -> Table:
    """Return the paired difference of every two attributions, where there are few."""
    kept = [tuple(line for line in summary.rankings if len(line.pairs) <= _FEW_PAIRS) for summary in summaries]
    runs, lines = _numbered(summaries, kept)
    rows = [
        (run, {**vars(line), **vars(pair), "attributions": " − ".join(pair.attributions)})
        for run, line in zip(runs, lines, strict=True)
        for pair in line.pairs
        if line.operator != ALL
    ]
    shown = (
        *naming("model", "task", "null", "operator", "direction", "k", "attributions", "n"),
        *estimate("difference", "difference", "points", "95 % CI (simultaneous)"),
        Column("p_adjusted", "p adj.", "p-value"),
    )
    title = "Differences between attributions"
    return table_of(title, [row for _, row in rows], shown, runs=[run for run, _ in rows])


def _numbered(summaries: Sequence[Summary], parts: Sequence[Sequence[L]]) -> tuple[list[str], list[L]]:
    """Return the lines of all summaries, and the number of each one's run where model and task are not unique."""
    named = [{(line.model, line.task) for line in summary.configurations} for summary in summaries]
    alike = any(one & other for one, other in itertools.combinations(named, 2))
    runs = [str(run) if alike else "" for run, lines in enumerate(parts, start=1) for _ in lines]
    return runs, [line for lines in parts for line in lines]


def _highest(runs: Sequence[str], lines: Sequence[SummaryLine]) -> set[int]:
    """Return the lines with the highest win rate among those that differ in their attribution alone."""
    rivals: dict[tuple[object, ...], dict[int, float]] = {}
    for index, (run, line) in enumerate(zip(runs, lines, strict=True)):
        if line.win_rate is not None:
            place = run, line.model, line.task, line.configuration._replace(attribution="")
            rivals.setdefault(place, {})[index] = line.win_rate
    several = [rates for rates in rivals.values() if len(rates) > 1]
    return {index for rates in several for index, rate in rates.items() if rate == max(rates.values())}


def cost_table(manifest: Manifest) -> Table:
    """Return seconds and probes of each attribution; no rows unless at least two have a cost, and not the same."""
    # Attributions that share a pass, as attention and gradients, share its cost equally: where there is nothing else,
    # there is nothing to compare.
    cost, measurable_s = manifest.cost, 0.1
    if cost is None:
        return Table("What each attribution cost", (), ())
    seconds, probes = cost.attribution_seconds, cost.attribution_rows
    columns = [
        Column("attribution", "attribution", "text", get=str),
        Column("seconds", "seconds", "decimal", get=seconds.get),
        Column("probes", "probes", "count", get=probes.get),
        Column("probe_tokens", "tokens of probes", "count", get=cost.probe_tokens.get),
    ]
    if cost.answer_tokens:
        columns.append(Column("answer_tokens", "tokens of answers", "count", get=cost.answer_tokens.get))
    spent = {name: seconds.get(name, 0) for name in {**seconds, **probes}}
    costly = [value for name, value in spent.items() if value >= measurable_s or probes.get(name)]
    is_comparable = len(costly) > 1 and (max(costly) - min(costly) >= measurable_s or bool(probes))
    return table_of("What each attribution cost", list(seconds) if is_comparable else [], columns)


def detectable(win_rate: float) -> str:
    """Return the smallest win rate that can be distinguished from chance, if any can."""
    return "none" if win_rate > 1 else written(win_rate, "percent")


def plan_table(plan: Plan, *, hourly_price: float | None = None) -> Table:
    """Return the cost and power of each choice of examples and random sets."""
    found = [
        Column("name", "", "text"),
        *columns("count", n="n", m="m", rows="rows", tokens="tokens"),
        Column("minutes", "minutes", "decimal"),
        Column("disk_mb", "disk", "text", get=lambda choice: f"{choice.disk_mb:.1f} MB"),
        Column("width", "95 % interval", "text", get=lambda choice: f"± {50 * choice.width:.1f} pp"),
        Column("detectable_win_rate", "detectable", "text", get=lambda choice: detectable(choice.detectable_win_rate)),
    ]
    if hourly_price is not None:
        found.append(Column("dollars", "dollars", "fraction", get=lambda each: each.minutes / 60 * hourly_price))
    return table_of(f"{plan.model} on {plan.task}, {plan.device}", plan.choices, found)


_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Beginning of an HTML tag, which Markdown would pass through; `<0.0001` is none."""
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")
_LATEX: Mapping[str, str] = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$", "|": r"\textbar{}", '"': "''",
    "`": "{`}", "−": "$-$", "–": "--", "—": "---", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''",
    "‚": ",", "„": ",,", "«": r"$\ll$", "»": r"$\gg$", "‹": "$<$", "›": "$>$", "¡": "!`", "¿": "?`",
    "·": r"$\cdot$", "•": r"$\bullet$", "×": r"$\times$", "÷": r"$\div$", "±": r"$\pm$", "¬": r"$\neg$",
    "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$", "≈": r"$\approx$", "∼": r"$\sim$", "∝": r"$\propto$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "↔": r"$\leftrightarrow$",
    "⇒": r"$\Rightarrow$", "⇔": r"$\Leftrightarrow$", "∞": r"$\infty$", "∑": r"$\sum$", "∏": r"$\prod$",
    "∂": r"$\partial$", "√": r"$\surd$", "∈": r"$\in$", "∅": r"$\emptyset$", "∩": r"$\cap$", "∪": r"$\cup$",
    "✓": r"$\surd$", "✗": r"$\times$",
    "°": r"$^{\circ}$", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}", "¶": r"\P{}", "©": r"\copyright{}", "⁄": "/",
    "£": r"\pounds{}", "®": r"\textregistered{}", "™": r"\texttrademark{}", "µ": r"$\mu$", "\N{NO-BREAK SPACE}": "~",
    "\N{SOFT HYPHEN}": r"\-", "‐": "-", "\N{NON-BREAKING HYPHEN}": "-", "\N{ZERO WIDTH SPACE}": "",
    "\N{ZERO WIDTH NO-BREAK SPACE}": "", "ß": r"{\ss}", "æ": r"{\ae}", "Æ": r"{\AE}", "œ": r"{\oe}", "Œ": r"{\OE}",
    "ø": r"{\o}", "Ø": r"{\O}", "ł": r"{\l}", "Ł": r"{\L}", "ı": r"{\i}",
}  # fmt: skip
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327", "`'^~=u.\"rHvdc", strict=True)
)
_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)


def latex_text(text: str) -> str:
    """Return a text for LaTeX in ASCII alone, which compiles with any engine and without a package.

    Symbols, accented letters, superscripts and Greek letters become commands. pdflatex has no type for other scripts,
    nor for control characters: a run of them is written by its code points, as `[U+4E2D U+6587]`.
    """
    found = ""
    plain = _MINUS.sub("−", unicodedata.normalize("NFC", text))
    for is_known, letters in itertools.groupby(plain, lambda letter: _latex_of(letter) is not None):
        if not is_known:
            found += "{[}" + " ".join(f"U+{ord(letter):04X}" for letter in letters) + "{]}"
            continue
        for letter in letters:  # two hyphens, quotes or commas would join to one sign
            found += ("{}" if letter == _latex_of(letter) == found[-1:] and letter in "-'," else "") + str(
                _latex_of(letter)
            )
    return found


def _latex_of(letter: str) -> str | None:
    """Return a character as LaTeX; None if there is no command for it."""
    if letter in _LATEX:
        return _LATEX[letter]
    if letter == "" or " " <= letter <= "~":
        return letter
    kind, _, plain = unicodedata.decomposition(letter).rpartition("> ")
    parts = [chr(int(code, 16)) for code in plain.split()]
    if not kind and len(parts) == 2 and parts[1] in _ACCENTS:
        base, accent = _latex_of(parts[0]), _ACCENTS[parts[1]]
        return None if base is None else f"\\{accent}{{{base}}}"
    if kind:  # a superscript or subscript, a ligature, a fraction, a wide letter, a narrow space
        of, sign = [_latex_of(part) for part in parts], {"<super": "^", "<sub": "_"}.get(kind)
        whole = "".join(map(str, of))
        return None if None in of else whole if sign is None else f"${sign}{{{whole.replace('$', '')}}}$"
    words = unicodedata.name(letter, "").lower().replace("lamda", "lambda").split()
    name = words[-1] if words[:1] == ["greek"] and len(words) == 4 and words[2] == "letter" else ""
    name = name.capitalize() if words[1:2] == ["capital"] else name
    return rf"$\{name}$" if name in _GREEK else None


def _rows(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    """Return the cells of the header and of each row as markup, the best ones in bold."""
    rows = [[escape(" ".join(cell.split())) for cell in cells] for cells in (table.header, *table.rows)]
    for i, j in table.best:
        rows[i + 1][j] = bold.replace("CELL", rows[i + 1][j])
    return rows


def _markdown(table: Table) -> str:
    def escape(cell: str) -> str:
        return _TAG.sub(r"\<", cell.replace("\\", "\\\\").replace("|", "\\|"))

    head, *body = ["| " + " | ".join(cells) + " |" for cells in _rows(table, escape, "**CELL**")]
    rule = "|" + "|".join(" ---: " if number else " --- " for number in table.are_numbers) + "|"
    return "\n".join([f"**{escape(' '.join(table.title.split()))}**", "", head, rule, *body])


def _latex(table: Table) -> str:
    """Return a booktabs table, with its caption as a comment above it; runs, models and tasks are set apart."""
    rows = [" & ".join(cells) + r" \\" for cells in _rows(table, latex_text, r"\textbf{CELL}")]
    # A bracket or a star would be an argument of the \\ before it.
    head, *rows = ["{}" + row if row.startswith(("[", "*")) else row for row in rows]
    naming = [place for place, name in enumerate(table.header) if name in {"run", "model", "task"}]
    runs = [[cells[place] for place in naming] for cells in table.rows]
    body = list[str]()
    for i, row in enumerate(rows):
        body += [r"\addlinespace", row] if i and runs[i] != runs[i - 1] else [row]
    alignment = "".join("r" if number else "l" for number in table.are_numbers)
    caption = rf"% {latex_text(' '.join(table.title.split()))}; needs \usepackage{{booktabs}}"
    start = [caption, rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*start, *body, r"\bottomrule", r"\end{tabular}"])


FORMATS: Mapping[str, Callable[[Table], str]] = {"md": _markdown, "latex": _latex}
"""Functions that write a table as text of a format."""
