"""The paper's figures, drawn from the numbers of finished runs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from ice_eval.report.figures import (
    Figure,
    LanguageWinRate,
    Plausibility,
    WinRate,
    language_heatmap,
    plausibility_scatter,
    win_rate_panels,
)
from ice_eval.report.figures import figure as parts
from ice_eval.reproduce.catalogue import Item
from ice_eval.reproduce.contents import METHODS, Sources, overlaps, paper_name
from ice_eval.reproduce.layout import Value, shown
from ice_eval.stats import taxonomy

_OPERATOR = {"delete": "deletion", "infill": "retrieval infill"}
_Rows = list[dict[str, Any]]


def _of_item(figure: Figure, item: Item) -> Figure:
    return replace(figure, name=item.file, title=item.title, caption=f"{figure.caption} {item.note}".strip())


def _figure(item: Item, caption: str, layers: Sequence[alt.Chart], rows: _Rows, **size: Any) -> Figure:
    return _of_item(Figure(item.file, item.title, caption, parts.panels(layers, rows, **size)), item)


def _rates(values: Sequence[Value], quantity: str = "win_rate") -> list[tuple[Value, float]]:
    return [(each, each.ours) for each in values if each.quantity == quantity and isinstance(each.ours, float)]


def _percent(sign: str = "", **more: Any) -> alt.Axis:
    return alt.Axis(format=f"{sign}.0%", **more)


def _cells(values: Sequence[Value], *, of_task: str) -> _Rows:
    """Return the cells of a heat map; the name of a task is the field `of_task`."""
    return [
        {
            "model": value.place["model"],
            of_task: shown(value.place["task"]),
            "operator": _OPERATOR[value.place["operator"]],
            "win_rate": rate,
            "word": taxonomy(rate),
        }
        for value, rate in _rates(values)
    ]


def english_heatmap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw models by data sets, a panel for each attribution and operator, coloured by the paper's words."""
    cells = zip(_rates(values), _cells(values, of_task="dataset"), strict=True)
    rows = [WinRate(attribution=value.place["attribution"], **cell) for (value, _), cell in cells]
    return _of_item(win_rate_panels(rows), item)


def multilingual_heatmap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw models by languages, a panel for each operator."""
    rows = [LanguageWinRate(**cell) for cell in _cells(values, of_task="language")]
    return _of_item(language_heatmap(rows), item)


def plausibility(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw every example of e-SNLI by overlap and win rate, a panel for each model and attribution."""
    rows = [
        Plausibility(
            model=f"{paper_name(run.model)}, {line.attribution}",
            overlap=overlap,
            win_rate=line.win_rate,
            group=run.inputs[line.example_id].group,
        )
        for run, line, overlap in overlaps(sources)
    ]
    return _of_item(plausibility_scatter(rows), item)


def _pairs(values: Sequence[Value]) -> _Rows:
    return [
        {
            "configuration": value.place["configuration"],
            "operator": value.place["operator"],
            "win_rate": rate,
            **parts.ends(value.interval),
            "row": "",
            "column": "",
        }
        for value, rate in _rates(values)
    ]


_PAIR_CAPTION = "Win rates of attention under deletion and retrieval infill, with 95 % intervals; the line is at 50 %."
_PAIR_TIPS = ("configuration:N", "operator:N", ("win_rate:Q", "win rate", ".1%"))


def operator_bars(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw two bars for each configuration."""
    rows, scale = _pairs(values), alt.Scale(domain=[0, 1])
    names = parts.distinct(rows, "configuration")
    base = alt.Chart().encode(
        x=alt.X("configuration:N", title=None, sort=names, axis=alt.Axis(labelAngle=-35)),
        xOffset=alt.XOffset("operator:N", sort=["delete", "infill"]),
        tooltip=parts.tooltips(*_PAIR_TIPS, *parts.end_tooltips(".1%")),
    )
    rates = alt.Y("win_rate:Q", title="win rate", scale=scale, axis=_percent())
    bars = base.mark_bar().encode(y=rates, color=parts.colours(rows))
    limits = parts.low_to_high(base.mark_rule(style=parts.INK, strokeWidth=1.5), "y", scale)
    layers = [bars, limits, parts.line_at(0.5, "y", scale)]
    return _figure(item, _PAIR_CAPTION, layers, rows, width=alt.Step(26), height=220)


def operator_pairs(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw two joined dots for each configuration."""
    rows = _pairs(values)
    scale = parts.rate_scale(rows)
    base = alt.Chart().encode(
        x=alt.X("win_rate:Q", title="win rate", scale=scale, axis=_percent()),
        y=alt.Y("configuration:N", title=None, sort=parts.distinct(rows, "configuration")),
        tooltip=parts.tooltips(*_PAIR_TIPS),
    )
    joined = base.mark_line(style=parts.FAINT, strokeWidth=1.5).encode(detail="configuration:N")
    dots = base.mark_point(**parts.DOT, size=60).encode(color=parts.colours(rows), shape=parts.shapes(rows))
    layers = [parts.line_at(0.5, "x", scale), joined, dots]
    return _figure(item, _PAIR_CAPTION, layers, rows, width=360, height=alt.Step(30))


def _gaps(values: Sequence[Value]) -> tuple[_Rows, alt.Scale]:
    """Return the gap of every prompt in percentage points, and their scale; several models are named."""
    several = len({value.place["model"] for value in values}) > 1
    rows: _Rows = [
        {
            "prompt": " · ".join([*([v.place["model"]] if several else []), shown(v.place["task"]), v.place["prompt"]]),
            "task": shown(v.place["task"]),
            "model": v.place["model"],
            "gap": 100 * gap,
            **{name: None if end is None else 100 * end for name, end in parts.ends(v.interval).items()},
            "row": "",
            "column": "",
        }
        for v, gap in _rates(values, "difference")
    ]
    ends = [row[name] for row in rows for name in ("gap", "low", "high") if row[name] is not None]
    return rows, alt.Scale(domain=[min([-5, *ends]), max([5, *ends])])


_GAP: dict[str, Any] = {"shorthand": "gap:Q", "title": "attention less gradient (pp)", "axis": alt.Axis(format="+.0f")}
_GAP_TIPS = ("prompt:N", ("gap:Q", "gap (pp)", "+.1f"))


def method_gap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw attention less gradient as one bar for each prompt, with its paired interval."""
    rows, scale = _gaps(values)
    base = alt.Chart().encode(
        y=alt.Y("prompt:N", title=None, sort=parts.distinct(rows, "prompt")),
        tooltip=parts.tooltips(*_GAP_TIPS, *parts.end_tooltips("+.1f")),
    )
    bars = base.mark_bar().encode(x=alt.X(**_GAP, scale=scale), color=parts.colours(rows, "task"))
    limits = parts.low_to_high(base.mark_rule(style=parts.INK, strokeWidth=1.5), "x", scale)
    caption = (
        "Win rate of attention less that of gradient under every prompt in percentage points, with 95 % intervals."
    )
    layers = [bars, limits, parts.line_at(0, "x", scale)]
    return _figure(item, caption, layers, rows, width=320, height=alt.Step(18))


def faithfulness_and_confidence(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw the win rate of each prompt against the model's mean confidence under it, a row for each model."""
    confidence = {(*value.place.values(),): number for value, number in _rates(values, "confidence")}
    several = len({value.place["model"] for value in values}) > 1
    rows: _Rows = [
        {
            "confidence": confidence[(*value.place.values(),)],
            "win_rate": rate,
            "prompt": f"{shown(value.place['task'])} {value.place['prompt']}",
            "task": shown(value.place["task"]),
            "row": value.place["model"] if several else "",
            "column": method,
        }
        for method in METHODS
        for value, rate in _rates(values, method)
        if (*value.place.values(),) in confidence
    ]
    across, axis = alt.Scale(zero=False, nice=True), _percent(tickCount=5)
    base = alt.Chart().encode(
        x=alt.X("confidence:Q", title="confidence", scale=across, axis=axis),
        y=alt.Y("win_rate:Q", title="win rate", scale=parts.UNIT, axis=axis),
        color=parts.colours(rows, "task"),
        shape=parts.shapes(rows, "task"),
        tooltip=parts.tooltips("prompt:N", ("confidence:Q", "", ".1%"), ("win_rate:Q", "win rate", ".1%")),
    )
    layers = [parts.line_at(0.5, "y", parts.UNIT), base.mark_point(**parts.DOT, size=55)]
    caption = "Every dot is a prompt: the mean probability of the explained label on whole texts, and the win rate."
    return _figure(item, caption, layers, rows, width=240, height=200)


def gap_by_task(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw attention less gradient of every prompt over its task, a panel for each model, with a tick at the mean."""
    (rows, scale), own = _gaps(values), defaultdict[tuple[str, str], list[float]](list)
    for row in rows:
        own[row["model"], row["task"]].append(row["gap"])
    several = len({model for model, _ in own}) > 1
    for row in rows:
        gaps = own[row["model"], row["task"]]
        row |= {"mean": sum(gaps) / len(gaps), "column": row["model"] if several else ""}
    tasks = parts.distinct(rows, "task")
    base = alt.Chart().encode(x=alt.X("task:N", title=None, sort=tasks, axis=alt.Axis(labelAngle=0)))
    dots = base.mark_point(**parts.DOT, size=50).encode(
        y=alt.Y(**_GAP, scale=scale), color=parts.colours(rows, "task"), tooltip=parts.tooltips(*_GAP_TIPS)
    )
    means = base.mark_tick(style=parts.INK, thickness=2, width=36).encode(y=alt.Y("mean:Q", scale=scale))
    caption = (
        "Every dot is a prompt: win rate of attention less that of gradient in percentage points; the tick is the mean "
        "of a task."
    )
    layers = [parts.line_at(0, "y", scale), means, dots]
    return _figure(item, caption, layers, rows, width=alt.Step(70), height=220)
