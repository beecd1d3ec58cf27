"""Figures of tables beside runs, such as a paper's own numbers or a grid's: typed rows in, a figure out."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import altair as alt

from ice_eval import stats
from ice_eval.analysis import paper
from ice_eval.analysis.measures.explanations import Overlap, overlap_correlation
from ice_eval.errors import DataError
from ice_eval.report.figures import figure as parts
from ice_eval.report.figures.figure import Figure
from ice_eval.results.summary import CONTROL

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """The mean win rate of one model on one data set."""

    model: str
    dataset: str
    attribution: str
    operator: str
    win_rate: float | None
    """Fraction; None where there is no valid result."""
    word: str | None = None
    """Word of its verdict, which colours it; None for a published number: that of the paper for its value."""


@dataclass(frozen=True, kw_only=True)
class LanguageWinRate:
    """The mean win rate of one model in one language, as `WinRate`."""

    model: str
    language: str
    operator: str
    win_rate: float | None
    word: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plausibility:
    """Overlap with the human rationale and faithfulness of one example."""

    model: str
    """Model, or an attribution where one model is drawn; it heads a panel."""
    overlap: float
    """Intersection over union with the human rationale."""
    win_rate: float
    operator: str = ""
    group: Hashable = None
    """Equal for examples that depend on each other; None for an independent one."""


@dataclass(frozen=True, kw_only=True)
class PromptWinRate:
    """Win rate of one model, task and attribution under one wording of the prompt."""

    model: str
    task: str
    attribution: str
    prompt: str
    win_rate: float
    low: float | None = None
    high: float | None = None
    """Limits of its interval, where one is known."""


@dataclass(frozen=True, kw_only=True)
class ChainOfThought:
    """Capacity of steps (SRC) and accuracy of one model on one task."""

    model: str
    task: str
    src: float
    accuracy: float
    low: float | None = None
    high: float | None = None
    """Limits of the interval of SRC, where one is known."""
    published: bool = False
    """True for a published number, False for one's own."""


def _given(rows: Iterable[T]) -> list[T]:
    if found := list(rows):
        return found
    raise DataError("a figure needs at least one row, got none")


def win_rate_panels(rows: Iterable[WinRate]) -> Figure:
    """Draw models by data sets, a panel for every attribution (down) and operator (across)."""
    found = [
        {"x": row.dataset, "y": row.model, "row": row.attribution, "column": row.operator}
        | parts.cell(row.win_rate, row.word)
        for row in _given(rows)
    ]
    caption = (
        "Mean win rate in percent of every model on every data set, coloured by the word for it; 50 is chance. Cells "
        "carry no interval: neighbouring colours may not differ."
    )
    chart = parts.coloured_cells(found, x="data set", y="model")
    return Figure("win-rate-panels", "Win rates by attribution and operator", caption, chart)


def language_heatmap(rows: Iterable[LanguageWinRate]) -> Figure:
    """Draw models by languages, a panel for every operator."""
    found = [
        {"x": row.language, "y": row.model, "column": row.operator, **parts.cell(row.win_rate, row.word)}
        for row in _given(rows)
    ]
    caption = (
        "Mean win rate in percent of every model in every language; 50 is chance, grey means no valid result. "
        "Data sets differ between languages, so a column compares models, and a row does not compare languages."
    )
    chart = parts.coloured_cells(found, x="language", y="model")
    return Figure("language-heatmap", "Win rates by language", caption, chart)


def plausibility_scatter(rows: Iterable[Plausibility]) -> Figure:
    """Draw faithfulness against overlap with human rationales, with a correlation for every model and operator."""
    given = _given(rows)
    models = dict.fromkeys(row.model for row in given)
    titles = {model: _heading([row for row in given if row.model == model]) for model in models}
    # Both axes have few values, so that many examples fall on one dot: it is drawn once, and larger.
    dots = Counter((row.operator, titles[row.model], round(row.overlap, 4), round(row.win_rate, 4)) for row in given)
    found = [
        {"row": operator, "column": title, "overlap": overlap, "win_rate": win_rate, "examples": count}
        for (operator, title, overlap, win_rate), count in dots.items()
    ]
    rates = alt.Axis(format=".0%", tickCount=5)
    sizes = alt.Scale(domain=[0, max(dots.values())], range=[10, 90])
    drawn = alt.Chart().mark_circle(opacity=0.35, color=parts.PALETTE[0])
    drawn = drawn.encode(
        x=alt.X("overlap:Q", title="overlap with human rationale (IoU)", scale=parts.UNIT, axis=alt.Axis(tickCount=5)),
        y=alt.Y("win_rate:Q", title="win rate", scale=parts.UNIT, axis=rates),
        size=alt.Size("examples:Q", legend=None, scale=sizes),
        tooltip=parts.tooltips("overlap:Q", ("win_rate:Q", "", ".0%"), "examples:Q"),
    )
    caption = (
        "Every dot is an example, or several where it is larger: overlap with the human rationale (across) and win "
        "rate (up). r is Pearson's, with its 95 % interval. An r near 0 means that one does not replace the other, "
        "not that either is wrong."
    )
    chart = parts.panels([parts.line_at(stats.CHANCE, "y", parts.UNIT), drawn], found, width=190, height=190)
    alone = f": {found[0]['column']}".replace("\n", ", ") if len(titles) == 1 else ""
    return Figure("plausibility", f"Faithfulness against plausibility{alone}", caption, chart)


def _heading(rows: Sequence[Plausibility]) -> str:
    """Return a model's name, and under it the correlation of its points under every operator."""
    lines, operators = [rows[0].model], list(dict.fromkeys(row.operator for row in rows))
    for name in operators:
        points = [Overlap(row.overlap, row.win_rate, row.group) for row in rows if row.operator == name]
        found = overlap_correlation(points)
        ends = "" if found.interval is None else " [{:+.2f}, {:+.2f}]".format(*found.interval)
        r = "" if found.r is None else f"r = {found.r:+.2f}{ends}, "
        lines.append(f"{name}: {r}n = {found.n}" if len(operators) > 1 else f"{r}n = {found.n}")
    return "\n".join(lines)


def prompt_sensitivity(rows: Iterable[PromptWinRate]) -> Figure:
    """Draw the win rate under every wording of a prompt; a line joins the wordings of one model and task."""
    fields = ("prompt", "win_rate", "low", "high")
    found = [
        {"subject": f"{row.model} · {row.task}", **{name: getattr(row, name) for name in fields}}
        | {"column": row.attribution, "control": row.attribution == CONTROL}
        for row in _given(rows)
    ]
    caption = (
        "Mean win rate under every wording of the prompt, with 95 % intervals where they are known; the grey line "
        "joins them. Line at 50 % (chance), dashed at 55 %. A wide spread: one prompt is no basis for a verdict."
    )
    layers = parts.joined_dots(found, "prompt", size=50)
    chart = parts.panels(layers, found, width=240, height=alt.Step(11))
    return Figure("prompt-sensitivity", "Win rate by prompt", caption, chart)


def chain_of_thought_scatter(rows: Iterable[ChainOfThought]) -> Figure:
    """Draw the capacity of steps (SRC) against the accuracy of answers."""
    given = _given(rows)
    least = min(0.8, math.floor(10 * min(row.accuracy for row in given) + 1e-9) / 10)
    across, up, width, height = alt.Scale(domain=[least, 1], nice=False), parts.UNIT, 420, 280
    dots = [(width * (row.accuracy - least) / (1 - least), height * (1 - row.src)) for row in given]
    places = label_places(dots, [row.model for row in given], width=width, height=height)
    found = [
        vars(row)
        | {"whose": "published" if row.published else "own"}
        | {"label_x": least + (1 - least) * x / width, "label_y": 1 - y / height}
        for row, (x, y) in zip(given, places, strict=True)
    ]
    src = ("src:Q", "SRC", ".2f")
    base = alt.Chart().encode(
        x=alt.X("accuracy:Q", title="accuracy", scale=across, axis=alt.Axis(format=".0%", tickCount=5)),
        color=parts.colours(found, "task"),
        tooltip=parts.tooltips("model:N", "task:N", src, *parts.end_tooltips(".2f"), ("accuracy:Q", "", ".1%")),
    )
    fill = alt.Fill("task:N", title=None, scale=parts.colour_scale(parts.distinct(found, "task")), legend=None)
    filled = alt.FillOpacity("whose:N", scale=alt.Scale(domain=["own", "published"], range=[1, 0]), legend=None)
    marks = base.mark_point(filled=False, opacity=1, size=70, strokeWidth=1.5).encode(
        y=alt.Y("src:Q", title="SRC", scale=up), shape=parts.shapes(found, "task"), fill=fill, fillOpacity=filled
    )
    names = alt.Chart().mark_text(style=parts.INK, align="left", baseline="middle", fontSize=_LABEL_SIZE)
    names = names.encode(x=alt.X("label_x:Q", scale=across), y=alt.Y("label_y:Q", scale=up), text="model:N")
    caption = (
        "Every dot is a model on a task: accuracy (across) and SRC, the degree to which steps are necessary and not "
        "sufficient by themselves (up), with its 95 % interval where one is known. Dashed lines at 0.15 and 0.4 part "
        "decorative, scaffolding and genuine. Right answers do not make steps matter."
    )
    limits = [parts.line_at(limit, "y", up, strokeDash=[3, 3]) for limit in (stats.SCAFFOLDING, stats.GENUINE)]
    intervals = parts.low_to_high(base.mark_rule(strokeWidth=2), "y", up)
    chart = parts.panels([*limits, intervals, marks, names], found, width=width, height=height)
    return Figure("chain-of-thought", "Do steps matter, and are answers right?", caption, chart)


def paper_figures() -> list[Figure]:
    """Return the English heatmap in four panels (the paper's figure 2), the languages (figure 3), and the prompts."""
    english = [
        WinRate(model=c.model, dataset=c.task, attribution=c.attribution, operator=c.operator, win_rate=c.win_rate)
        for c in paper.english_cells()
    ]
    languages = list[LanguageWinRate]()
    for row in paper.paper_table("multilingual").rows:
        cell = {"model": row["model"], "language": row["task"], "operator": row["operator"]}
        rate = float(row["win_rate"]) / 100 if row["win_rate"] else None
        languages.append(LanguageWinRate(**cell, win_rate=rate))
    prompts = [
        PromptWinRate(model=c.model, task=c.task, attribution=c.attribution, prompt=c.prompt, win_rate=c.win_rate)
        for c in paper.prompt_cells()
    ]
    drawn = {
        "paper-english": win_rate_panels(english),
        "paper-languages": language_heatmap(languages),
        "paper-prompts": prompt_sensitivity(prompts),
    }
    return [replace(figure, name=name, title=f"{figure.title}, as published") for name, figure in drawn.items()]


_LABEL_SIZE = 10
_WIDE, _HIGH, _AWAY = 0.55 * _LABEL_SIZE, 1.25 * _LABEL_SIZE, 8
"""Width of a letter on average, height of a line, and distance from the dot."""
_Point = tuple[float, float]


def label_places(dots: Sequence[_Point], names: Sequence[str], *, width: float, height: float) -> list[_Point]:
    """Return the left end of every name, at half its height, in pixels from the top left corner."""
    # Names are placed one after another: right of the dot, left, above, below, then further up and down, at the first
    # free position inside the plot, or else on the right.
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    found = []
    for (x, y), name in zip(dots, names, strict=True):
        long = _WIDE * len(name)
        starts = x - long / 2, x + _AWAY, x - _AWAY - long
        places = [(start, y) for start in starts[1:]]
        places += [(start, y + off * _HIGH) for row in range(1, 5) for start in starts for off in (-row, row)]
        boxes = [(start, at - _HIGH / 2, start + long, at + _HIGH / 2) for start, at in places]
        chosen = next((i for i, box in enumerate(boxes) if _is_free(box, taken, width, height)), 0)
        taken.append(boxes[chosen])
        found.append(places[chosen])
    return found


_Box = tuple[float, float, float, float]  # left, top, right, bottom


def _is_free(box: _Box, taken: Sequence[_Box], width: float, height: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or right > width + 40 or top < -_HIGH or bottom > height + 2:
        return False
    return not any(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in taken)
