"""Figures of runs about chains: whether steps matter, how much of them, and how early the answer is settled."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from ice_eval.analysis.chains import capacities, headlines
from ice_eval.analysis.paper import paper_table
from ice_eval.report.chains import chains_of
from ice_eval.report.figures import figure as parts
from ice_eval.report.figures.figure import UNIT, Figure
from ice_eval.report.figures.tables import ChainOfThought, chain_of_thought_scatter
from ice_eval.report.page import OF_CHAINS
from ice_eval.report.tables import run_names
from ice_eval.results import RunFolder
from ice_eval.results.records import ChainSummary

_PERCENT = alt.Axis(format=".0%", tickCount=5)

Named = tuple[str, ChainSummary]
"""The name of a run, and its summary of chains."""


def chain_figures(folders: Sequence[RunFolder]) -> list[Figure]:
    """Return the figures of the runs about chains among some; those that their data do not allow are left out."""
    found = [(folder, chains) for folder in folders if (chains := folder.summary().chains) is not None]
    names = run_names([folder for folder, _ in found])
    runs = [(f"{model} on {task}", chains) for (model, task), (_, chains) in zip(names, found, strict=True)]
    own = list[ChainOfThought]()
    for (folder, content), (model, _) in zip(found, names, strict=True):
        task = folder.manifest().config.task.removesuffix("/reasoning")  # as the paper names it
        line, accuracy = next(iter(headlines(content)), None), content.problems.accuracy
        if line is not None and line.src is not None and accuracy is not None:
            limits = parts.ends(line.src_ci)
            own.append(ChainOfThought(model=model, task=task, src=line.src, accuracy=accuracy, **limits))
    drawn = (_capacity(own, alone=len(runs) == 1) if own else None, _by_share(runs), _early(runs))
    return [figure for figure in drawn if figure is not None]


def _capacity(own: Sequence[ChainOfThought], *, alone: bool) -> Figure:
    """Draw SRC against accuracy: of several runs, or of one beside the models that the paper publishes."""
    published = list[ChainOfThought]()
    for row in paper_table("frontier").rows if alone else ():
        src, accuracy = float(row["src"]), float(row["accuracy"]) / 100
        point = ChainOfThought(model=row["model"], task=row["task"], src=src, accuracy=accuracy, published=True)
        published.append(point)
    figure = chain_of_thought_scatter([*own, *published])
    beside = " Hollow marks are the three unnamed models of the paper, without intervals." if alone else ""
    caption = f"{figure.caption}{beside} SRC is not adjusted for the noise floor here, as in the paper."
    return replace(figure, name=f"{OF_CHAINS}capacity", caption=caption)


_MEASURES = {"necessity": "Nec: removed, the answer changes", "sufficiency": "Suf: alone, they give the answer"}
_NUDGE = 0.02
"""By how much the dots of operators stand apart, so that their intervals do."""


def _by_share(runs: Sequence[Named]) -> Figure | None:
    rows = [row for name, content in runs for row in _share_rows(name if len(runs) > 1 else "", content)]
    if not rows:
        return None
    operators = parts.distinct(rows, "operator")
    for row in rows:
        row["drawn"] = row["k"] + _NUDGE * (operators.index(row["operator"]) - (len(operators) - 1) / 2)
    shares, rates = sorted({row["k"] for row in rows}), ("rate:Q", "share of replies", ".1%")
    base = alt.Chart().encode(
        x=parts.share_axis("drawn:Q", shares, title="share of steps removed, or alone (k)", margin=0.08),
        color=parts.colours(rows),
        tooltip=parts.tooltips("operator:N", "k:Q", rates, *parts.end_tooltips(".1%"), ("n:Q", "chains")),
    )
    rate = alt.Y("rate:Q", title="share of replies", scale=UNIT, axis=_PERCENT)
    layers = [
        alt.Chart().mark_rule(style=parts.INK, strokeDash=[4, 3]).encode(y=alt.Y("floor:Q", scale=UNIT)),
        base.mark_line(strokeWidth=1, opacity=0.6).encode(y=rate),
        parts.low_to_high(base.mark_rule(strokeWidth=2), "y", UNIT),
        base.mark_point(**parts.DOT, size=60).encode(y=rate, shape=parts.shapes(rows)),
    ]
    caption = (
        "Left: how often the answer changes when random steps are removed; the dashed line is the noise floor, at "
        "which it changes although nothing is. Right: how often as many random steps alone give it. Bars are 95 % "
        "intervals over chains. Steps that carry the answer: high on the left, low on the right."
    )
    chart = parts.panels(layers, rows, width=230, height=190)
    return Figure(f"{OF_CHAINS}necessity-sufficiency", "Are steps needed, and are a few enough?", caption, chart)


def _share_rows(run: str, content: ChainSummary) -> Iterator[dict[str, Any]]:
    lines = capacities(content)
    several = len({line.chains for line in lines}) > 1
    for line in lines if not several else (line for line in lines if line.chains != "all"):
        row = {"row": " · ".join(filter(None, (run, chains_of(line) if several else ""))), "operator": line.operator}
        for measure, title in _MEASURES.items():
            rate = {"rate": getattr(line, measure), **parts.ends(getattr(line, f"{measure}_ci"))}
            floor = line.noise_floor if measure == "necessity" else None
            if rate["rate"] is not None:
                yield {**row, "column": title, "k": line.k, "n": line.n, "floor": floor, **rate}


def _early(runs: Sequence[Named]) -> Figure | None:
    """Draw how often a beginning of the chain gives its answer; needs the operator `truncate`."""
    rows = [
        {"run": name, "share": cut.share, "rate": cut.rate, **parts.ends(cut.rate_ci)}
        for name, content in runs
        for cut in (() if content.truncate is None else content.truncate.kept)
        if cut.rate is not None
    ]
    if not rows:
        return None
    several = len(parts.distinct(rows, "run")) > 1
    legend = alt.Legend(orient="bottom", columns=1) if several else None
    share, answer = ("share:Q", "beginning", ".0%"), ("rate:Q", "own answer", ".1%")
    base = alt.Chart().encode(
        x=alt.X("share:Q", title="beginning of the chain that is shown", scale=UNIT, axis=_PERCENT),
        color=parts.colours(rows, "run").legend(legend),
        tooltip=parts.tooltips("run:N", share, answer, *parts.end_tooltips(".1%")),
    )
    rate = alt.Y("rate:Q", title="replies with the chain's own answer", scale=UNIT, axis=_PERCENT)
    diagonal = alt.Chart(alt.InlineData(values=[{"share": 0, "rate": 0}, {"share": 1, "rate": 1}]))
    diagonal = diagonal.mark_line(style=parts.FAINT, strokeDash=[3, 3], strokeWidth=1)
    layers = [
        diagonal.encode(x=alt.X("share:Q", scale=UNIT), y=alt.Y("rate:Q", scale=UNIT)),
        parts.low_to_high(base.mark_area(opacity=0.15), "y", UNIT),
        base.mark_line(strokeWidth=1.5).encode(y=rate),
        base.mark_point(**parts.DOT, size=50).encode(y=rate, shape=parts.shapes(rows, "run").legend(legend)),
    ]
    caption = (
        "How often the chain, cut off after a share of its steps, already gives the answer of the whole, with 95 % "
        "bands over chains. A curve that is high from the start: the answer stood before the steps. One that rises at "
        "the end only: all steps were needed. The dashed line is an answer that settles evenly."
    )
    chart = parts.panels(layers, rows, width=340, height=210)
    return Figure(f"{OF_CHAINS}early-answers", "How early is the answer settled?", caption, chart)
