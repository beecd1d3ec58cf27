"""How the win rate moves with the size of the rationale."""

import altair as alt

from ice_eval.report.figures._base import (
    Figure,
    chance_and_threshold,
    end_tooltips,
    ends,
    operator_colours,
    operator_shapes,
    panels,
    rate_scale,
    share_axis,
)
from ice_eval.report.figures._runs import Runs, placed
from ice_eval.results.outcomes import ALL

_CAPTION = (
    "Mean win rate against the share k of units that a rationale keeps, with 95 % bands; the line marks chance (50 %), "
    "the dashed one 55 %. All points rest on the same examples, so a curve is smoother than its bands suggest."
)


def k_sweep(runs: Runs) -> Figure | None:
    """A curve for every operator; needs two k."""
    lines = [
        line
        for line in runs.configurations
        if line.win_rate is not None and isinstance(line.k, float) and line.operator != ALL
    ]
    sizes = sorted({line.k for line in lines if isinstance(line.k, float)})
    if len(sizes) < 2:
        return None
    places = placed(lines, row=("model", "task", "direction", "null"), column=("attribution",))
    rows = [
        {
            "operator": line.operator,
            "k": line.k,
            "win_rate": line.win_rate,
            **ends(line.win_rate_ci),
            **place,
        }
        for line, place in zip(lines, places, strict=True)
    ]
    base = alt.Chart().encode(
        x=share_axis("k:Q", sizes, title="k", margin=0.05 * (sizes[-1] - sizes[0])),
        color=operator_colours(rows),
    )
    scale = rate_scale(rows)
    win_rate = alt.Y("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%"))
    bands = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    curves = base.mark_line(strokeWidth=1.5).encode(y=win_rate)
    dots = base.mark_point(filled=True, opacity=1, size=45).encode(
        y=win_rate,
        shape=operator_shapes(rows),
        tooltip=[
            alt.Tooltip("operator:N"),
            alt.Tooltip("k:Q"),
            alt.Tooltip("win_rate:Q", title="win rate", format=".1%"),
            *end_tooltips(".1%"),
        ],
    )
    chart = panels([*chance_and_threshold("y", scale), bands, curves, dots], rows, width=170, height=150)
    return Figure("k-sweep", "Win rate against the size of the rationale", _CAPTION, chart)
