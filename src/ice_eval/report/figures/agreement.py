"""How far apart two operators lie, on the same examples."""

from typing import Any

import altair as alt

from ice_eval.report.figures._base import SHAPES, Figure, end_tooltips, ends, in_order, line_at, panels
from ice_eval.report.figures._runs import Runs, placed, subjects

_CAPTION = (
    "Mean win rate under the first operator less that under the second, over the same examples, with the paired 95 % "
    "interval; 0 is no gap. Colour and shape tell whether the two lie on opposite sides of 55 %: a gap may be large "
    "without that, and does not say which operator is right."
)
_POINTS = "datum.value == 0 ? '0' : format(100 * datum.value, '+.3~g')"
"""Percentage points, signed."""
_CROSSES = {"confirmed": "#b5400e", "possible": "#a87c00", "no": "#16857a"}


def agreement(runs: Runs) -> Figure | None:
    """The gap of every pair of operators; needs two."""
    lines = [line for line in runs.agreement if line.gap is not None]
    if not lines:
        return None
    places = placed(lines, row=("operators", *runs.aside, "direction", "null"), column=("k",))
    rows: list[dict[str, Any]] = [
        {
            "subject": subject,
            "gap": line.gap,
            **ends(line.gap_ci),
            "crosses": line.crosses_threshold,
            "operators": " − ".join(line.operators),
            **place,
        }
        for line, subject, place in zip(lines, subjects(runs, lines), places, strict=True)
    ]
    scale = alt.Scale(domain=list(_CROSSES), range=list(_CROSSES.values()))
    pairs = in_order([row["operators"] for row in rows])
    title = f"win rate, {pairs[0]} (points)" if len(pairs) == 1 else "difference of win rates (points)"
    base = alt.Chart().encode(
        x=alt.X("gap:Q", title=title, axis=alt.Axis(labelExpr=_POINTS, tickCount=5)),
        y=alt.Y("subject:N", title=None, sort=in_order([row["subject"] for row in rows])),
        color=alt.Color("crosses:N", title="crosses 55 %", scale=scale, legend=alt.Legend(orient="bottom")),
        tooltip=[
            alt.Tooltip("subject:N", title=" · ".join(runs.subject)),
            alt.Tooltip("operators:N"),
            alt.Tooltip("gap:Q", format="+.1%"),
            *end_tooltips("+.1%"),
            alt.Tooltip("crosses:N", title="crosses 55 %"),
        ],
    )
    intervals = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    shape = alt.Shape("crosses:N", title="crosses 55 %", scale=alt.Scale(domain=list(_CROSSES), range=SHAPES[:3]))
    dots = base.mark_point(filled=True, opacity=1, size=60).encode(shape=shape)
    chart = panels([line_at(0, "x", alt.Scale()), intervals, dots], rows, width=220, height=alt.Step(22))
    return Figure("operator-agreement", "Gap between operators", _CAPTION, chart)
