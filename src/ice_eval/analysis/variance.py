"""Variance components of a grid's win rates, and win rates pooled over its models, tasks, prompts and texts.

Every win rate of an example is a mean plus an effect of each factor and of each combination of factors. Models, tasks,
prompts (of a task) and texts (of a task) are samples. Two values that share exactly the factors S have an expected
product that is the sum of the variances of all combinations within S. So mean products over pairs of values give all
variances, without iterations: the ANOVA estimates if the grid is complete, and unbiased ones if values are missing.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ice_eval.analysis._base import Found, Missing, Part, Values, filled
from ice_eval.analysis.grid import GridResults, is_control
from ice_eval.rationales import Share
from ice_eval.results.outcomes import ALL
from ice_eval.stats import Interval
from ice_eval.table import columns, estimate, naming

FEW = 5
"""Smallest number of levels whose variance is not called a rough guess."""
Factors = Mapping[str, NDArray[np.int64]]
"""Level of every value, by the name of the factor."""
Combination = frozenset[str]


def components(values: Values, factors: Factors) -> dict[Combination, float]:
    """Return the variance of every combination of factors, estimated by the method of moments.

    Values are one per combination of levels; the combination of all factors includes the noise. Estimates are unbiased,
    so small ones may be negative. Combinations that the values do not separate from larger ones are left out.
    """
    sets = [frozenset(each) for size in range(len(factors) + 1) for each in combinations(factors, size)]
    both = (np.ones(values.size), values - values.mean())
    sharing = {}  # number of pairs that share at least these factors, and the sum of their products
    for each in sets:
        cells = _cells(factors, each)
        sharing[each] = np.array([_squares(cells, of) for of in both])
    found: dict[Combination, float] = {}
    for own in sets:
        # Pairs that share these factors and no others, by inclusion and exclusion.
        number, products = np.sum([(-1) ** len(each - own) * sharing[each] for each in sets if each >= own], axis=0)
        if number > 0:
            found[own] = float(products / number) - sum(found[each] for each in found if each < own)
    found.pop(frozenset(), None)
    return found


def _cells(factors: Factors, names: Combination) -> NDArray[np.int64]:
    """Return a number for every value's combination of levels of some factors."""
    codes = np.zeros(len(next(iter(factors.values()))), dtype=np.int64)
    for levels in (factors[name] for name in factors if name in names):  # sets have an order of their own in every run
        codes = codes * (levels.max() + 1) + levels
    return np.unique(codes, return_inverse=True)[1]


def _squares(cells: NDArray[np.int64], values: Values) -> float:
    """Return the sum of products of all ordered pairs of values in the same cell."""
    return float(np.sum(np.bincount(cells, weights=values) ** 2))


class Pooled(NamedTuple):
    """A mean with an interval for further levels of every factor."""

    mean: float
    interval: Interval | None
    """95 % interval within [0, 1]; None where there are too few levels, or all values are equal."""
    df: float | None
    """Degrees of freedom of the interval."""


def pooled(values: Values, factors: Factors, weights: Values) -> Pooled:
    """Return the weighted mean of win rates whose factors, crossed or nested, are all samples.

    Negative variances count as 0, which makes the interval wider. Degrees of freedom are Satterthwaite's.
    """
    shares = weights / weights.sum()
    mean, known = float(shares @ values), components(values, factors) if factors else {}
    variances, freedom, signs = dict[Combination, float](), dict[Combination, int](), dict[Combination, int]()
    for own in known:
        cells, within = _cells(factors, own), [each for each in freedom if each < own]
        variances[own] = max(known[own], 0.0) * _squares(cells, shares)
        freedom[own] = int(cells.max()) - sum(freedom[each] for each in within)
        signs[own] = 1 - sum(signs[each] for each in within)
    # The signed sum of these terms is the variance of the mean. Of a complete grid, they are ANOVA's mean squares.
    terms = {own: sum(variances[each] for each in variances if each >= own) for own in signs if signs[own]}
    variance = sum(variances.values())
    if variance <= 0 or min(freedom[own] for own in terms) < 1:
        return Pooled(mean, None, None)
    df = variance**2 / sum(signs[own] ** 2 * term**2 / freedom[own] for own, term in terms.items())
    df = max(df, min(freedom[own] for own in terms))  # it may be lower only because negative variances count as 0
    half = float(student.ppf(0.975, df)) * math.sqrt(variance)
    return Pooled(mean, Interval(max(mean - half, 0.0), min(mean + half, 1.0)), df)


# --- the question -------------------------------------------------------------------------------------------------

_FIELDS = ("attribution", "operator", "model", "task", "prompt", "text")
_WITHIN_TASKS = frozenset({"prompt", "text"})
_EQUAL = frozenset({"model", "task"})
"""Every model on every task counts alike in a pooled win rate, however many prompts and texts it has."""
_SOURCES = {
    "attribution": {"attribution"},
    "operator": {"operator"},
    "attribution × operator": {"attribution", "operator"},
    "model": {"model"},
    "task": {"task"},
    "prompt": {"task", "prompt"},  # values that share a prompt or a text share the task
    "text": {"task", "text"},
}
_SHARE_COLUMNS = (
    *naming("source", "null", "direction", "k"),
    *columns("count", n_levels="levels"),
    *columns("percent", share="share of variance"),
    *columns("width", sd="SD"),
)
_POOLED_COLUMNS = (
    *naming("attribution", "operator", "null", "direction", "k"),
    *columns("count", n_models="models", n_tasks="tasks", n_prompts="prompts", n_texts="texts"),
    *estimate("win_rate", "win rate", "percent"),
    *columns("decimal", df="df"),
)

_Key = tuple[Hashable, ...]  # a value of every name in `_FIELDS`
_Rates = dict[_Key, float]


def variance(grid: GridResults) -> Found | Missing:
    """Return the shares of the variance of win rates by source, and win rates pooled over models, tasks and prompts."""
    if len(grid.runs) < 2:
        return Missing("the grid has one run; give two or more models, tasks or prompts")
    shares, means = list[dict[str, Any]](), list[dict[str, Any]]()
    for (null, direction, k), rates in _rates(grid).items():
        place = {"null": null, "direction": direction, "k": k}
        judged = {key: rate for key, rate in rates.items() if not is_control(str(key[0]))}
        shares += [{**line, **place} for line in _share_lines(judged)]
        means += [{**line, **place} for line in _pooled_lines(rates)]
    notes = [
        "Pooled intervals are about further models, tasks, prompts and texts. They are wide where df, roughly the "
        "number of models and tasks that they rest on, is small."
    ]
    if shares:
        notes.append(
            "Shares are of the variance between examples' win rates, without controls; the rest is other interactions "
            f"and noise. Shares of sources with fewer than {FEW} levels are rough."
        )
        single = ", ".join(name for name in _FIELDS if name not in {line["source"] for line in shares})
        if single:
            notes.append(f"Left out, with one level or not separated by the grid: {single}. Results hold for it alone.")
    parts = filled(
        Part("Sources of variance", _SHARE_COLUMNS, shares), Part("Pooled win rates", _POOLED_COLUMNS, means)
    )
    return Found(parts, tuple(notes)) if means else Missing("no example was evaluated")


def _rates(grid: GridResults) -> dict[tuple[str, str, Share | None], _Rates]:
    """Return the win rate of every text (mean of those that share a passage) by null, direction and k."""
    found = defaultdict[tuple[str, str, Share | None], dict[_Key, list[float]]](lambda: defaultdict(list))
    for run in grid.runs:
        for own, rates in ((own, rates) for own, rates in run.win_rates.items() if own.operator != ALL):
            for example, rate in rates.items():
                group = run.inputs[example].group
                text = group, example if group is None else ""
                key = (own.attribution, own.operator, run.model, run.task, run.prompt, text)
                found[own.null, own.direction, own.k][key].append(rate)
    return {place: {key: float(np.mean(each)) for key, each in own.items()} for place, own in found.items()}


def _levels(keys: Iterable[_Key], name: str) -> NDArray[np.int64]:
    """Return the level of a factor in every key; prompts and texts of different tasks are different."""
    numbers: dict[_Key, int] = {}
    chosen = [_FIELDS.index(each) for each in (("task", name) if name in _WITHIN_TASKS else (name,))]
    return np.array([numbers.setdefault(tuple(key[i] for i in chosen), len(numbers)) for key in keys], dtype=np.int64)


def _varied(levels: Factors) -> dict[str, NDArray[np.int64]]:
    """Return the factors that have several levels; prompts and texts must be several in some task."""
    fewest = {name: levels["task"].max() if name in _WITHIN_TASKS else 0 for name in levels}
    return {name: each for name, each in levels.items() if each.max() > fewest[name]}


def _share_lines(rates: _Rates) -> list[dict[str, Any]]:
    """Return standard deviation and share of the total variance of every source that varies, and of the rest."""
    factors = _varied({name: _levels(rates, name) for name in _FIELDS}) if rates else {}
    known = components(np.array(list(rates.values())), factors) if factors else {}
    lines = list[dict[str, Any]]()
    for name, source in _SOURCES.items():
        own = frozenset(source & factors.keys())
        if set(name.split(" × ")) <= own < factors.keys() and own in known:
            n_levels = int(_cells(factors, own).max()) + 1
            lines.append({"source": name, "n_levels": n_levels, "variance": known[own]})
    rest = sum(known.values()) - sum(line["variance"] for line in lines)
    lines.append({"source": "rest", "n_levels": None, "variance": rest})
    positive = [max(line["variance"], 0.0) for line in lines]
    if not sum(positive):
        return []
    return [
        {**line, "sd": math.sqrt(own), "share": own / sum(positive)} for line, own in zip(lines, positive, strict=True)
    ]


def _pooled_lines(rates: _Rates) -> list[dict[str, Any]]:
    """Return the pooled win rate of every attribution under every operator."""
    lines, groups = [], defaultdict[_Key, _Rates](dict)
    for key, rate in rates.items():
        groups[key[:2]][key] = rate
    for (attribution, operator), own in groups.items():
        levels = {name: _levels(own, name) for name in _FIELDS[2:]}
        runs = _cells(levels, _EQUAL)
        found = pooled(np.array(list(own.values())), _varied(levels), 1 / np.bincount(runs)[runs])
        counts = {f"n_{name}s": int(each.max()) + 1 for name, each in levels.items()}
        line = {"attribution": attribution, "operator": operator, **counts}
        lines.append({**line, "win_rate": found.mean, "win_rate_ci": found.interval, "df": found.df})
    return lines
