"""What a figure is, how it looks on paper and on screens, and the pieces that several figures share."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from ice_eval.errors import ConfigError

Chart = alt.Chart | alt.LayerChart | alt.FacetChart
Theme = Literal["light", "dark", "print"]
Rows = Sequence[Mapping[str, Any]]
"""The data of a figure: plain values only, aggregated before they get here."""


@dataclass(frozen=True)
class Figure:
    """One specification, for the page and for paper."""

    name: str
    """Unique among the figures of a report; files are named after it."""
    title: str
    caption: str
    """How to read it, and what it does not say."""
    chart: Chart
    """Without colours of text and lines: they come with a theme, so that the same chart fits a dark page."""

    def spec(self, theme_name: Theme = "light") -> dict[str, Any]:
        """The Vega-Lite specification, checked against its schema."""
        return {**self.chart.to_dict(), "config": theme(theme_name)}


_INKS: Mapping[str, tuple[str, str, str]] = {
    # text, lines that carry the eye, background
    "light": ("#1c1c1c", "#8a8a8a", "transparent"),
    "dark": ("#ececec", "#8f8f8f", "transparent"),
    "print": ("#000000", "#707070", "#ffffff"),
}


def theme(name: Theme) -> dict[str, Any]:
    """The Vega-Lite configuration of a theme, to be passed beside a specification or put into it.

    Raises:
        ConfigError: There is no theme of that name.
    """
    if name not in _INKS:
        raise ConfigError(f"no theme '{name}'; use {', '.join(_INKS)}.")
    text, line, background = _INKS[name]
    return {
        "background": background,
        "font": "Helvetica, Arial, 'Liberation Sans', sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelLimit": 0,
            "titleLimit": 0,
            "domainColor": line,
            "tickColor": line,
            "gridColor": line,
            "gridOpacity": 0.25,
        },
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelLimit": 0,
            "symbolOpacity": 1,
        },
        "header": {"labelColor": text, "titleColor": text, "labelFontSize": 11, "labelLimit": 0},
        "text": {"color": text, "fontSize": 11},
        "rule": {"color": line},
        "tick": {"color": text},
        "title": {"color": text, "fontSize": 13, "anchor": "start"},
    }


def rows_of(values: Rows) -> alt.InlineData:
    """Rows as they stand in the specification."""
    return alt.InlineData(values=[dict(row) for row in values])


def in_order(values: Sequence[str]) -> list[str]:
    """Each value once, where it first appears."""
    return list(dict.fromkeys(values))


def panels(layers: Sequence[alt.Chart], values: Rows, **size: Any) -> Chart:
    """The layers over the rows, in a grid of panels by their fields `row` and `column` where these differ.

    Vega-Lite shifts the panels of a grid with holes, so that marks stand under the wrong header. A hole is filled with
    a row of labels without numbers, which draws nothing where numbers are drawn; its field `hole` tells it.
    """
    rows, columns = (in_order([str(value[name]) for value in values]) for name in ("row", "column"))
    holes = set(itertools.product(rows, columns)) - {(value["row"], value["column"]) for value in values}
    nothing = {name: value if isinstance(value, str) else None for name, value in values[0].items()}
    filled = [*values, *({**nothing, "row": row, "column": column, "hole": True} for row, column in sorted(holes))]
    chart: alt.LayerChart = alt.layer(*layers, data=rows_of(filled)).properties(**size)
    grid: dict[str, Any] = {}
    if len(rows) > 1:
        header = alt.Header(title=None, labelAngle=0, labelAlign="left", labelOrient="left")
        grid["row"] = alt.Row("row:N", sort=rows, header=header)
    if len(columns) > 1:
        grid["column"] = alt.Column("column:N", sort=columns, header=alt.Header(title=None))
    if not grid:
        return chart
    faceted: alt.FacetChart = chart.facet(**grid)
    return faceted


def lines_at(rates: Sequence[float], *, axis: Literal["x", "y"]) -> alt.Chart:
    """Dashed lines across a panel, whatever its data."""
    channel = {"x": alt.X, "y": alt.Y}[axis]
    drawn = alt.Chart(rows_of([{"at": rate} for rate in rates])).mark_rule(strokeDash=[3, 3])
    return drawn.encode(**{axis: channel("at:Q")})
