"""Figures of runs and of grids; labels show only what distinguishes them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import altair as alt

from ice_eval.analysis import GridResults, GridRun
from ice_eval.errors import ConfigError
from ice_eval.rationales import DYNAMIC
from ice_eval.report.colours import verdict_of, word_of_line
from ice_eval.report.conclusion import conclude
from ice_eval.report.figures import figure as parts
from ice_eval.report.figures.chains import chain_figures
from ice_eval.report.figures.examples import PlottedExamples, distribution, effects, named, p_values, plausibility
from ice_eval.report.figures.figure import Figure
from ice_eval.report.figures.tables import LanguageWinRate, PromptWinRate, language_heatmap, prompt_sensitivity
from ice_eval.report.tables import run_names
from ice_eval.results import RunFolder, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine
from ice_eval.results.summary import CONTROL
from ice_eval.results.summary import simultaneous as with_simultaneous
from ice_eval.table import share

Line = SummaryLine | AgreementLine
L = TypeVar("L", SummaryLine, AgreementLine)

_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "k": lambda value: "own size" if value is None else f"k = {share(value)}",
    "null": lambda value: f"null: {value}",
    "operators": lambda value: " − ".join(value),
}


class _Runs(NamedTuple):
    folders: Sequence[RunFolder]
    names: Sequence[tuple[str, str]]
    """Model and task of every folder, which together distinguish the folders."""
    subject: tuple[str, ...]
    """Fields that a reader compares: attributions of one run, or several runs."""
    aside: tuple[str, ...]
    configurations: Sequence[SummaryLine]
    agreement: Sequence[AgreementLine]


def _runs_of(folders: Sequence[RunFolder], *, simultaneous: bool = False) -> _Runs:
    found = list({folder.path.resolve(): folder for folder in folders}.values())
    names, summaries = run_names(found), [folder.summary() for folder in found]
    if simultaneous:
        summaries = list(map(with_simultaneous, summaries))
    configurations, agreement = list[SummaryLine](), list[AgreementLine]()
    for (model, task), summary in zip(names, summaries, strict=True):
        configurations += (replace(named(line), model=model, task=task) for line in summary.configurations)
        agreement += (replace(named(line), model=model, task=task) for line in summary.agreement)
    subject, aside = (("model", "task"), ("attribution",)) if len(found) > 1 else (("attribution",), ())
    return _Runs(found, names, subject, aside, _in_order(configurations), _in_order(agreement))


def _in_order(lines: Sequence[L]) -> list[L]:
    """Sort by attribution, in order of appearance, and k, shares first; the average over operators comes last."""
    # Else panels of several runs are in any order.
    first = list(dict.fromkeys(line.attribution for line in lines))

    def place(line: Line) -> tuple[bool, int, bool, bool, float]:
        average, k = isinstance(line, SummaryLine) and line.operator == ALL, line.k
        return average, first.index(line.attribution), k is None, k == DYNAMIC, k if isinstance(k, float) else 0.0

    return sorted(lines, key=place)


def _labels(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """Return for every line the values of those fields that differ between lines."""
    # Rationales with a size of their own are shown beside those of a single k, and apart from those of several.
    cells = {name: [_WRITTEN.get(name, str)(getattr(line, name)) for line in lines] for name in names}
    single_k = len({line.k for line in lines} - {None}) < 2
    shown = [values for name, values in cells.items() if len(set(values)) > 1 and not (name == "k" and single_k)]
    return [" · ".join(values) for values in zip(*shown, strict=True)] if shown else [""] * len(lines)


def _subjects(runs: _Runs, lines: Sequence[Line]) -> list[str]:
    """Return the subject of every line: its run where there are several, else its attribution."""
    found = _labels(lines, runs.subject)
    return found if any(found) else [str(getattr(line, runs.subject[0])) for line in lines]


def _placed(lines: Sequence[Line], *, row: Sequence[str], column: str) -> list[dict[str, str]]:
    pairs = zip(_labels(lines, row), _labels(lines, [column]), strict=True)
    return [{"row": above, "column": beside} for above, beside in pairs]


def _heatmap(runs: _Runs) -> Figure | None:
    """Draw models by tasks where there are several runs, else attributions by operators."""
    lines = runs.configurations
    several_models, several_tasks = (len({getattr(line, name) for line in lines}) > 1 for name in ("model", "task"))
    row: tuple[str, ...] = ("attribution", "direction", "null")
    if several_models and several_tasks:
        x, y, row, column = "task", "model", (*row, "k"), "operator"
    elif several_models or several_tasks:
        x, y, column = "operator", "model" if several_models else "task", "k"
    else:
        x, y, row, column = "operator", "attribution", ("direction", "null"), "k"
    rows = []
    for line, place in zip(lines, _placed(lines, row=row, column=column), strict=True):
        shown = parts.cell(line.win_rate, word_of_line(line) or parts.grey_name(line.attribution))
        rows.append({"x": str(getattr(line, x)), "y": str(getattr(line, y)), **place, **shown})
    caption = (
        "Mean win rate in percent, coloured by its verdict: the word that the whole 95 % interval allows; 50 is chance."
        " The random control is grey."
    )
    return Figure("win-rate-heatmap", "Win rates", caption, parts.coloured_cells(rows, x=x, y=y))


_RATE = ("win_rate:Q", "win rate", ".1%")
_LINES = "The line marks chance (50 %), the dashed one the 55 % from which the paper speaks of faithfulness."
_SIZE: dict[str, Any] = {"width": 220, "height": alt.Step(13)}


def _comparison(runs: _Runs) -> Figure | None:
    rows, tooltip = _operator_rows(runs, average=False)
    if len(parts.distinct(rows, "operator")) < 2:
        return None
    caption = (
        f"Mean win rate under each operator with its 95 % interval; the grey line between the dots is the gap. {_LINES}"
        " Overlapping intervals do not mean that operators agree: the paired gap has an interval of its own."
    )
    chart = parts.panels(parts.joined_dots(rows, "operator", size=60, tooltip=tooltip), rows, **_SIZE)
    return Figure("operator-comparison", "Operators compared", caption, chart)


def _bars(runs: _Runs) -> Figure | None:
    rows, tooltip = _operator_rows(runs, average=True)
    if not rows:
        return None
    base = parts.subjects(rows, "operator", parts.UNIT, tooltip)
    layers = [
        base.mark_bar(opacity=0.75).encode(color=parts.greyed(rows)),
        *parts.chance_and_threshold("x", parts.UNIT),
        parts.low_to_high(base.mark_rule(style=parts.INK), "x", parts.UNIT),
    ]
    caption = (
        f"Mean win rate under each operator, and under their average, with 95 % intervals. {_LINES} Bars start at 0, "
        "which no random explanation reaches."
    )
    return Figure("operator-bars", "Win rate by operator", caption, parts.panels(layers, rows, **_SIZE))


def _rate_row(line: SummaryLine) -> dict[str, Any]:
    control = line.attribution == CONTROL
    return {"operator": line.operator, "win_rate": line.win_rate, **parts.ends(line.win_rate_ci), "control": control}


def _operator_rows(runs: _Runs, *, average: bool) -> tuple[list[dict[str, Any]], list[alt.Tooltip]]:
    lines = [line for line in runs.configurations if line.win_rate is not None and (average or line.operator != ALL)]
    places = _placed(lines, row=(*runs.aside, "direction", "null"), column="k")
    rows = [
        {"subject": subject, "verdict": verdict_of(line), **_rate_row(line), **place}
        for line, subject, place in zip(lines, _subjects(runs, lines), places, strict=True)
    ]
    subject_title = ("subject:N", " · ".join(runs.subject))
    return rows, parts.tooltips(subject_title, "operator:N", _RATE, *parts.end_tooltips(".1%"), "verdict:N")


_POINTS = "datum.value == 0 ? '0' : format(100 * datum.value, '+.3~g')"
_CROSSES = {"yes": "#b5400e", "unclear": "#a87c00", "no": "#16857a"}


def ranked(folder: RunFolder) -> Figure:
    """Draw the win rates of all methods of a run in its first setting, the best first and the control last, in grey."""
    found = conclude(folder.summary(), folder.manifest()).first
    if found is None:
        raise ConfigError(f"{folder.path} has no explanation, so no methods to rank.")
    lines = [line for method in found.methods for line in method.lines if line.win_rate is not None]
    rows = [{"subject": line.attribution, "n": line.n, **_rate_row(line)} for line in lines]
    if not rows:
        raise ConfigError(f"{folder.path}: no example could be evaluated.")
    scale = parts.rate_scale(rows)
    shown = ("subject:N", "operator:N", ("win_rate:Q", "win rate", ".1%"), *parts.end_tooltips(".1%"), "n:Q")
    coloured = parts.subjects(rows, "operator", scale, parts.tooltips(*shown)).encode(color=parts.greyed(rows))
    layers = [
        *parts.chance_and_threshold("x", scale),
        parts.low_to_high(coloured.mark_rule(strokeWidth=3), "x", scale),
        coloured.mark_point(**parts.DOT, size=90).encode(shape=parts.shapes(rows)),
    ]
    caption = (
        "Mean win rate of every method with its 95 % interval; lines at 50 % (chance) and 55 %; the control in grey."
    )
    chart = parts.panels(layers, rows, width=480, height=alt.Step(22))
    return Figure("ranked", f"Win rates ({found.name})", caption, chart)


def _agreement(runs: _Runs) -> Figure | None:
    lines = [line for line in runs.agreement if line.gap is not None]
    if not lines:
        return None
    places = _placed(lines, row=("operators", *runs.aside, "direction", "null"), column="k")
    rows: list[dict[str, Any]] = [
        {"subject": subject, "gap": line.gap, **parts.ends(line.gap_ci), "crosses": line.crosses_threshold}
        | {"operators": " − ".join(line.operators), **place}
        for line, subject, place in zip(lines, _subjects(runs, lines), places, strict=True)
    ]
    words, crosses = list(_CROSSES), ("crosses:N", "crosses 55 %")
    colours, shapes = (alt.Scale(domain=words, range=found) for found in (list(_CROSSES.values()), parts.SHAPES[:3]))
    pairs = parts.distinct(rows, "operators")
    title = f"win rate, {pairs[0]} (points)" if len(pairs) == 1 else "difference of win rates (points)"
    named_subject, gap = ("subject:N", " · ".join(runs.subject)), ("gap:Q", "", "+.1%")
    base = alt.Chart().encode(
        x=alt.X("gap:Q", title=title, axis=alt.Axis(labelExpr=_POINTS, tickCount=5)),
        y=alt.Y("subject:N", title=None, sort=parts.distinct(rows, "subject")),
        color=alt.Color("crosses:N", title=crosses[1], scale=colours, legend=alt.Legend(orient="bottom")),
        tooltip=parts.tooltips(named_subject, "operators:N", gap, *parts.end_tooltips("+.1%"), crosses),
    )
    layers = [
        parts.line_at(0, "x", alt.Scale()),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        base.mark_point(**parts.DOT, size=60).encode(shape=alt.Shape("crosses:N", title=crosses[1], scale=shapes)),
    ]
    caption = (
        "Mean win rate under the first operator less that under the second, over the same examples, with the paired 95 "
        "% interval; 0 is no gap. Colour and shape tell whether the two lie on opposite sides of 55 %: a gap may be "
        "large without that, and does not say which operator is right."
    )
    chart = parts.panels(layers, rows, width=220, height=alt.Step(22))
    return Figure("operator-agreement", "Gap between operators", caption, chart)


def _k_sweep(runs: _Runs) -> Figure | None:
    single = [line for line in runs.configurations if line.win_rate is not None and line.operator != ALL]
    lines = [line for line in single if isinstance(line.k, float)]
    sizes = sorted({line.k for line in lines if isinstance(line.k, float)})
    if len(sizes) < 2:
        return None
    places = _placed(lines, row=("model", "task", "direction", "null"), column="attribution")
    rows = [{"k": line.k, **_rate_row(line), **place} for line, place in zip(lines, places, strict=True)]
    axis = parts.share_axis("k:Q", sizes, title="k", margin=0.05 * (sizes[-1] - sizes[0]))
    base = alt.Chart().encode(x=axis, color=parts.greyed(rows))
    scale = parts.rate_scale(rows)
    win_rate = alt.Y("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%"))
    shown = parts.tooltips("operator:N", "k:Q", _RATE, *parts.end_tooltips(".1%"))
    layers = [
        *parts.chance_and_threshold("y", scale),
        parts.low_to_high(base.mark_area(opacity=0.2), "y", scale),
        base.mark_line(strokeWidth=1.5).encode(y=win_rate),
        base.mark_point(**parts.DOT, size=45).encode(y=win_rate, shape=parts.shapes(rows), tooltip=shown),
    ]
    caption = (
        "Mean win rate against the share k of units that a rationale keeps, with 95 % bands; the line marks chance (50 "
        "%), the dashed one 55 %. All points rest on the same examples, so a curve is smoother than its bands suggest."
    )
    chart = parts.panels(layers, rows, width=170, height=150)
    return Figure("k-sweep", "Win rate against the size of the rationale", caption, chart)


def figures(folders: Sequence[RunFolder], *, simultaneous: bool = False) -> list[Figure]:
    """Return the figures of some runs that their data allow, those of chains of thought first.

    Figures of summaries put all runs into one. Figures of single examples are one for every run, named after it where
    there are several. With `simultaneous`, intervals hold for all configurations of a run at once. Raises
    `ConfigError` if a run is not finished.
    """
    runs = _runs_of(folders, simultaneous=simultaneous)
    of_explanations = [*_of_summaries(runs), *_of_examples(runs)] if runs.configurations else []
    return chain_figures(runs.folders) + of_explanations


def _of_summaries(runs: _Runs) -> list[Figure]:
    drawn = (draw(runs) for draw in (_heatmap, _comparison, _bars, _agreement, _k_sweep))
    return [figure for figure in drawn if figure is not None]


def _of_examples(runs: _Runs) -> Iterator[Figure]:
    taken: set[str] = set()
    for folder, (model, task) in zip(runs.folders, runs.names, strict=True):
        # A suffix that any file system accepts, different for every run.
        plain = re.sub(r"[^a-z0-9]+", "-", f"{model} {task}".lower()).strip("-")[:60] or "run"
        numbered = (plain, *(f"{plain}-{i}" for i in range(2, len(taken) + 3)))
        suffix = next(name for name in numbered if name not in taken)
        taken.add(suffix)
        lines = [line for line in runs.configurations if (line.model, line.task) == (model, task)]
        if not lines:
            continue
        examples = PlottedExamples(folder, lines)
        for draw in (distribution, effects, p_values, plausibility) if examples.columns else ():
            figure = draw(examples)
            if figure is not None:
                yield _about(figure, f"{model} on {task}", suffix) if len(runs.folders) > 1 else figure


def grid_figures(grid: GridResults, *, simultaneous: bool = False) -> list[Figure]:
    """Return the figures of a grid; prompts and languages are drawn where there are several."""
    runs = _runs_of([run.folder for run in grid.runs], simultaneous=simultaneous)
    return [*_of_summaries(runs), *_prompts(grid), *_languages(grid)]


def _prompts(grid: GridResults) -> Iterator[Figure]:
    rows: dict[str, list[PromptWinRate]] = {}
    for run, line in _drawn_lines(grid) if grid.several("prompt") else ():
        named = {name: getattr(line, name) for name in ("model", "task", "attribution", "win_rate")}
        row = PromptWinRate(**named, prompt=run.prompt, **parts.ends(line.win_rate_ci))
        rows.setdefault(line.operator, []).append(row)
    return (_about(prompt_sensitivity(own), operator) for operator, own in rows.items())


def _languages(grid: GridResults) -> Iterator[Figure]:
    """Return one figure for every attribution, with the first of a task's prompts."""
    lines = _drawn_lines(grid) if grid.several("language") else []
    first = {(run.model, run.task): run.prompt for run, _ in reversed(lines)}
    rows: dict[str, list[LanguageWinRate]] = {}
    for run, line in lines:
        if first[run.model, run.task] == run.prompt:
            language, word = f"{run.task} ({run.language})", word_of_line(line) or parts.grey_name(line.attribution)
            named = {"model": run.model, "language": language, "operator": line.operator, "word": word}
            rows.setdefault(line.attribution, []).append(LanguageWinRate(**named, win_rate=line.win_rate))
    return (_about(language_heatmap(own), attribution) for attribution, own in rows.items())


def _drawn_lines(grid: GridResults) -> list[tuple[GridRun, SummaryLine]]:
    """Return the lines under single operators, and of the first k, direction and null, where there are several."""
    found = [(each.run, each.line) for each in grid.configurations if each.line.operator != ALL]
    found = [(run, line) for run, line in found if line.win_rate is not None]
    for name in ("direction", "null", "k"):
        values = [getattr(line, name) for _, line in found]
        chosen = next((value for value in values if value is not None), None)
        found = [each for each, value in zip(found, values, strict=True) if value in (chosen, None)]
    return found


def _about(figure: Figure, subject: str, suffix: str | None = None) -> Figure:
    return replace(figure, name=f"{figure.name}-{suffix or subject}", title=f"{figure.title}: {subject}")
