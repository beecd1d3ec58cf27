"""How strong the effects on single examples are."""

from typing import Any

import altair as alt
import numpy as np

from ice_eval.report.figures._base import FAINT, Figure, in_order, line_at, operator_colours, panels
from ice_eval.report.figures._examples import Examples

LIMIT = 4.0
"""Largest effect size drawn: a null with next to no spread makes effect sizes arbitrarily large."""
_QUANTILES = {"low": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "high": 0.95}

_CAPTION = (
    "Effect size of single examples, in standard deviations of their random sets: median (dot), middle half (thick) "
    f"and middle 90 % (thin). The axis ends at ±{LIMIT:g}; the text beside a row says how many lie beyond, and "
    "for how many no effect size exists. This is spread over examples, not uncertainty of the median."
)


def effects(examples: Examples) -> Figure | None:
    """Quantiles for every attribution and operator."""
    rows = [_row(examples, cell) for cell in examples.cells]
    rows = [row for row in rows if row["median"] is not None]
    if not rows:
        return None
    scale = alt.Scale(domain=[-LIMIT, LIMIT])
    base = alt.Chart().encode(
        y=alt.Y("attribution:N", title=None, sort=in_order([row["attribution"] for row in rows])),
        yOffset=alt.YOffset("operator:N", sort=in_order([row["operator"] for row in rows])),
        color=operator_colours(rows),
        tooltip=[
            alt.Tooltip("attribution:N"),
            alt.Tooltip("operator:N"),
            *(
                alt.Tooltip(f"{name}:Q", title=f"{share:.0%} below", format="+.2f")
                for name, share in _QUANTILES.items()
            ),
            alt.Tooltip("beyond:N", title="not drawn"),
        ],
    )
    thin = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low_drawn:Q", scale=scale), x2="high_drawn:Q")
    thick = base.mark_rule(strokeWidth=5).encode(x=alt.X("lower_drawn:Q", scale=scale), x2="upper_drawn:Q")
    median = base.mark_point(filled=True, opacity=1, size=70, stroke="#ffffff", strokeWidth=1.5).encode(
        x=alt.X("median_drawn:Q", title="effect size", scale=scale)
    )
    beyond = base.mark_text(align="left", dx=6, style=FAINT).encode(x=alt.value("width"), text="beyond:N")
    chart = panels([line_at(0, "x", scale), thin, thick, median, beyond], rows, width=320, height=alt.Step(14))
    return Figure("effect-sizes", f"Effect sizes of single examples ({examples.setting})", _CAPTION, chart)


def _row(examples: Examples, cell: tuple[str, str]) -> dict[str, Any]:
    sizes = examples.column(cell, "effect_size")
    quantiles = dict.fromkeys(_QUANTILES)
    if sizes.size:
        quantiles = dict(zip(_QUANTILES, np.quantile(sizes, list(_QUANTILES.values())).tolist(), strict=True))
    drawn = {f"{name}_drawn": None if q is None else float(np.clip(q, -LIMIT, LIMIT)) for name, q in quantiles.items()}
    outside, undefined = int((np.abs(sizes) > LIMIT).sum()), examples.count(cell) - sizes.size
    said = [f"{outside} beyond ±{LIMIT:g}"] if outside else []
    said += [f"{undefined} undefined"] if undefined else []
    place = {"row": "", "column": "", "attribution": cell[0], "operator": cell[1]}
    return {**place, **quantiles, **drawn, "beyond": ", ".join(said)}
