"""The p-values of single examples beside what chance alone would give."""

from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from ice_eval.report.figures._base import INK, Figure, operator_colours, panels
from ice_eval.report.figures._examples import Examples, shares

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


def p_values(examples: Examples) -> Figure:
    """A histogram for every attribution and operator, with its null where that is known."""
    n_bins, known = examples.n_bins, not examples.sequential
    rows: list[dict[str, Any]] = []
    for attribution, operator in examples.cells:
        found = shares(examples.column((attribution, operator), "p_value"), n_bins)
        by_chance = _by_chance(examples.column((attribution, operator), "m"), n_bins)
        for index, (share, chance) in enumerate(zip(found, by_chance, strict=True)):
            rows.append(
                {
                    "row": attribution,
                    "column": operator,
                    "operator": operator,
                    "from": index / n_bins,
                    "to": (index + 1) / n_bins,
                    "share": round(float(share), 6),
                }
                | ({"chance": round(float(chance), 6)} if known else {})
            )
    scale = alt.Scale(domain=[0, 1])
    base = alt.Chart().encode(
        x2="to:Q",
        tooltip=[
            alt.Tooltip("from:Q", title="p-value from", format=".2f"),
            alt.Tooltip("to:Q", format=".2f"),
            alt.Tooltip("share:Q", title="share of examples", format=".1%"),
            *([alt.Tooltip("chance:Q", title="by chance", format=".1%")] if known else []),
        ],
    )
    bars = base.mark_bar(binSpacing=1).encode(
        x=alt.X("from:Q", title="p-value", bin="binned", scale=scale, axis=_AXIS),
        y=alt.Y("share:Q", title="share", axis=alt.Axis(format=".0%", tickCount=3)),
        color=operator_colours(rows).legend(None),
    )
    steps = base.mark_rule(style=INK, strokeWidth=1.5).encode(x=alt.X("from:Q", scale=scale), y="chance:Q")
    chart = panels([bars, steps] if known else [bars], rows, width=130, height=70)
    caption = f"Share of examples by p-value (upper tail). {_CHANCE if known else _NO_CHANCE} {_READING}"
    return Figure("p-values", f"P-values of single examples ({examples.setting})", caption, chart)


_AXIS = alt.Axis(format="~g", values=[0, 0.5, 1], grid=False)


def _by_chance(n_sets: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Expected shares where each of the m + 1 ranks is as likely as any other, averaged over the examples."""
    sizes, counts = np.unique(n_sets.astype(int), return_counts=True)
    expected = [count * shares(np.arange(1, m + 2) / (m + 1), n_bins) for m, count in zip(sizes, counts, strict=True)]
    mean: NDArray[np.float64] = np.sum(expected, axis=0) / counts.sum()
    return mean
