"""Figures of the single examples of one run, drawn from bins and quantiles: 2,000 points would be too many."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import altair as alt
import numpy as np

from ice_eval.analysis.examples import Values, quantiles, shares, shares_by_chance
from ice_eval.analysis.measures.plausibility import HUMAN, iou, marks_of, tells_units_apart
from ice_eval.nulls import SIZE
from ice_eval.rationales import Share
from ice_eval.records import Direction
from ice_eval.report.figures.figure import (
    FAINT,
    INK,
    Figure,
    Rows,
    in_order,
    line_at,
    operator_colours,
    panels,
    tooltips,
)
from ice_eval.report.figures.tables import Plausibility, plausibility_scatter
from ice_eval.results import ExampleOutcome, RunFolder, SummaryLine
from ice_eval.results.outcomes import ALL
from ice_eval.results.records import AgreementLine
from ice_eval.stats import CHANCE
from ice_eval.table import share

L = TypeVar("L", SummaryLine, AgreementLine, ExampleOutcome)

USUAL_K = 0.2
_FIELDS = ("m", "win_rate", "p_value", "effect_size")
_RATES = alt.Scale(domain=[0, 1])
_SHARE = ("share:Q", "share of examples", ".1%")


def named(line: L) -> L:
    """Return a line whose attribution is marked where its rationales have sizes of their own."""
    return replace(line, attribution=_own_size_name(line.attribution)) if line.k is None else line


def _own_size_name(attribution: str) -> str:
    return f"{attribution} (own size)"


class _Setting(NamedTuple):
    k: Share | None
    direction: Direction
    null: str

    def __str__(self) -> str:
        size = "own sizes" if self.k is None else f"k = {share(self.k)}"
        return f"{size}, {self.direction}" + ("" if self.null == SIZE else f", null: {self.null}")

    def lines(self, folder: RunFolder) -> Iterator[ExampleOutcome]:
        """Yield the examples of a run in this setting; those that failed are skipped."""
        return (named(line) for line in folder.examples() if line.error is None and self.holds(line))

    def holds(self, line: SummaryLine | ExampleOutcome) -> bool:
        """True for lines of this setting; rationales with sizes of their own are of any k."""
        return line.k in (self.k, None) and (line.direction, line.null) == (self.direction, self.null)


@dataclass(frozen=True)
class PlottedExamples:
    """The examples of one run at one k, direction and null."""

    folder: RunFolder
    setting: _Setting
    columns: Mapping[tuple[str, str], Mapping[str, Values]]

    @property
    def n_bins(self) -> int:
        """Number of bins of a histogram: few random sets allow few win rates, so narrow bins would show gaps."""
        return 20 if max(columns["m"].max() for columns in self.columns.values()) >= 40 else 10

    def values(self, cell: tuple[str, str], name: str) -> Values:
        found = self.columns[cell][name]
        return found[~np.isnan(found)]


def examples_of(folder: RunFolder, configurations: Sequence[SummaryLine]) -> PlottedExamples | None:
    """Return the examples at k = 0.2 where the run has it, else at its first k; under its first direction and null."""
    # Rationales that have a size of their own are included whatever k.
    sizes = [line.k for line in configurations if line.k is not None]
    k = USUAL_K if USUAL_K in sizes else next(iter(sizes), None)
    setting = _Setting(k, configurations[0].direction, configurations[0].null)
    found: dict[tuple[str, str], dict[str, array[float]]] = {
        (line.attribution, line.operator): {name: array("d") for name in _FIELDS}
        for line in configurations
        if setting.holds(line)
    }
    for line in setting.lines(folder):
        for name, values in found[line.attribution, line.operator].items():
            value = getattr(line, name)
            values.append(np.nan if value is None else value)
    columns = {
        cell: {name: np.array(values) for name, values in gathered.items()}
        for cell, gathered in found.items()
        if gathered["m"]
    }
    return PlottedExamples(folder, setting, columns) if columns else None


_DISTRIBUTION_CAPTION = (
    "Share of examples by win rate; the tick at the top is their mean, the line chance (50 %). A mean near chance can "
    "hide two camps. Win rates of single examples are coarse (steps of 1/m); one on a limit is drawn left of it."
)


def distribution(examples: PlottedExamples) -> Figure:
    """Draw a histogram of win rates for every attribution and operator."""
    n_bins = examples.n_bins
    rows: list[dict[str, Any]] = []
    for attribution, operator in examples.columns:
        place = {"row": attribution, "column": operator, "operator": operator}
        rates = examples.values((attribution, operator), "win_rate")
        for index, found in enumerate(shares(rates, n_bins)):
            if found > 0:
                rows.append({**place, **_bin(index, n_bins), "share": round(float(found), 6)})
        rows.append({**place, "mean": float(rates.mean())})
    axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], grid=False)
    shown = tooltips(("from:Q", "win rate from", ".0%"), ("to:Q", "", ".0%"), _SHARE)
    histogram = _histogram(alt.Chart().encode(x2="to:Q", tooltip=shown), rows, "win rate", axis)
    mean = (
        alt.Chart()
        .mark_rule(style=INK, strokeWidth=2)
        .encode(x=alt.X("mean:Q", scale=_RATES), y=alt.value(0), y2=alt.value(12))
    )
    chart = panels([histogram, line_at(CHANCE, "x", _RATES), mean], rows, width=130, height=70)
    title = f"Win rates of single examples ({examples.setting})"
    return Figure("win-rate-distribution", title, _DISTRIBUTION_CAPTION, chart)


def _histogram(base: alt.Chart, rows: Rows, title: str, axis: alt.Axis) -> alt.Chart:
    """Draw bars from `from` to `to` as high as `share`, in the colour of the operator."""
    bars: alt.Chart = base.mark_bar(binSpacing=1).encode(
        x=alt.X("from:Q", title=title, bin="binned", scale=_RATES, axis=axis),
        y=alt.Y("share:Q", title="share", axis=alt.Axis(format=".0%", tickCount=3)),
        color=operator_colours(rows).legend(None),
    )
    return bars


def _bin(index: int, n_bins: int) -> dict[str, float]:
    return {"from": index / n_bins, "to": (index + 1) / n_bins}


LIMIT = 4.0
"""Largest effect size drawn: a null with next to no spread makes effect sizes arbitrarily large."""
_QUANTILES = {"low": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 0.95}
_EFFECTS_CAPTION = (
    "Effect size of single examples, in standard deviations of their random sets: median (dot), middle half (thick) "
    f"and middle 90 % (thin). The axis ends at ±{LIMIT:g}; the text beside a row says how many lie beyond, and "
    "for how many no effect size exists. This is spread over examples, not uncertainty of the median."
)


def effects(examples: PlottedExamples) -> Figure | None:
    """Draw quantiles of effect sizes for every attribution and operator."""
    rows = [_effects_row(examples, cell) for cell in examples.columns]
    rows = [row for row in rows if row["median"] is not None]
    if not rows:
        return None
    scale = alt.Scale(domain=[-LIMIT, LIMIT])
    base = alt.Chart().encode(
        y=alt.Y("attribution:N", title=None, sort=in_order([row["attribution"] for row in rows])),
        yOffset=alt.YOffset("operator:N", sort=in_order([row["operator"] for row in rows])),
        color=operator_colours(rows),
        tooltip=tooltips(
            "attribution:N",
            "operator:N",
            *((f"{name}:Q", f"{level:.0%} below", "+.2f") for name, level in _QUANTILES.items()),
            ("beyond:N", "not drawn"),
        ),
    )
    thin = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low_drawn:Q", scale=scale), x2="high_drawn:Q")
    thick = base.mark_rule(strokeWidth=5).encode(x=alt.X("lower_drawn:Q", scale=scale), x2="upper_drawn:Q")
    median = base.mark_point(filled=True, opacity=1, size=70, stroke="#ffffff", strokeWidth=1.5).encode(
        x=alt.X("median_drawn:Q", title="effect size", scale=scale)
    )
    beyond = base.mark_text(align="left", dx=6, style=FAINT).encode(x=alt.value("width"), text="beyond:N")
    chart = panels([line_at(0, "x", scale), thin, thick, median, beyond], rows, width=320, height=alt.Step(14))
    return Figure("effect-sizes", f"Effect sizes of single examples ({examples.setting})", _EFFECTS_CAPTION, chart)


def _effects_row(examples: PlottedExamples, cell: tuple[str, str]) -> dict[str, Any]:
    sizes = examples.values(cell, "effect_size")
    found = dict(zip(_QUANTILES, quantiles(sizes, list(_QUANTILES.values())), strict=True))
    drawn = {f"{name}_drawn": None if q is None else float(np.clip(q, -LIMIT, LIMIT)) for name, q in found.items()}
    outside, undefined = int((np.abs(sizes) > LIMIT).sum()), examples.columns[cell]["m"].size - sizes.size
    said = [f"{outside} beyond ±{LIMIT:g}"] if outside else []
    said += [f"{undefined} undefined"] if undefined else []
    place = {"row": "", "column": "", "attribution": cell[0], "operator": cell[1]}
    return {**place, **found, **drawn, "beyond": ", ".join(said)}


_CHANCE = (
    "The steps are what an explanation no better than random would give: even, but for the few values that m random "
    "sets allow."
)
_NO_CHANCE = (
    "Each example took as many random sets as its tests needed, so that no steps show what chance would give: which "
    "p-values are likely depends on when a test stops."
)
_READING = (
    "A peak at 0 speaks for the rationale, one at 1 against it; ties push p-values up. No bin says which examples are "
    "significant after correction."
)


def p_values(examples: PlottedExamples) -> Figure:
    """Draw a histogram of p-values for every attribution and operator, beside that of chance where it is known."""
    n_bins = examples.n_bins
    is_known = examples.folder.manifest().config.adaptive != "examples"
    rows: list[dict[str, Any]] = []
    for attribution, operator in examples.columns:
        found = shares(examples.values((attribution, operator), "p_value"), n_bins)
        by_chance = shares_by_chance(examples.values((attribution, operator), "m"), n_bins)
        for index, (seen, expected) in enumerate(zip(found, by_chance, strict=True)):
            place = {"row": attribution, "column": operator, "operator": operator}
            chance = {"chance": round(float(expected), 6)} if is_known else {}
            rows.append({**place, **_bin(index, n_bins), "share": round(float(seen), 6), **chance})
    shown = tooltips(("from:Q", "p-value from", ".2f"), ("to:Q", "", ".2f"), _SHARE)
    base = alt.Chart().encode(
        x2="to:Q", tooltip=[*shown, *(tooltips(("chance:Q", "by chance", ".1%")) if is_known else [])]
    )
    axis = alt.Axis(format="~g", values=[0, 0.5, 1], grid=False)
    bars = _histogram(base, rows, "p-value", axis)
    steps = base.mark_rule(style=INK, strokeWidth=1.5).encode(x=alt.X("from:Q", scale=_RATES), y="chance:Q")
    chart = panels([bars, steps] if is_known else [bars], rows, width=130, height=70)
    caption = f"Share of examples by p-value (upper tail). {_CHANCE if is_known else _NO_CHANCE} {_READING}"
    return Figure("p-values", f"P-values of single examples ({examples.setting})", caption, chart)


def plausibility(examples: PlottedExamples) -> Figure | None:
    """Draw overlap with human rationales against win rates; None where the data have no human rationales."""
    folder = examples.folder
    inputs = ((row, marks_of(row)) for part in folder.parts() for row in folder.inputs(part) if row.human)
    known = {row.example_id: (marks, row.group) for row, marks in inputs if tells_units_apart(marks)}
    if not known:
        return None
    rows = [
        Plausibility(
            model=line.attribution,
            operator=line.operator,
            overlap=iou(line.rationale, known[line.example_id][0]),
            win_rate=line.win_rate,
            group=known[line.example_id][1],
        )
        for line in examples.setting.lines(folder)
        if line.example_id in known and line.attribution != _own_size_name(HUMAN) and line.operator != ALL
    ]
    if not rows:
        return None
    cells = list(examples.columns)
    rows.sort(key=lambda row: cells.index((row.model, row.operator)))
    drawn = plausibility_scatter(rows)
    return replace(drawn, title=f"{drawn.title} ({examples.setting})")
