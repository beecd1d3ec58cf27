"""What the operators say about the same thing, side by side: dots with intervals, and bars."""

from typing import Any

import altair as alt

from ice_eval.report.figures._base import (
    FAINT,
    INK,
    Figure,
    Rows,
    chance_and_threshold,
    end_tooltips,
    ends,
    in_order,
    operator_colours,
    operator_shapes,
    panels,
    rate_scale,
)
from ice_eval.report.figures._runs import Runs, placed, subjects
from ice_eval.results.outcomes import ALL

_ROW, _COLUMN = ("direction", "null"), ("k",)
_LINES = "The line marks chance (50 %), the dashed one the 55 % from which the paper speaks of faithfulness."

_DOTS_CAPTION = (
    f"Mean win rate under each operator with its 95 % interval; the grey line between the dots is the gap. {_LINES} "
    "Overlapping intervals do not mean that operators agree: the paired gap has an interval of its own."
)
_BARS_CAPTION = (
    f"Mean win rate under each operator, and under their average, with 95 % intervals. {_LINES} Bars start at 0, "
    "which no random explanation reaches."
)


def comparison(runs: Runs) -> Figure | None:
    """Paired dots; needs two operators."""
    rows = _rows(runs, average=False)
    if len({row["operator"] for row in rows}) < 2:
        return None
    scale = rate_scale(rows)
    base = _base(runs, rows, scale)
    gap = base.mark_line(style=FAINT, strokeWidth=1).encode(detail="subject:N")
    intervals = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", color=operator_colours(rows)
    )
    dots = base.mark_point(filled=True, opacity=1, size=60).encode(
        color=operator_colours(rows), shape=operator_shapes(rows)
    )
    layers = [*chance_and_threshold("x", scale), gap, intervals, dots]
    return Figure("operator-comparison", "Operators compared", _DOTS_CAPTION, panels(layers, rows, **_SIZE))


def bars(runs: Runs) -> Figure | None:
    """A bar for every operator and for their average."""
    rows = _rows(runs, average=True)
    if not rows:
        return None
    scale = alt.Scale(domain=[0, 1])
    base = _base(runs, rows, scale)
    drawn = base.mark_bar(opacity=0.75).encode(color=operator_colours(rows))
    intervals = base.mark_rule(style=INK).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    layers = [drawn, *chance_and_threshold("x", scale), intervals]
    return Figure("operator-bars", "Win rate by operator", _BARS_CAPTION, panels(layers, rows, **_SIZE))


_SIZE: dict[str, Any] = {"width": 220, "height": alt.Step(13)}


def _rows(runs: Runs, *, average: bool) -> list[dict[str, Any]]:
    lines = [line for line in runs.configurations if line.win_rate is not None and (average or line.operator != ALL)]
    places = placed(lines, row=(*runs.aside, *_ROW), column=_COLUMN)
    return [
        {
            "subject": subject,
            "operator": line.operator,
            "win_rate": line.win_rate,
            **ends(line.win_rate_ci),
            "verdict": str(line.verdict),
            **place,
        }
        for line, subject, place in zip(lines, subjects(runs, lines), places, strict=True)
    ]


def _base(runs: Runs, rows: Rows, scale: alt.Scale) -> alt.Chart:
    return alt.Chart().encode(
        x=alt.X("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%")),
        y=alt.Y("subject:N", title=None, sort=in_order([row["subject"] for row in rows])),
        yOffset=alt.YOffset("operator:N", sort=in_order([row["operator"] for row in rows])),
        tooltip=[
            alt.Tooltip("subject:N", title=" · ".join(runs.subject)),
            alt.Tooltip("operator:N"),
            alt.Tooltip("win_rate:Q", title="win rate", format=".1%"),
            *end_tooltips(".1%"),
            alt.Tooltip("verdict:N"),
        ],
    )
