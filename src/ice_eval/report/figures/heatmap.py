"""Win rates as a table of coloured cells."""

from typing import NamedTuple

import altair as alt

from ice_eval.report.colours import TAXONOMY_COLOURS, TEXT_COLOURS, UNKNOWN_COLOUR
from ice_eval.report.figures._base import Chart, Figure, Rows, in_order, panels
from ice_eval.report.figures._runs import Runs, placed
from ice_eval.report.tables import word_of_rate
from ice_eval.results import SummaryLine
from ice_eval.stats import taxonomy

UNKNOWN, NO_VERDICT = "no win rate", "undetermined"
_WHITE = "#ffffff"

_CAPTION = (
    "Mean win rate in percent, coloured by the word for it; 50 is chance. What cannot be told from chance has the "
    "colour of near-random, and what rests on too few examples is grey. Else the colour is that of the point estimate: "
    "whether its interval allows the word is in the table."
)


def heatmap(runs: Runs) -> Figure | None:
    """Models by tasks where there are several runs, else attributions by operators."""
    lines = runs.configurations
    n_models, n_tasks = (len({getattr(line, name) for line in lines}) for name in ("model", "task"))
    x, y, row, column = _axes(several_models=n_models > 1, several_tasks=n_tasks > 1)
    rows = [
        {"x": str(getattr(line, x)), "y": str(getattr(line, y)), **place, **_judged(line)}
        for line, place in zip(lines, placed(lines, row=row, column=column), strict=True)
    ]
    return Figure("win-rate-heatmap", "Win rates", _CAPTION, coloured_cells(rows, x=x, y=y))


def _judged(line: SummaryLine) -> dict[str, object]:
    """The cell of a configuration: unlike a published number, it has a verdict that its colour must not contradict."""
    shown = cell(line.win_rate)
    if line.win_rate is None:
        return shown
    return {**shown, "word": word_of_rate(line.win_rate, line.verdict) or NO_VERDICT}


class _Axes(NamedTuple):
    x: str
    y: str
    row: tuple[str, ...]
    column: tuple[str, ...]


def _axes(*, several_models: bool, several_tasks: bool) -> _Axes:
    if several_models and several_tasks:
        return _Axes("task", "model", ("attribution", "direction", "null", "k"), ("operator",))
    if several_models or several_tasks:
        return _Axes("operator", "model" if several_models else "task", ("attribution", "direction", "null"), ("k",))
    return _Axes("operator", "attribution", ("direction", "null"), ("k",))


def cell(win_rate: float | None) -> dict[str, object]:
    """What a cell shows; a win rate that round-off has moved off a limit has the word of the limit."""
    if win_rate is None:
        return {"win_rate": None, "word": UNKNOWN, "text": "–"}
    return {"win_rate": win_rate, "word": taxonomy(win_rate), "text": f"{100 * win_rate:.1f}"}


def coloured_cells(rows: Rows, *, x: str, y: str) -> Chart:
    """Cells at `x` and `y`, which mean what the arguments say, coloured by `word`, with their `text`, in panels."""
    words = [*TAXONOMY_COLOURS, NO_VERDICT, UNKNOWN]
    shown = [word for word in words if any(row["word"] == word for row in rows)]
    fills = {str(word): fill for word, fill in TAXONOMY_COLOURS.items()}
    fills |= {NO_VERDICT: UNKNOWN_COLOUR, UNKNOWN: UNKNOWN_COLOUR}
    base = alt.Chart().encode(
        x=alt.X(
            "x:N",
            title=None,
            sort=in_order([row["x"] for row in rows]),
            axis=alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False),
        ),
        y=alt.Y("y:N", title=None, sort=in_order([row["y"] for row in rows]), axis=alt.Axis(domain=False, ticks=False)),
        opacity=alt.condition("datum.hole", alt.value(0), alt.value(1)),
        tooltip=[
            alt.Tooltip("y:N", title=y),
            alt.Tooltip("x:N", title=x),
            alt.Tooltip("win_rate:Q", title="win rate", format=".1%"),
            alt.Tooltip("word:N", title="word"),
        ],
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "word:N",
            title=None,
            scale=alt.Scale(domain=shown, range=[fills[word] for word in shown]),
            legend=alt.Legend(orient="bottom", symbolType="square"),
        )
    )
    on_dark = [word for word in TEXT_COLOURS if TEXT_COLOURS[word] == _WHITE]
    texts = base.mark_text(baseline="middle").encode(
        text="text:N",
        color=alt.condition(
            alt.FieldOneOfPredicate(field="word", oneOf=on_dark), alt.value(_WHITE), alt.value("#1c1c1c")
        ),
    )
    return panels([cells, texts], rows, width=alt.Step(72), height=alt.Step(26))
