"""Figures of tables: what `records.py` describes in, a figure out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np

from ice_eval.errors import DataError
from ice_eval.report.figures._base import (
    FAINT,
    INK,
    SHAPES,
    Chart,
    Figure,
    Rows,
    chance_and_threshold,
    in_order,
    line_at,
    panels,
    rate_scale,
)
from ice_eval.report.figures.heatmap import cell, coloured_cells
from ice_eval.report.figures.records import ChainOfThought, LanguageWinRate, Plausibility, PromptWinRate, WinRate
from ice_eval.stats import CHANCE

_COLOURS = ["#0072b2", "#c44e00", "#4d7c2e", "#8462b0", "#a87c00", "#a65f8f", "#707070"]


def win_rate_panels(rows: Iterable[WinRate]) -> Figure:
    """Models by data sets, a panel for every attribution (down) and operator (across)."""
    found = [
        {"x": row.dataset, "y": row.model, "row": row.attribution, "column": row.operator, **cell(row.win_rate)}
        for row in _given(rows)
    ]
    caption = (
        "Mean win rate in percent of every model on every data set, coloured by the word for it; 50 is chance. Cells "
        "carry no interval: neighbouring colours may not differ."
    )
    return Figure("win-rate-panels", "Win rates by attribution and operator", caption, _cells(found, "data set"))


def language_heatmap(rows: Iterable[LanguageWinRate]) -> Figure:
    """Models by languages, a panel for every operator."""
    found = [
        {"x": row.language, "y": row.model, "row": "", "column": row.operator, **cell(row.win_rate)}
        for row in _given(rows)
    ]
    caption = (
        "Mean win rate in percent of every model in every language; 50 is chance, grey means no valid result. "
        "Data sets differ between languages, so a column compares models, and a row does not compare languages."
    )
    return Figure("language-heatmap", "Win rates by language", caption, _cells(found, "language"))


def plausibility_scatter(rows: Iterable[Plausibility]) -> Figure:
    """Faithfulness against overlap with human rationales, a panel and a correlation for every model and operator."""
    given = _given(rows)
    titles = {model: _heading([row for row in given if row.model == model]) for model in _models(given)}
    # Both axes have few values, so that many examples fall on one dot: it is drawn once, and larger.
    dots = Counter((row.operator, titles[row.model], round(row.overlap, 4), round(row.win_rate, 4)) for row in given)
    found = [
        {"row": operator, "column": title, "overlap": overlap, "win_rate": win_rate, "examples": count}
        for (operator, title, overlap, win_rate), count in dots.items()
    ]
    scale = alt.Scale(domain=[0, 1])
    drawn = (
        alt.Chart()
        .mark_circle(opacity=0.35, color=_COLOURS[0])
        .encode(
            x=alt.X("overlap:Q", title="overlap with human rationale (IoU)", scale=scale, axis=alt.Axis(tickCount=5)),
            y=alt.Y("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%", tickCount=5)),
            size=alt.Size("examples:Q", legend=None, scale=alt.Scale(domain=[0, max(dots.values())], range=[10, 90])),
            tooltip=[alt.Tooltip("overlap:Q"), alt.Tooltip("win_rate:Q", format=".0%"), alt.Tooltip("examples:Q")],
        )
    )
    caption = (
        "Every dot is an example, or several where it is larger: overlap with the human rationale (across) and win "
        "rate (up); r is Pearson's, with its 95 % interval. An r near 0 says that one does not stand in for the other, "
        "not that either is wrong."
    )
    chart = panels([line_at(CHANCE, "y", scale), drawn], found, width=190, height=190)
    alone = f": {found[0]['column']}".replace("\n", ", ") if len(titles) == 1 else ""
    return Figure("plausibility", f"Faithfulness against plausibility{alone}", caption, chart)


def _heading(rows: Sequence[Plausibility]) -> str:
    """A model, and under it the correlation of its points under every operator."""
    operators = in_order([row.operator for row in rows])
    of_operator = {name: _correlation([row for row in rows if row.operator == name]) for name in operators}
    several = len(operators) > 1
    return "\n".join([rows[0].model, *(f"{name}: {r}" if several else r for name, r in of_operator.items())])


def _correlation(rows: Sequence[Plausibility]) -> str:
    """Pearson's r, where the points have one."""
    from scipy.stats import pearsonr

    x, y = np.array([row.overlap for row in rows]), np.array([row.win_rate for row in rows])
    if x.size < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return f"n = {x.size}"
    result = pearsonr(x, y)
    low, high = result.confidence_interval()
    return f"r = {result.statistic:+.2f} [{low:+.2f}, {high:+.2f}], n = {x.size}"


def prompt_sensitivity(rows: Iterable[PromptWinRate]) -> Figure:
    """The win rate under every wording of a prompt; a line joins the wordings of one model and task."""
    given = _given(rows)
    found: list[dict[str, Any]] = [
        {
            "subject": f"{row.model} · {row.task}",
            "prompt": row.prompt,
            "win_rate": row.win_rate,
            "low": row.low,
            "high": row.high,
            "row": "",
            "column": row.attribution,
        }
        for row in given
    ]
    prompts = in_order([row.prompt for row in given])
    scale = rate_scale(found)
    colour = alt.Scale(domain=prompts, range=[_COLOURS[i % len(_COLOURS)] for i in range(len(prompts))])
    base = alt.Chart().encode(
        x=alt.X("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%")),
        y=alt.Y("subject:N", title=None, sort=in_order([row["subject"] for row in found])),
        yOffset=alt.YOffset("prompt:N", sort=prompts),
    )
    spans = base.mark_line(style=FAINT, strokeWidth=1).encode(detail="subject:N")
    coloured = base.encode(
        color=alt.Color("prompt:N", title=None, scale=colour, legend=alt.Legend(orient="bottom")),
    )
    intervals = coloured.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    shape = alt.Shape("prompt:N", title=None, scale=alt.Scale(domain=prompts, range=SHAPES))
    dots = coloured.mark_point(filled=True, opacity=1, size=50).encode(shape=shape)
    caption = (
        "Mean win rate under every wording of the prompt, with 95 % intervals where they are known; the grey line "
        "joins them. Line at 50 % (chance), dashed at 55 %. A wide spread: one prompt is no basis for a verdict."
    )
    layers = [*chance_and_threshold("x", scale), spans, intervals, dots]
    chart = panels(layers, found, width=240, height=alt.Step(11))
    return Figure("prompt-sensitivity", "Win rate by prompt", caption, chart)


_SRC_LIMITS = (0.15, 0.4)


def chain_of_thought_scatter(rows: Iterable[ChainOfThought]) -> Figure:
    """Whether steps matter against whether answers are right."""
    given = _given(rows)
    tasks = in_order([row.task for row in given])
    found = [
        {"model": row.model, "task": row.task, "src": row.src, "accuracy": row.accuracy, "row": "", "column": ""}
        for row in given
    ]
    across = alt.Scale(domain=[0, 1])
    up = alt.Scale(domain=[0, max(0.5, *(row.src for row in given))], nice=True)
    base = alt.Chart().encode(
        x=alt.X("accuracy:Q", title="accuracy", scale=across, axis=alt.Axis(format=".0%")),
        y=alt.Y("src:Q", title="SRC", scale=up),
    )
    colour = alt.Scale(domain=tasks, range=[_COLOURS[i % len(_COLOURS)] for i in range(len(tasks))])
    dots = base.mark_point(filled=True, opacity=1, size=60).encode(
        color=alt.Color("task:N", title=None, scale=colour, legend=alt.Legend(orient="bottom")),
        shape=alt.Shape("task:N", title=None, scale=alt.Scale(domain=tasks, range=SHAPES)),
    )
    names = base.mark_text(style=INK, align="left", dx=7, fontSize=10).encode(text="model:N")
    caption = (
        "Every dot is a model on a task: accuracy (across) and SRC, the degree to which steps are necessary and not "
        "sufficient by themselves (up). Dashed lines at 0.15 and 0.4 part decorative, scaffolding and genuine. "
        "Right answers do not make steps matter."
    )
    limits = [line_at(limit, "y", up, strokeDash=[3, 3]) for limit in _SRC_LIMITS]
    chart = panels([*limits, dots, names], found, width=380, height=260)
    return Figure("chain-of-thought", "Do steps matter, and are answers right?", caption, chart)


def _cells(rows: Rows, across: str) -> Chart:
    return coloured_cells(rows, x=across, y="model")


def _given(rows: Iterable[Any]) -> list[Any]:
    found = list(rows)
    if not found:
        raise DataError("a figure needs at least one row, got none")
    return found


def _models(rows: Sequence[Plausibility]) -> list[str]:
    return in_order([row.model for row in rows])
