"""The paper's main statements, and what finished runs say of them."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ice_eval import stats
from ice_eval.analysis import eraser_agreement
from ice_eval.analysis._base import grouped_by
from ice_eval.analysis.grid import GridRun
from ice_eval.analysis.paper import paper_table
from ice_eval.nulls import SIZE
from ice_eval.reproduce.contents import (
    METHODS,
    NO_DATA,
    OPERATORS,
    Content,
    Line,
    Sources,
    anti_faithful,
    english,
    english_attention,
    eraser,
    foreign_lines,
    lines,
    lines_by_run,
    multilingual,
    operator_ablation,
    operator_comparison,
    overlaps,
    paper_name,
    plausibility,
    prompts,
    tokenization,
)
from ice_eval.reproduce.layout import shown
from ice_eval.results.records import ExampleOutcome
from ice_eval.seeding import rng_for
from ice_eval.stats import Interval, taxonomy

_ALPHA = 0.05
_ENOUGH_SETS = 7
"""Smallest number of data sets that settle a majority if all of them agree, or whose resamples give an interval."""


class Finding(NamedTuple):
    """A statement of the paper, and what these runs say of it."""

    statement: str
    published: str
    ours: str = "–"
    holds: str = NO_DATA
    """`yes`, `no`, `not settled`, or `no data`."""


def findings(sources: Sources, about: Iterable[Content] | None = None) -> list[Finding]:
    """Return the paper's main statements beside the same figures of these runs.

    With `about`, only those about some contents of tables are returned, and only those with data.
    """
    checks: Mapping[Callable[[Sources], Iterator[Finding]], Sequence[Content]] = {
        _crossings: (english, english_attention, operator_comparison),
        _gaps: (english, english_attention, operator_comparison),
        _anti_faithful: (english, anti_faithful),
        _unrelated: (plausibility,),
        _masks: (operator_ablation,),
        _confidence: (prompts,),
        _languages: (multilingual,),
        _tokens: (tokenization,),
        _raw: (eraser,),
    }
    if about is None:
        return [found for check in checks for found in check(sources)]
    asked = set(about)
    found = (found for check, contents in checks.items() if asked & {*contents} for found in check(sources))
    return [each for each in found if each.holds != NO_DATA]


def _word(yes: bool, no: bool) -> str:
    """Return whether a statement holds."""
    return "yes" if yes else "no" if no else "not settled"


def _joined(statement: str, stated: str, parts: Sequence[str], word: str) -> Finding:
    return Finding(statement, stated, "; ".join(parts), word) if parts else Finding(statement, stated)


def _excludes(interval: Sequence[float] | None) -> bool:
    """Return True if 0 is outside an interval."""
    return interval is not None and not interval[0] <= 0 <= interval[1]


def _crossings(sources: Sources) -> Iterator[Finding]:
    statement, stated = "The operator decides whether attention passes 55 %", "5 of 28 (18 %)"
    agreements = [
        each
        for each in sources.grid("english").agreement
        if each.line.attribution == "attention" and each.line.null == SIZE and each.line.gap is not None
        and each.line.direction == "sufficiency" and set(each.line.operators) == set(OPERATORS)
    ]  # fmt: skip
    if not agreements:
        yield Finding(statement, stated)
        return
    found = lines_by_run(lines(sources.grid("english"), methods=("attention",)), "operator")
    sides = [
        (each.run.task, {stats.reaches(found[each.run.name][name].rate, 0.55) for name in OPERATORS})
        for each in agreements
    ]
    sure = sum(each.line.crosses_threshold == "yes" for each in agreements)
    settled = all(each.line.crosses_threshold == "no" for each in agreements)
    counted = _counted([(task, len(each) > 1) for task, each in sides])
    yield Finding(statement, stated, f"{counted}, {sure} for sure", _word(sure > 0, settled))
    widest = max(agreements, key=lambda each: abs(each.line.gap or 0.0))
    first, second = (found[widest.run.name][name].line.configuration for name in widest.line.operators)
    # The widest of many gaps is wide by chance, too: its interval holds for all of them together.
    gap = widest.run.paired(second, first, level=1 - _ALPHA / len(agreements))
    assert gap is not None, "operators with a gap share examples"
    low, high = gap.interval or (-1.0, 1.0)
    apart = f"{100 * gap.difference:+.1f} pp [{100 * low:+.1f}, {100 * high:+.1f}]"
    yield Finding(
        "The widest gap between operators is far from 0",
        "43.8 pp",
        f"{apart} ({widest.run.model} on {widest.run.task}, {' − '.join(widest.line.operators)})",
        _word(_excludes((low, high)), no=False),
    )


def _gaps(sources: Sources) -> Iterator[Finding]:
    texts = {"short": list[tuple[str, bool]](), "long": list[tuple[str, bool]]()}
    for own in lines_by_run(lines(sources.grid("english"), methods=("attention",)), "operator").values():
        if set(own) == set(OPERATORS):
            gap, task = own["delete"].rate - own["infill"].rate, own["delete"].task
            texts["long" if task == "imdb" else "short"].append((task, gap < 0 if task == "imdb" else gap > 0))
    yield _majority("Deletion exceeds infill on short texts", "67 % of 21", texts["short"])
    yield _majority("Infill exceeds deletion on long texts (IMDB)", "5 of 7", texts["long"])


def _majority(statement: str, stated: str, found: Sequence[tuple[str, bool]]) -> Finding:
    """Return whether it is so in most configurations, each given with its task."""
    if not found:
        return Finding(statement, stated)
    share, word = _share(found)
    return Finding(statement, stated, f"{sum(so for _, so in found)} of {len(found)} {share}", word)


def _share(found: Sequence[tuple[str, bool]]) -> tuple[str, str]:
    """Return the 95 % interval of a share of configurations in percent, and whether it is more than half.

    Each is given with its task: those on the same texts, also of several models, are no independent evidence.
    """
    tasks = [task for task, _ in found]
    low, high = stats.mean_interval(np.array([so for _, so in found], dtype=np.float64), groups=tasks)
    return f"[{100 * low:.0f}, {100 * high:.0f}], {_data_sets(tasks)}", _word(low > 0.5, high < 0.5)


def _counted(found: Sequence[tuple[str, bool]]) -> str:
    """Return how many configurations it holds for, their share in percent, and its interval."""
    count = sum(so for _, so in found)
    return f"{count} of {len(found)} ({100 * count / len(found):.0f} % {_share(found)[0]})"


def _data_sets(tasks: Sequence[str]) -> str:
    n = len(set(tasks))
    return "1 data set" if n == 1 else f"{n} data sets"


def _anti_faithful(sources: Sources) -> Iterator[Finding]:
    found = list(lines(sources.grid("english"), operators=("delete",)))
    statement, stated = "Explanations are worse than random under deletion", "18 of 56 (32 %)"
    if not found:
        yield Finding(statement, stated)
        return
    below = [each for each in found if taxonomy(each.rate) == "anti-faithful"]
    # One of many intervals excludes one half by chance: the tests are adjusted together.
    p_values = stats.adjusted(np.array([1.0 if x.line.p_value is None else x.line.p_value for x in found]))
    sure = sum(p <= _ALPHA and each.rate < 0.5 for each, p in zip(found, p_values, strict=True))
    settled = all(ci is not None and ci.low >= 0.5 for ci in (each.line.win_rate_ci for each in found))
    ours = f"{_counted([(each.task, each in below) for each in found])}, {sure} for sure"
    yield Finding(statement, stated, ours, _word(sure > 0, settled))
    if below:
        gradient = [(each.task, each.attribution == "gradient") for each in below]
        yield _majority("Most of these are of gradient", "14 of 18", gradient)


def _unrelated(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Win rate and overlap with human rationales are unrelated", "|r| < 0.04"
    pairs: dict[tuple[str, str], list[tuple[GridRun, ExampleOutcome, float]]] = {}
    for each in overlaps(sources):
        run, line, _ = each
        if line.win_rate is not None:
            pairs.setdefault((run.model, line.attribution), []).append(each)
    parts, apart = list[str](), False
    for (model, attribution), found in pairs.items():
        overlap, rates = np.array([(each, line.win_rate) for _, line, each in found]).T
        groups = found[0][0].groups_of([line.example_id for _, line, _ in found])
        # One of many intervals excludes 0 by chance: they hold for all correlations together.
        level = 1 - _ALPHA / len(pairs)
        r = stats.correlate(overlap, rates, rng=rng_for(0, "reproduce"), level=level, groups=groups)
        if r.r is not None:
            parts.append(f"{paper_name(model)} {attribution}: {_correlation(r)}")
            apart |= _excludes(r.interval)
    yield _joined(statement, stated, parts, _word(yes=False, no=apart))


def _correlation(found: stats.Correlation) -> str:
    limits = "" if found.interval is None else " [{:+.2f}, {:+.2f}]".format(*found.interval)
    return f"{found.r:+.2f}{limits}"


def _masks(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Masks lower the win rates of language models", "59.8 → 12.9 % (attention)"
    operators = ("delete", "mask-unk", "mask-pad")
    found = {(x.run.name, x.line.attribution, x.operator): x for x in lines(sources.grid("masks"), operators=operators)}
    places = {run: [each.model, f"on {each.task}"] for (run, _, _), each in found.items()}
    varied = [len(set(each)) > 1 for each in zip(*places.values(), strict=True)]
    names = {run: "".join(f"{part} " for part in itertools.compress(each, varied)) for run, each in places.items()}
    parts, lower = list[str](), list[bool | None]()
    for (run, method, operator), each in found.items():
        deleted = found.get((run, method, "delete"))
        if operator == "delete" or deleted is None:
            continue
        parts.append(f"{names[run]}{method} {100 * deleted.rate:.1f} → {100 * each.rate:.1f} % ({operator})")
        first, second = each.line.win_rate_ci, deleted.line.win_rate_ci
        if first is None or second is None:
            lower.append(None)
        else:
            lower.append(True if first.high < second.low else False if first.low > second.high else None)
    yield _joined(statement, stated, parts, _word(all(lower), False in lower))


def _confidence(sources: Sources) -> Iterator[Finding]:
    statement = "Confidence does not predict faithfulness, over prompts"
    by_prompt: dict[tuple[str, ...], dict[str, object]] = {}
    for value in prompts(sources):
        own = by_prompt.setdefault((*value.place.values(),), {"task": value.place["task"]})
        own[value.quantity] = value.ours
    rows = paper_table("prompts").rows
    for method in METHODS:
        x, y = ([float(row[name]) for row in rows] for name in ("confidence", method))
        r = float(np.corrcoef(x, y)[0, 1])
        stated = f"r = {r:+.2f}, p = {stats.correlation_pvalue(r, len(rows)):.2f}, {len(rows)} prompts"
        points = ((str(found["task"]), found["confidence"], found.get(method)) for found in by_prompt.values())
        known = [(task, x, y) for task, x, y in points if isinstance(x, float) and isinstance(y, float)]
        yield _correlated(f"{statement} ({method})", stated, known, "prompts")


def _languages(sources: Sources) -> Iterator[Finding]:
    statement = "Win rates of attention differ between languages and their data"
    stated = "12.0 to 82.7 %, over models and operators"
    found = grouped_by(foreign_lines(sources, methods=("attention",), operators=("delete",)), "model")
    by_model = {place["model"]: own for place, own in found if len(own) > 1}
    if not by_model:
        yield Finding(statement, stated)
        return
    # The extremes of many rates are apart by chance, too: these intervals hold for all of them together.
    level = 1 - _ALPHA / sum(map(len, by_model.values()))
    parts, apart = list[str](), False
    for model, own in by_model.items():
        ranked = sorted(own, key=lambda each: each.rate)
        ends = [ranked[0], ranked[-1]]  # two languages, also where all tie
        intervals = [_interval(each, level) for each in ends]
        apart |= intervals[0].high < intervals[1].low
        texts = (
            f"{100 * each.rate:.1f} % [{100 * limits.low:.1f}, {100 * limits.high:.1f}] ({shown(each.task)})"
            for each, limits in zip(ends, intervals, strict=True)
        )
        parts.append(f"{model}: {' to '.join(texts)}")
    yield Finding(statement, stated, "; ".join(parts), _word(apart, no=False))


def _interval(each: Line, level: float) -> Interval:
    """Return the interval of a mean win rate at another level than that of the summary."""
    rates = each.run.win_rates[each.line.configuration]
    groups = each.run.groups_of([*rates])
    return stats.mean_interval(np.array([*rates.values()]), groups=groups, level=level)


def _tokens(sources: Sources) -> Iterator[Finding]:
    statement = "Token expansion does not predict faithfulness, over languages"
    expansion = {(v.place["model"], v.place["task"]): v.ours for v in tokenization(sources)}
    found = [
        (each.task, known, each.rate)
        for each in lines(sources.grid("multilingual"), methods=("attention",), operators=("delete",))
        if isinstance(known := expansion.get((each.model, each.task)), float)
    ]
    yield _correlated(statement, "stated without a number", found, "pairs of model and language")


def _correlated(statement: str, stated: str, points: Sequence[tuple[str, float, float]], counted: str) -> Finding:
    """Return whether two numbers are unrelated: refuted by an interval that excludes 0, and never proven.

    Points are given with their task; those on the same texts are one group, and r over few groups has no interval.
    """
    found, tasks = stats.Correlation(0), [task for task, _, _ in points]
    if points:
        x, y = np.array([numbers for _, *numbers in points], dtype=np.float64).T
        are_few = len(set(tasks)) < min(_ENOUGH_SETS, len(tasks))
        found = stats.correlate(x, y, rng=rng_for(0, "reproduce"), groups=None if are_few else tasks)
        found = replace(found, interval=None) if are_few else found
    if found.r is None:
        return Finding(statement, stated)
    ours = f"r = {_correlation(found)}, {found.n} {counted}, {_data_sets(tasks)}"
    return Finding(statement, stated, ours, _word(yes=False, no=_excludes(found.interval)))


def _raw(sources: Sources) -> Iterator[Finding]:
    statement, stated = "Where raw scores and win rates disagree, the raw score alone is positive", "49 of 53 (92 %)"
    values = {name: [v for v in eraser(sources) if v.quantity == name] for name in ("raw", "win_rate")}
    known = [
        (raw.place["task"], raw.ours, rate.ours)
        for raw, rate in zip(values["raw"], values["win_rate"], strict=True)
        if isinstance(raw.ours, float) and isinstance(rate.ours, float)
    ]
    if not known:
        yield Finding(statement, stated)
        return
    compared = eraser_agreement([raw for _, raw, _ in known], [rate for _, _, rate in known])
    differ = [each for each, agree in zip(known, compared.agree, strict=True) if agree is False]
    ours, word = f"{compared.eraser_only} of {len(differ)}, among {len(known)} configurations", "not settled"
    if differ:
        share, word = _share([(task, not stats.reaches(rate, 0.55)) for task, _, rate in differ])
        ours = f"{ours} {share}"
    yield Finding(statement, stated, ours, word)
