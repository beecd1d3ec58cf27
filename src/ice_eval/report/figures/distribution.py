"""How the win rates of single examples spread."""

from typing import Any

import altair as alt

from ice_eval.report.figures._base import INK, Figure, line_at, operator_colours, panels
from ice_eval.report.figures._examples import Examples, shares
from ice_eval.stats import CHANCE

_CAPTION = (
    "Share of examples by win rate; the tick at the top is their mean, the line chance (50 %). A mean near chance can "
    "hide two camps. Win rates of single examples are coarse (steps of 1/m); one on a limit is drawn left of it."
)


def distribution(examples: Examples) -> Figure:
    """A histogram for every attribution and operator."""
    n_bins = examples.n_bins
    rows: list[dict[str, Any]] = []
    for attribution, operator in examples.cells:
        place = {"row": attribution, "column": operator, "operator": operator}
        rates = examples.column((attribution, operator), "win_rate")
        for index, share in enumerate(shares(rates, n_bins)):
            if share > 0:
                bin_ = {"from": index / n_bins, "to": (index + 1) / n_bins, "share": round(float(share), 6)}
                rows.append({**place, **bin_})
        rows.append({**place, "mean": float(rates.mean())})
    histogram = (
        alt.Chart()
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("from:Q", title="win rate", bin="binned", scale=_SCALE, axis=_AXIS),
            x2="to:Q",
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format=".0%", tickCount=3)),
            color=operator_colours(rows).legend(None),
            tooltip=[
                alt.Tooltip("from:Q", title="win rate from", format=".0%"),
                alt.Tooltip("to:Q", format=".0%"),
                alt.Tooltip("share:Q", title="share of examples", format=".1%"),
            ],
        )
    )
    mean = (
        alt.Chart()
        .mark_rule(style=INK, strokeWidth=2)
        .encode(x=alt.X("mean:Q", scale=_SCALE), y=alt.value(0), y2=alt.value(12))
    )
    chart = panels([histogram, line_at(CHANCE, "x", _SCALE), mean], rows, width=130, height=70)
    title = f"Win rates of single examples ({examples.setting})"
    return Figure("win-rate-distribution", title, _CAPTION, chart)


_SCALE = alt.Scale(domain=[0, 1])
_AXIS = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], grid=False)
