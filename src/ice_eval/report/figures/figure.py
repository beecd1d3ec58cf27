"""A figure, its themes and its files, and the parts that several figures share."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import altair as alt

from ice_eval.errors import ConfigError, require, without_controls
from ice_eval.files import write_atomically
from ice_eval.report.colours import BLACK, INKS, UNKNOWN_COLOUR, WHITE, WORD_COLOURS, operator_colour
from ice_eval.results.summary import CONTROL
from ice_eval.stats import CHANCE, WEAKLY_FAITHFUL, taxonomy
from ice_eval.table import EMPTY

Chart = alt.Chart | alt.LayerChart | alt.FacetChart
Theme = Literal["light", "dark", "print"]
Axis = Literal["x", "y"]
Rows = Sequence[Mapping[str, Any]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
PALETTE = ["#0072b2", "#c44e00", "#4d7c2e", "#8462b0", "#a87c00", "#a65f8f", "#707070"]
"""Colours of tasks, prompts and runs."""
INK, FAINT = "ink", "faint"
"""Styles of marks in the theme's colour of text, or of lines."""
DOT: dict[str, Any] = {"filled": True, "opacity": 1}
UNIT = alt.Scale(domain=[0, 1])
_DOTS_PER_INCH = 300
_KINDS = ("svg", "pdf", "png")
_NO_XML = str.maketrans(dict.fromkeys("\ufffe\uffff", "\ufffd"))


@dataclass(frozen=True)
class Figure:
    """One specification, for the page and for paper."""

    name: str
    """Unique name among the figures of a report, also of its files."""
    title: str
    caption: str
    chart: Chart
    """Chart without colours of text and lines: the theme sets them, so that the same chart fits a dark page."""

    def plot(self) -> Chart:
        """Return the chart with the colours of a light page, for notebooks."""
        spec = {**self.spec(), "title": self.title}
        kind = alt.LayerChart if "layer" in spec else alt.FacetChart if "facet" in spec else alt.Chart
        return cast(Chart, cast(Any, kind).from_dict(spec))

    def spec(self, theme_name: Theme = "light") -> dict[str, Any]:
        """Return the Vega-Lite specification, checked against its schema."""
        return {**_drawable(self.chart.to_dict()), "config": theme(theme_name)}


def _drawable(part: Any) -> Any:
    """Return a part of a specification without characters that SVG cannot hold: they crash the converter."""
    if isinstance(part, str):
        return without_controls(part).translate(_NO_XML)
    if isinstance(part, dict):
        return {name: _drawable(each) for name, each in part.items()}
    return [_drawable(each) for each in part] if isinstance(part, list) else part


_INKS: Mapping[str, tuple[str, str, str]] = {
    # text, lines that carry the eye, background
    "light": ("#1c1c1c", "#8a8a8a", "transparent"),
    "dark": ("#ececec", "#8f8f8f", "transparent"),
    "print": ("#000000", "#707070", "#ffffff"),
}


def theme(name: Theme) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a theme, to be passed beside a specification or put into it."""
    if name not in _INKS:
        raise ConfigError(f"no theme '{name}'; use {', '.join(_INKS)}.")
    text, line, background = _INKS[name]
    labels = {"labelColor": text, "titleColor": text, "labelFontSize": 11, "labelLimit": 0}
    words = {**labels, "titleFontSize": 11, "titleFontWeight": "normal"}
    axis = {"titleLimit": 0, "domainColor": line, "tickColor": line, "gridColor": line, "gridOpacity": 0.25}
    return {
        "background": background,
        "font": "Helvetica, Arial, 'Liberation Sans', sans-serif",
        "view": {"stroke": None},
        "axis": {**words, **axis},
        "legend": {**words, "symbolOpacity": 1},
        "header": labels,
        "text": {"color": text, "fontSize": 11},
        "rule": {"color": line},
        "tick": {"color": text},
        "title": {"color": text, "fontSize": 13, "anchor": "start"},
        "style": {INK: {"color": text}, FAINT: {"color": line}},
    }


@dataclass(frozen=True)
class FigureFiles:
    """A figure and the paths of its files."""

    figure: Figure
    paths: tuple[Path, ...]


def write_figures(figures: Sequence[Figure], folder: Path, *, theme: Theme = "print") -> list[FigureFiles]:
    """Write every figure as SVG, PDF and PNG, named after it.

    Raises:
        ConfigError: The folder cannot be written.
        MissingExtraError: vl-convert is not installed.
    """
    # All are drawn before the first is written, so a figure that cannot be drawn leaves no half of a set.
    converter = require("vl_convert", install="vl-convert-python", purpose="to write figures to files")
    drawn: dict[Path, bytes] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            spec = figure.spec(theme)
            svg, pdf = converter.vegalite_to_svg(spec).encode("utf-8"), converter.vegalite_to_pdf(spec)
            files = (svg, pdf, converter.vegalite_to_png(spec, ppi=_DOTS_PER_INCH))
            drawn |= {folder / f"{figure.name}.{kind}": content for kind, content in zip(_KINDS, files, strict=True)}
        for path, content in drawn.items():
            with write_atomically(path) as stream:
                stream.write(content)
    except OSError as exc:
        raise ConfigError(f"figures cannot be written to {folder}: {exc.strerror}.") from exc
    return [FigureFiles(each, tuple(folder / f"{each.name}.{kind}" for kind in _KINDS)) for each in figures]


def distinct(rows: Rows, field: str) -> list[str]:
    """Return each value of a field once, in order of first appearance."""
    return list(dict.fromkeys(str(row[field]) for row in rows))


def panels(layers: Sequence[alt.Chart], values: Rows, **size: Any) -> Chart:
    """Return the layers over the rows, in a grid of panels by their fields `row` and `column`, if any differ."""
    # Vega-Lite shifts the panels of a grid with holes, so that marks appear under the wrong header. A hole is filled
    # with a row of labels without numbers, which draws nothing where numbers are drawn; its field `hole` marks it.
    values = [{"row": "", "column": "", **value} for value in values]
    rows, columns = distinct(values, "row"), distinct(values, "column")
    holes = set(itertools.product(rows, columns)) - {(value["row"], value["column"]) for value in values}
    nothing: dict[str, Any] = {name: value if isinstance(value, str) else None for name, value in values[0].items()}
    nothing |= {"text": "", "hole": True}
    filled = [*values, *({**nothing, "row": row, "column": column} for row, column in sorted(holes))]
    layered: Any = alt.layer(*layers, data=alt.InlineData(values=filled)).properties(**size)
    left = alt.Header(title=None, labelAngle=0, labelAlign="left", labelOrient="left")
    above = alt.Header(title=None, labelExpr="split(datum.label, '\\n')")
    grid: dict[str, Any] = {"row": alt.Row("row:N", sort=rows, header=left)} if len(rows) > 1 else {}
    grid |= {"column": alt.Column("column:N", sort=columns, header=above)} if len(columns) > 1 else {}
    chart: Chart = layered.facet(**grid) if grid else layered
    return chart


def colour_scale(names: Sequence[str]) -> alt.Scale:
    """Return a colour scale for names without colours of their own; the palette repeats."""
    return alt.Scale(domain=list(names), range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])


def colours(rows: Rows, field: str = "operator") -> alt.Color:
    """Return the colours of a field; those of operators are the same in all figures."""
    names = distinct(rows, field)
    own = alt.Scale(domain=names, range=[operator_colour(name) for name in names])
    scale = own if field == "operator" else colour_scale(names)
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))


def greyed(rows: Rows, by: str = "operator") -> Any:
    """Return the colours of a field, for rows that say by `control` whether they are of the random control: grey."""
    return alt.condition("datum.control", alt.value(UNKNOWN_COLOUR), colours(rows, by))


def shapes(rows: Rows, field: str = "operator") -> alt.Shape:
    """Return the shapes of a field, for prints in grey."""
    return alt.Shape(f"{field}:N", title=None, scale=alt.Scale(domain=distinct(rows, field), range=SHAPES))


def chance_and_threshold(axis: Axis, scale: alt.Scale) -> list[alt.Chart]:
    """Return a line at 50 % and a dashed one at 55 %, across every panel."""
    return [line_at(CHANCE, axis, scale), line_at(WEAKLY_FAITHFUL, axis, scale, strokeDash=[3, 3])]


def line_at(value: float, axis: Axis, scale: alt.Scale, **style: Any) -> alt.Chart:
    """Return a line across every panel, whatever its data."""
    # The scale is that of the other layers: where one has none, Vega-Lite stretches the axis of all of them to 0.
    drawn: Any = alt.Chart(alt.InlineData(values=[{"at": value}])).mark_rule(**style)
    found: alt.Chart = drawn.encode(**{axis: at(axis, "at:Q", scale)})
    return found


def low_to_high(drawn: Any, axis: Axis, scale: alt.Scale) -> alt.Chart:
    """Return marks that reach from `low` to `high` along an axis: intervals, or bands."""
    found: alt.Chart = drawn.encode(**{axis: at(axis, "low:Q", scale), f"{axis}2": "high:Q"})
    return found


def at(axis: Axis, field: str, scale: alt.Scale) -> alt.X | alt.Y:
    return alt.X(field, scale=scale) if axis == "x" else alt.Y(field, scale=scale)


def joined_dots(rows: Rows, by: str, *, size: int, tooltip: Any = alt.Undefined) -> list[alt.Chart]:
    """Return the win rate of every `subject` as dots with intervals, one for each `by`, and a line that joins them."""
    scale = rate_scale(rows)
    base = subjects(rows, by, scale, tooltip)
    coloured = base.encode(color=greyed(rows, by))
    return [
        *chance_and_threshold("x", scale),
        base.mark_line(style=FAINT, strokeWidth=1).encode(detail="subject:N"),
        low_to_high(coloured.mark_rule(strokeWidth=2), "x", scale),
        coloured.mark_point(**DOT, size=size).encode(shape=shapes(rows, by)),
    ]


def subjects(rows: Rows, by: str, scale: alt.Scale, tooltip: Any) -> alt.Chart:
    """Return a chart with win rates across, and subjects down; those of one subject are side by side."""
    return alt.Chart().encode(
        x=alt.X("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%")),
        y=alt.Y("subject:N", title=None, sort=distinct(rows, "subject")),
        yOffset=alt.YOffset(f"{by}:N", sort=distinct(rows, by)),
        tooltip=tooltip,
    )


def rate_scale(rows: Rows) -> alt.Scale:
    """Return a scale from a round number below all win rates, intervals, chance and threshold to one above."""
    rates = [row[name] for row in rows for name in ("win_rate", "low", "high") if row[name] is not None]
    rates += [CHANCE, WEAKLY_FAITHFUL]
    return alt.Scale(domain=[math.floor(10 * min(rates)) / 10, math.ceil(10 * max(rates)) / 10], nice=False)


def ends(interval: Sequence[float] | None) -> dict[str, Any]:
    return dict(zip(("low", "high"), interval or (None, None), strict=True))


def end_tooltips(number_format: str) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    return ("low:Q", "95 % from", number_format), ("high:Q", "to", number_format)


def tooltips(*fields: str | tuple[str, ...]) -> list[alt.Tooltip]:
    """Return tooltips of some fields: a shorthand, or with title and format; an empty title is the field's name."""
    found = []
    for name, *more in ((field,) if isinstance(field, str) else field for field in fields):
        options: dict[str, Any] = {key: value for key, value in zip(("title", "format"), more, strict=False) if value}
        found.append(alt.Tooltip(name, **options))
    return found


def share_axis(field: str, shares: Sequence[float], *, title: str, margin: float) -> alt.X:
    """Return an axis of shares of units, with a tick at each value and a margin at the ends."""
    scale = alt.Scale(domain=[shares[0] - margin, shares[-1] + margin], nice=False)
    return alt.X(field, title=title, scale=scale, axis=alt.Axis(values=list(shares), format="~g", grid=False))


UNKNOWN, NO_VERDICT = "no win rate", "undetermined"


def grey_name(attribution: str) -> str:
    """Return the name of a grey cell: that of the random control, or of a win rate without a verdict."""
    return CONTROL if attribution == CONTROL else NO_VERDICT


def cell(win_rate: float | None, word: str | None = None) -> dict[str, object]:
    """Return the content of a cell, coloured by the word of its verdict; a published number has that of its value."""
    if win_rate is None:
        return {"win_rate": None, "word": UNKNOWN, "text": EMPTY}
    return {"win_rate": win_rate, "word": word or taxonomy(win_rate), "text": f"{100 * win_rate:.1f}"}


def coloured_cells(rows: Rows, *, x: str, y: str) -> Chart:
    """Draw cells at `x` and `y`, coloured by `word`, with their `text`, in panels; arguments name the axes."""
    grey = (CONTROL, NO_VERDICT, UNKNOWN)
    fills: dict[str | None, str] = {**WORD_COLOURS, **{name: UNKNOWN_COLOUR for name in grey}}
    shown = [word for word in fills if any(row["word"] == word for row in rows)]
    top = alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False)
    base = alt.Chart().encode(
        x=alt.X("x:N", title=None, sort=distinct(rows, "x"), axis=top),
        y=alt.Y("y:N", title=None, sort=distinct(rows, "y"), axis=alt.Axis(domain=False, ticks=False)),
        opacity=alt.condition("datum.hole", alt.value(0), alt.value(1)),
        tooltip=tooltips(("y:N", y), ("x:N", x), ("win_rate:Q", "win rate", ".1%"), ("word:N", "word")),
    )
    scale = alt.Scale(domain=shown, range=[fills[word] for word in shown])
    legend = alt.Legend(orient="bottom", symbolType="square")
    cells = base.mark_rect().encode(color=alt.Color("word:N", title=None, scale=scale, legend=legend))
    on_dark = [word for word in WORD_COLOURS if word and INKS[word] == WHITE]
    ink = alt.condition(alt.FieldOneOfPredicate(field="word", oneOf=on_dark), alt.value(WHITE), alt.value(BLACK))
    texts = base.mark_text(baseline="middle").encode(text="text:N", color=ink)
    return panels([cells, texts], rows, width=alt.Step(72), height=alt.Step(26))
