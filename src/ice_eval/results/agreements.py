"""Agreement between the operators of a run on the same attribution, and rankings of attributions on one operator."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.operators import is_removal
from ice_eval.results import records
from ice_eval.results.outcomes import ALL, Outcomes, groups_of
from ice_eval.results.records import Configuration, ExampleOutcome, RunSettings, SummaryLine

N_NAMED = 20
"""Largest number of disagreeing examples that are listed; those with the largest gap come first."""
_NO_DOUBT = 1e12

Grouped = Mapping[Configuration, Outcomes]


def agreements(grouped: Grouped, config: RunSettings) -> list[records.AgreementLine]:
    """Return a line for every attribution and pair of operators."""
    found = []
    for head, by_operator in _by_operator(grouped).items():
        for pair in itertools.combinations(by_operator, 2):
            shared = _shared([by_operator[name] for name in pair])
            line = records.AgreementLine(**_named(head, config), operators=pair, n=len(shared[0]))
            found.append(_compared(line, shared[0], shared[1], config) if line.n else line)
    return found


def _compared(
    line: records.AgreementLine, first: Outcomes, second: Outcomes, config: RunSettings
) -> records.AgreementLine:
    pair = first, second
    left, right = first.column("win_rate"), second.column("win_rate")
    found = stats.agreement(left, right, groups=groups_of(first), anytime=config.until is not None)
    n_sets = [_effective_sets(each.column("m"), each.flag("exact"), each.column("m_effective")) for each in pair]
    line = replace(line, **vars(found))
    if any(np.isnan(each.column("first_half")).any() for each in pair):
        return line  # one fill does not show how much fills matter
    reliabilities = [stats.reliability(each.column("first_half"), each.column("second_half")) for each in pair]
    differ = stats.sides_differ(left, right, *n_sets)
    by_gap = np.argsort(-np.abs(left - right), kind="stable")
    return replace(
        line,
        rank_correlation_ceiling=stats.ceiling(*reliabilities),
        disagree_rate=float(differ.mean()),
        disagree=tuple([first.ids[index] for index in by_gap if differ[index]][:N_NAMED]),
    )


def disagreements(outcomes: Sequence[ExampleOutcome]) -> list[bool]:
    """Return a mask of one example's outcomes whose operators are on opposite sides of one half, beyond null noise."""
    groups: dict[Configuration, list[int]] = {}
    for place, line in enumerate(outcomes):
        if line.operator != ALL and line.error is None:
            groups.setdefault(line.configuration._replace(operator=""), []).append(place)
    numbers = [(line.win_rate, line.m, line.exact, line.m_effective) for line in outcomes]
    rates, m, exact, effective = np.array(numbers, dtype=np.float64).reshape(-1, 4).T
    n_sets, found = _effective_sets(m, exact == 1, effective), set[Configuration]()
    for head, places in groups.items():
        left, right = np.array([*itertools.combinations(places, 2)], dtype=np.int64).reshape(-1, 2).T
        if left.size and stats.sides_differ(rates[left], rates[right], n_sets[left], n_sets[right]).any():
            found.add(head)
    return [line.configuration._replace(operator="") in found for line in outcomes]


def _effective_sets(m: NDArray[Any], exact: NDArray[np.bool_], effective: NDArray[Any]) -> NDArray[np.float64]:
    """Return the number of independent sets behind win rates."""
    # A null of all existing sets leaves no doubt, as one of very many would, unless fills were drawn.
    return np.where(np.isnan(effective), np.where(exact, _NO_DOUBT, m), effective)


def robustness(grouped: Grouped, config: RunSettings) -> Iterator[records.RobustnessLine]:
    """Yield one line per attribution, with one word over all its operators."""
    for head, by_operator in _by_operator(grouped).items():
        if len(by_operator) > 1:
            first, *_ = shared = _shared(list(by_operator.values()))
            found: dict[str, Any] = {}
            if len(first):
                rates = np.stack([outcomes.column("win_rate") for outcomes in shared], axis=1)
                found = vars(stats.robustness(rates, groups=groups_of(first), anytime=config.until is not None))
            yield records.RobustnessLine(**_named(head, config), operators=tuple(by_operator), n=len(first), **found)


def rankings(grouped: Grouped, config: RunSettings) -> Iterator[records.RankingLine]:
    """Yield all attributions that were tested alike, head to head, in the order of their win rates."""
    alike: dict[Configuration, dict[str, Outcomes]] = {}
    for cell, outcomes in grouped.items():
        if cell.k is not None and outcomes.sound.any():
            alike.setdefault(cell._replace(attribution=""), {})[cell.attribution] = outcomes
    for head, by_name in alike.items():
        if len(by_name) < 2:
            continue
        rates = {name: float(each.column("win_rate")[each.sound].mean()) for name, each in by_name.items()}
        names = sorted(rates, key=lambda name: -rates[name])
        pairs = _pairs([(pair, [by_name[name] for name in pair]) for pair in itertools.combinations(names, 2)], config)
        yield records.RankingLine(**_named(head, config, "attribution"), ranking=_groups(names, pairs), pairs=pairs)


def _pairs(
    several: Sequence[tuple[tuple[str, ...], list[Outcomes]]], config: RunSettings
) -> tuple[records.PairLine, ...]:
    """Compare attributions two by two over their common examples; intervals hold together."""
    found, p_values = [], list[float | None]()
    for (first, second), outcomes in several:
        shared = _shared(outcomes)
        line, p_value = records.PairLine(attributions=(first, second), n=len(shared[0])), None
        if line.n:
            left, right = (each.column("win_rate") for each in shared)
            level, anytime = 1 - 0.05 / len(several), config.until is not None
            result = stats.paired_difference(right, left, groups=groups_of(shared[0]), level=level, anytime=anytime)
            line, p_value = replace(line, difference=result.difference, difference_ci=result.interval), result.p_value
        found.append(line)
        p_values.append(p_value)
    adjusted = stats.adjusted_known(p_values)
    return tuple(replace(line, p_adjusted=p_value) for line, p_value in zip(found, adjusted, strict=True))


def _groups(names: Sequence[str], pairs: Sequence[records.PairLine]) -> tuple[tuple[str, ...], ...]:
    """Divide a ranking wherever everything before is ahead of everything after."""
    ahead = {each.attributions for each in pairs if each.difference_ci is not None and each.difference_ci.low > 0}
    ends = [
        place
        for place in range(1, len(names))
        if all(pair in ahead for pair in itertools.product(names[:place], names[place:]))
    ]
    return tuple(tuple(names[start:end]) for start, end in itertools.pairwise([0, *ends, len(names)]))


def kappas(runs: Sequence[Sequence[SummaryLine]]) -> list[records.KappaLine]:
    """Compute Cohen's kappa of the taxonomy for every pair of operators, over the configurations that have both."""
    words: dict[str, dict[tuple[object, ...], str]] = {}
    for run, lines in enumerate(runs):
        for line in lines:
            if line.operator != ALL and is_removal(line.operator) and line.taxonomy is not None:
                place = run, line.model, line.task, line.configuration._replace(operator="")
                words.setdefault(line.operator, {})[place] = line.taxonomy
    found = []
    for first, second in itertools.combinations(words, 2):
        shared = [place for place in words[first] if place in words[second]]
        kappa = stats.kappa([words[first][p] for p in shared], [words[second][p] for p in shared])
        found.append(records.KappaLine(operators=(first, second), n_configurations=len(shared), kappa=kappa))
    return found


def _by_operator(grouped: Grouped) -> dict[Configuration, dict[str, Outcomes]]:
    """Return the outcomes of every attribution, null, direction and k by operator that removes units."""
    found: dict[Configuration, dict[str, Outcomes]] = {}
    for cell, outcomes in grouped.items():
        if cell.operator != ALL and is_removal(cell.operator):
            found.setdefault(cell._replace(operator=""), {})[cell.operator] = outcomes
    return found


def _shared(several: Sequence[Outcomes]) -> list[Outcomes]:
    """Select the examples that no operator failed on."""
    sound = np.logical_and.reduce([outcomes.sound for outcomes in several])
    return [outcomes.select(sound) for outcomes in several]


def _named(head: Configuration, config: RunSettings, without: str = "operator") -> dict[str, Any]:
    """Return the identifying fields of a line."""
    named = {"model": config.model, "task": config.task, **head._asdict()}
    del named[without]
    return named
