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


def _of_item(figure: Figure, item: Item) -> Figure:
    return replace(figure, name=item.file, title=item.title, caption=f"{figure.caption} {item.note}".strip())


def _rates(values: Sequence[Value], quantity: str = "win_rate") -> list[tuple[Value, float]]:
    return [(each, each.ours) for each in values if each.quantity == quantity and isinstance(each.ours, float)]


def english_heatmap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw models by data sets, a panel for each attribution and operator, coloured by the paper's words."""
    rows = [
        WinRate(
            model=value.place["model"],
            dataset=shown(value.place["task"]),
            attribution=value.place["attribution"],
            operator=_OPERATOR[value.place["operator"]],
            win_rate=rate,
            word=taxonomy(rate),
        )
        for value, rate in _rates(values)
    ]
    return _of_item(win_rate_panels(rows), item)


def multilingual_heatmap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw models by languages, a panel for each operator."""
    rows = [
        LanguageWinRate(
            model=value.place["model"],
            language=shown(value.place["task"]),
            operator=_OPERATOR[value.place["operator"]],
            win_rate=rate,
            word=taxonomy(rate),
        )
        for value, rate in _rates(values)
    ]
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


def _pairs(values: Sequence[Value]) -> list[dict[str, Any]]:
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


def operator_bars(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw two bars for each configuration."""
    rows, scale = _pairs(values), alt.Scale(domain=[0, 1])
    base = alt.Chart().encode(
        x=alt.X(
            "configuration:N", title=None, sort=parts.distinct(rows, "configuration"), axis=alt.Axis(labelAngle=-35)
        ),
        xOffset=alt.XOffset("operator:N", sort=["delete", "infill"]),
        tooltip=parts.tooltips(
            "configuration:N", "operator:N", ("win_rate:Q", "win rate", ".1%"), *parts.end_tooltips(".1%")
        ),
    )
    rates = alt.Y("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%"))
    bars = base.mark_bar().encode(y=rates, color=parts.colours(rows))
    limits = parts.low_to_high(base.mark_rule(style=parts.INK, strokeWidth=1.5), "y", scale)
    chart = parts.panels([bars, limits, parts.line_at(0.5, "y", scale)], rows, width=alt.Step(26), height=220)
    return _of_item(Figure(item.file, item.title, _PAIR_CAPTION, chart), item)


def operator_pairs(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw two joined dots for each configuration."""
    rows = _pairs(values)
    scale = parts.rate_scale(rows)
    base = alt.Chart().encode(
        x=alt.X("win_rate:Q", title="win rate", scale=scale, axis=alt.Axis(format=".0%")),
        y=alt.Y("configuration:N", title=None, sort=parts.distinct(rows, "configuration")),
        tooltip=parts.tooltips("configuration:N", "operator:N", ("win_rate:Q", "win rate", ".1%")),
    )
    joined = base.mark_line(style=parts.FAINT, strokeWidth=1.5).encode(detail="configuration:N")
    dots = base.mark_point(**parts.DOT, size=60).encode(color=parts.colours(rows), shape=parts.shapes(rows))
    chart = parts.panels([parts.line_at(0.5, "x", scale), joined, dots], rows, width=360, height=alt.Step(30))
    return _of_item(Figure(item.file, item.title, _PAIR_CAPTION, chart), item)


def _gaps(values: Sequence[Value]) -> list[dict[str, Any]]:
    """Return the gap of every prompt, with the name of the model where there are several."""
    several = len({value.place["model"] for value in values}) > 1
    return [
        {
            "prompt": " · ".join([*([v.place["model"]] if several else []), shown(v.place["task"]), v.place["prompt"]]),
            "task": shown(v.place["task"]),
            "gap": gap,
            **parts.ends(v.interval),
            "row": "",
            "column": "",
        }
        for v, gap in _rates(values, "difference")
    ]


def _gap_scale(rows: Sequence[dict[str, Any]]) -> alt.Scale:
    ends = [row[name] for row in rows for name in ("gap", "low", "high") if row[name] is not None]
    return alt.Scale(domain=[min([-0.05, *ends]), max([0.05, *ends])])


def method_gap(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw attention less gradient as one bar for each prompt, with its paired interval."""
    rows = _gaps(values)
    scale = _gap_scale(rows)
    base = alt.Chart().encode(
        y=alt.Y("prompt:N", title=None, sort=parts.distinct(rows, "prompt")),
        tooltip=parts.tooltips("prompt:N", ("gap:Q", "gap", "+.1%"), *parts.end_tooltips("+.1%")),
    )
    gaps = alt.X("gap:Q", title="attention less gradient", scale=scale, axis=alt.Axis(format="+.0%"))
    bars = base.mark_bar().encode(x=gaps, color=parts.colours(rows, "task"))
    limits = parts.low_to_high(base.mark_rule(style=parts.INK, strokeWidth=1.5), "x", scale)
    chart = parts.panels([bars, limits, parts.line_at(0, "x", scale)], rows, width=320, height=alt.Step(18))
    caption = "Difference of the win rates of attention and gradient under every prompt, with 95 % intervals."
    return _of_item(Figure(item.file, item.title, caption, chart), item)


def faithfulness_and_confidence(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw the win rate of each prompt against the model's mean confidence under it."""
    confidence = {(*value.place.values(),): number for value, number in _rates(values, "confidence")}
    rows = [
        {
            "confidence": confidence[(*value.place.values(),)],
            "win_rate": rate,
            "prompt": f"{shown(value.place['task'])} {value.place['prompt']}",
            "task": shown(value.place["task"]),
            "row": "",
            "column": method,
        }
        for method in METHODS
        for value, rate in _rates(values, method)
        if (*value.place.values(),) in confidence
    ]
    across = alt.Scale(zero=False, nice=True)
    base = alt.Chart().encode(
        x=alt.X("confidence:Q", title="confidence", scale=across, axis=alt.Axis(format=".0%", tickCount=5)),
        y=alt.Y("win_rate:Q", title="win rate", scale=parts.UNIT, axis=alt.Axis(format=".0%", tickCount=5)),
        color=parts.colours(rows, "task"),
        shape=parts.shapes(rows, "task"),
        tooltip=parts.tooltips("prompt:N", ("confidence:Q", "", ".1%"), ("win_rate:Q", "win rate", ".1%")),
    )
    chart = parts.panels(
        [parts.line_at(0.5, "y", parts.UNIT), base.mark_point(**parts.DOT, size=55)], rows, width=240, height=200
    )
    caption = "Every dot is a prompt: the mean probability of the explained label on whole texts, and the win rate."
    return _of_item(Figure(item.file, item.title, caption, chart), item)


def gap_by_task(values: Sequence[Value], item: Item, sources: Sources) -> Figure:
    """Draw attention less gradient of every prompt over its task, with a tick at the mean."""
    rows = _gaps(values)
    scale, by_task = _gap_scale(rows), defaultdict[str, list[float]](list)
    for row in rows:
        by_task[row["task"]].append(row["gap"])
    rows = [{**row, "mean": sum(by_task[row["task"]]) / len(by_task[row["task"]])} for row in rows]
    base = alt.Chart().encode(
        x=alt.X("task:N", title=None, sort=parts.distinct(rows, "task"), axis=alt.Axis(labelAngle=0))
    )
    gaps = alt.Y("gap:Q", title="attention less gradient", scale=scale, axis=alt.Axis(format="+.0%"))
    dots = base.mark_point(**parts.DOT, size=50).encode(
        y=gaps, color=parts.colours(rows, "task"), tooltip=parts.tooltips("prompt:N", ("gap:Q", "gap", "+.1%"))
    )
    means = base.mark_tick(style=parts.INK, thickness=2, width=36).encode(y=alt.Y("mean:Q", scale=scale))
    chart = parts.panels([parts.line_at(0, "y", scale), means, dots], rows, width=alt.Step(70), height=220)
    caption = "Every dot is a prompt: win rate of attention less that of gradient; the tick is the mean of a task."
    return _of_item(Figure(item.file, item.title, caption, chart), item)
