"""Figures of the single examples of one run, drawn from bins and quantiles: 2,000 points would be too many."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import altair as alt
import numpy as np

from ice_eval.analysis._base import Values, quantiles, shares, shares_by_chance
from ice_eval.analysis.measures.explanations import HUMAN, iou, marks_of, tells_units_apart
from ice_eval.errors import ConfigError
from ice_eval.nulls import SIZE
from ice_eval.report.example import LARGEST_LOG_ODDS, is_chain
from ice_eval.report.figures import figure as parts
from ice_eval.report.figures.figure import UNIT, Figure
from ice_eval.report.figures.tables import Plausibility, plausibility_scatter
from ice_eval.results import ComparedOutcome, ExampleOutcome, ExampleView, RunFolder, SummaryLine
from ice_eval.results.ledger import logit
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine
from ice_eval.stats import CHANCE
from ice_eval.table import share

L = TypeVar("L", SummaryLine, AgreementLine, ExampleOutcome)
Cell = tuple[str, str]
"""Attribution and operator."""

USUAL_K = 0.2
_FIELDS = ("m", "win_rate", "p_value", "effect_size")
_OWN_SIZE = " (own size)"
_SIZE = {"width": 130, "height": 70}
_SHARE = ("share:Q", "share of examples", ".1%")


def named(line: L) -> L:
    """Return a line whose attribution is marked where its rationales have sizes of their own."""
    return replace(line, attribution=f"{line.attribution}{_OWN_SIZE}") if line.k is None else line


class PlottedExamples:
    """The examples of a run at k = 0.2 where it has it, else at its first k; under its first direction and null.

    Rationales that have a size of their own are included whatever k.
    """

    def __init__(self, folder: RunFolder, configurations: Sequence[SummaryLine]) -> None:
        sizes = [line.k for line in configurations if line.k is not None]
        self.folder = folder
        self.k = USUAL_K if USUAL_K in sizes else next(iter(sizes), None)
        self.direction, self.null = configurations[0].direction, configurations[0].null
        held = [line for line in configurations if self._holds(line)]
        found = {(line.attribution, line.operator): array("d") for line in held}
        for line in self.lines():
            values = (getattr(line, name) for name in _FIELDS)
            found[line.attribution, line.operator].extend(np.nan if value is None else value for value in values)
        tables = {cell: np.array(values).reshape(-1, len(_FIELDS)) for cell, values in found.items() if values}
        self.columns = {cell: dict(zip(_FIELDS, table.T, strict=True)) for cell, table in tables.items()}

    def _holds(self, line: SummaryLine | ExampleOutcome) -> bool:
        return line.k in (self.k, None) and (line.direction, line.null) == (self.direction, self.null)

    def lines(self) -> Iterator[ExampleOutcome]:
        """Yield the examples in this setting; those that failed are skipped."""
        return (named(line) for line in self.folder.examples() if line.error is None and self._holds(line))

    @property
    def setting(self) -> str:
        size = "own sizes" if self.k is None else f"k = {share(self.k)}"
        return f"{size}, {self.direction}" + ("" if self.null == SIZE else f", null: {self.null}")

    @property
    def n_bins(self) -> int:
        """Number of bins of a histogram: few random sets allow few win rates, so narrow bins would show gaps."""
        return 20 if max(columns["m"].max() for columns in self.columns.values()) >= 40 else 10

    def values(self, cell: Cell, name: str) -> Values:
        found: Values = self.columns[cell][name]
        return found[~np.isnan(found)]

    def bins(self, cell: Cell, columns: Mapping[str, Values]) -> Iterator[dict[str, Any]]:
        """Yield a row for every bin of a cell's histogram, with its limits and a number from each column."""
        n = self.n_bins
        for i in range(n):
            place = {"row": cell[0], "column": cell[1], "operator": cell[1], "from": i / n, "to": (i + 1) / n}
            yield {**place, **{name: round(float(values[i]), 6) for name, values in columns.items()}}


def _histogram(rows: parts.Rows, title: str, axis: alt.Axis, *shown: tuple[str, ...]) -> tuple[alt.Chart, alt.Chart]:
    """Return bars from `from` to `to` as high as `share`, in the colour of the operator, and their base."""
    base = alt.Chart().encode(x2="to:Q", tooltip=parts.tooltips(*shown))
    bars = base.mark_bar(binSpacing=1).encode(
        x=alt.X("from:Q", title=title, bin="binned", scale=UNIT, axis=axis),
        y=alt.Y("share:Q", title="share", axis=alt.Axis(format=".0%", tickCount=3)),
        color=parts.colours(rows).legend(None),
    )
    return bars, base


def distribution(examples: PlottedExamples) -> Figure:
    """Draw a histogram of win rates for every attribution and operator."""
    rows: list[dict[str, Any]] = []
    for cell in examples.columns:
        rates = examples.values(cell, "win_rate")
        rows += [row for row in examples.bins(cell, {"share": shares(rates, examples.n_bins)}) if row["share"] > 0]
        rows.append({"row": cell[0], "column": cell[1], "operator": cell[1], "mean": float(rates.mean())})
    axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], grid=False)
    bars, _ = _histogram(rows, "win rate", axis, ("from:Q", "win rate from", ".0%"), ("to:Q", "", ".0%"), _SHARE)
    mean = alt.Chart().mark_rule(style=parts.INK, strokeWidth=2)
    mean = mean.encode(x=alt.X("mean:Q", scale=UNIT), y=alt.value(0), y2=alt.value(12))
    chart = parts.panels([bars, parts.line_at(CHANCE, "x", UNIT), mean], rows, **_SIZE)
    caption = (
        "Share of examples by win rate; the tick at the top is their mean, the line chance (50 %). A mean near chance "
        "can hide two groups. Win rates of single examples are coarse (steps of 1/m); one on a limit is drawn left of "
        "it."
    )
    title = f"Win rates of single examples ({examples.setting})"
    return Figure("win-rate-distribution", title, caption, chart)


LIMIT = 4.0
"""Largest effect size drawn: a null with next to no spread makes effect sizes arbitrarily large."""
_QUANTILES = {"low": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 0.95}


def effects(examples: PlottedExamples) -> Figure | None:
    """Draw quantiles of effect sizes for every attribution and operator."""
    rows = [row for cell in examples.columns if (row := _effects_row(examples, cell))["median"] is not None]
    if not rows:
        return None
    scale = alt.Scale(domain=[-LIMIT, LIMIT])
    levels = [(f"{name}:Q", f"{level:.0%} below", "+.2f") for name, level in _QUANTILES.items()]
    base = alt.Chart().encode(
        y=alt.Y("attribution:N", title=None, sort=parts.distinct(rows, "attribution")),
        yOffset=alt.YOffset("operator:N", sort=parts.distinct(rows, "operator")),
        color=parts.colours(rows),
        tooltip=parts.tooltips("attribution:N", "operator:N", *levels, ("beyond:N", "not drawn")),
    )
    median = base.mark_point(**parts.DOT, size=70, stroke="#ffffff", strokeWidth=1.5)
    layers = [
        parts.line_at(0, "x", scale),
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low_drawn:Q", scale=scale), x2="high_drawn:Q"),
        base.mark_rule(strokeWidth=5).encode(x=alt.X("lower_drawn:Q", scale=scale), x2="upper_drawn:Q"),
        median.encode(x=alt.X("median_drawn:Q", title="effect size", scale=scale)),
        base.mark_text(align="left", dx=6, style=parts.FAINT).encode(x=alt.value("width"), text="beyond:N"),
    ]
    chart = parts.panels(layers, rows, width=320, height=alt.Step(14))
    caption = (
        "Effect size of single examples, in standard deviations of their random sets: median (dot), middle half "
        f"(thick) and middle 90 % (thin). The axis ends at ±{LIMIT:g}; the text beside a row says how many lie beyond, "
        "and for how many no effect size exists. This is spread over examples, not uncertainty of the median."
    )
    return Figure("effect-sizes", f"Effect sizes of single examples ({examples.setting})", caption, chart)


def _effects_row(examples: PlottedExamples, cell: Cell) -> dict[str, Any]:
    sizes = examples.values(cell, "effect_size")
    found = dict(zip(_QUANTILES, quantiles(sizes, list(_QUANTILES.values())), strict=True))
    drawn = {f"{name}_drawn": None if q is None else float(np.clip(q, -LIMIT, LIMIT)) for name, q in found.items()}
    outside, undefined = int((np.abs(sizes) > LIMIT).sum()), examples.columns[cell]["m"].size - sizes.size
    said = [f"{outside} beyond ±{LIMIT:g}"] * bool(outside) + [f"{undefined} undefined"] * bool(undefined)
    return {"attribution": cell[0], "operator": cell[1], **found, **drawn, "beyond": ", ".join(said)}


_BY_CHANCE = (
    "Each example took as many random sets as its tests needed, so that no steps show what chance would give: which "
    "p-values are likely depends on when a test stops.",
    "The steps are what an explanation no better than random would give: even, but for the few values that m random "
    "sets allow.",
)
"""Sentences of the figure without the shares of chance, and with them."""


def p_values(examples: PlottedExamples) -> Figure:
    """Draw a histogram of p-values for every attribution and operator, beside that of chance where it is known."""
    n_bins = examples.n_bins
    is_known = examples.folder.manifest().config.adaptive != "examples"
    rows: list[dict[str, Any]] = []
    for cell in examples.columns:
        columns = {"share": shares(examples.values(cell, "p_value"), n_bins)}
        if is_known:
            columns["chance"] = shares_by_chance(examples.values(cell, "m"), n_bins)
        rows += examples.bins(cell, columns)
    shown = [("from:Q", "p-value from", ".2f"), ("to:Q", "", ".2f"), _SHARE]
    shown += [("chance:Q", "by chance", ".1%")] if is_known else []
    bars, base = _histogram(rows, "p-value", alt.Axis(format="~g", values=[0, 0.5, 1], grid=False), *shown)
    steps = base.mark_rule(style=parts.INK, strokeWidth=1.5).encode(x=alt.X("from:Q", scale=UNIT), y="chance:Q")
    chart = parts.panels([bars, steps] if is_known else [bars], rows, **_SIZE)
    caption = (
        f"Share of examples by p-value (upper tail). {_BY_CHANCE[is_known]} A peak at 0 is evidence for the rationale, "
        "one at 1 against it; ties push p-values up. No bin says which examples are significant after correction."
    )
    return Figure("p-values", f"P-values of single examples ({examples.setting})", caption, chart)


_TICKS = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]
"""Probabilities that a scale of log-odds names."""


def example_nulls(view: ExampleView) -> Figure:
    """Draw the random sets of one example under each operator on a common axis, and the rationale of every method.

    Of several directions, sizes and nulls, the first of each method is drawn.
    """
    rows, about = _null_rows(view), f"Example {view.example.example_id}"
    if not rows:
        raise ConfigError(f"example '{view.example.example_id}' has no scores to draw.")
    numbers = [row[name] for row in rows for name in ("score", "null") if row[name] is not None]
    margin = 0.05 * (max(numbers) - min(numbers)) or 1.0
    scale = alt.Scale(domain=[min(numbers) - margin, max(numbers) + margin], nice=False, zero=False)
    axis = {**_score_axis(view), "scale": scale}
    methods = [row for row in rows if row["score"] is not None]
    base = alt.Chart().encode(y=alt.Y("operator:N", title=None, sort=parts.distinct(rows, "operator")))
    ticks = base.mark_tick(thickness=2, opacity=0.45, height=26).encode(
        x=alt.X("null:Q", **axis), tooltip=parts.tooltips(("set:Q", "random set"), ("null:Q", "score", ".3f"))
    )
    rates = (("win_rate:Q", "win rate", ".1%"), ("p:Q", "p-value", ".3f"))
    marks = base.mark_point(**parts.DOT, size=130, stroke="#ffffff").encode(
        x=alt.X("score:Q", **axis),
        color=parts.colours(methods, "attribution"),
        shape=parts.shapes(methods, "attribution"),
        tooltip=parts.tooltips("attribution:N", "operator:N", *rates),
    )
    chart = parts.panels([ticks, marks], rows, width=480, height=alt.Step(48))
    line = next(each.line for each in view.compared if each.scores is not None)
    better = "right" if line.direction == "sufficiency" else "left"
    caption = (
        f"Ticks are random sets of the same size, points the rationales of the methods; further {better} is better."
    )
    size = "own size" if line.k is None else f"k = {share(line.k)}"
    return Figure("example-nulls", f"{about} ({size}, {line.direction})", caption, chart)


def _null_rows(view: ExampleView) -> list[dict[str, Any]]:
    """Return a row for the rationale of every method under every operator, and one for each set of the first's null."""
    rows, found = list[dict[str, Any]](), dict[Cell, ComparedOutcome]()
    for each in view.compared:
        if each.scores is not None and each.line.operator != ALL:
            found.setdefault((each.line.attribution, each.line.operator), each)
    nothing = dict.fromkeys(("attribution", "score", "null", "set", "win_rate", "p"))
    for (name, operator), each in found.items():
        assert each.scores is not None, "those without were left out"
        values = np.append(each.scores.rationale, each.scores.null)
        values = np.sign(values) if is_chain(view) else np.clip(values, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        own, *null = values.tolist()
        here, is_first = {"operator": operator, **nothing}, all(row["operator"] != operator for row in rows)
        numbers = {"score": own, "win_rate": each.line.win_rate, "p": each.line.p_value}
        rows.append({**here, **numbers, "attribution": name})
        for number, score in zip(each.scores.sets, null, strict=True) if is_first else ():
            rows.append({**here, "set": number + 1, "null": score})
    return rows


def _score_axis(view: ExampleView) -> dict[str, Any]:
    """Return title and axis of the scores of an example: log-odds named as probabilities, or what they are."""
    if is_chain(view):
        said = "datum.value > 0 ? 'the same answer' : datum.value < 0 ? 'another answer' : 'cannot be read'"
        return {"title": "answer", "axis": alt.Axis(labelExpr=said, values=[-1, 0, 1], grid=False)}
    if view.is_open:
        return {"title": "log-probability per token", "axis": alt.Axis(grid=False)}
    named_ = "format(100 / (1 + exp(-datum.value)), '.4~g') + ' %'"
    values = [round(float(value), 4) for value in logit(np.array(_TICKS))]
    return {"title": f"probability of {view.target}", "axis": alt.Axis(labelExpr=named_, values=values, grid=False)}


def plausibility(examples: PlottedExamples) -> Figure | None:
    """Draw overlap with human rationales against win rates; None where the data have no human rationales."""
    folder, cells = examples.folder, list(examples.columns)
    inputs = ((row, marks_of(row)) for part in folder.parts() for row in folder.inputs(part) if row.human)
    known = {row.example_id: (marks, row.group) for row, marks in inputs if tells_units_apart(marks)}
    rows = list[Plausibility]()
    for line in examples.lines() if known else ():
        if line.example_id in known and line.attribution != f"{HUMAN}{_OWN_SIZE}" and line.operator != ALL:
            marks, group = known[line.example_id]
            cell, overlap = {"model": line.attribution, "operator": line.operator}, iou(line.rationale, marks)
            rows.append(Plausibility(**cell, overlap=overlap, win_rate=line.win_rate, group=group))
    if not rows:
        return None
    drawn = plausibility_scatter(sorted(rows, key=lambda row: cells.index((row.model, row.operator))))
    return replace(drawn, title=f"{drawn.title} ({examples.setting})")
