"""What the operators of a run say about the same attribution, on the same examples."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._seeding import rng_for
from ice_eval.results.columns import Outcomes, groups_of
from ice_eval.results.outcomes import ALL, Configuration

N_NAMED = 20
"""Examples that disagree are named, those with the largest gap first, up to this many."""

_NO_DOUBT = 1e12

Grouped = Mapping[Configuration, Outcomes]


def agreements(grouped: Grouped, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A record for every attribution and pair of operators."""
    for head, by_operator in _by_operator(grouped):
        for pair in itertools.combinations(by_operator, 2):
            first, second = _shared([by_operator[name] for name in pair])
            found = _agreement(first, second, config) if len(first) else dict.fromkeys(_AGREEMENT)
            yield {**_named(head, config), "operators": list(pair), "n": len(first), **found}


_AGREEMENT = (
    "gap", "gap_ci", "p_crosses", "crosses_threshold", "same_taxonomy", "rank_correlation", "rank_correlation_ceiling",
    "disagree_rate", "disagree",
)  # fmt: skip


def _agreement(first: Outcomes, second: Outcomes, config: Mapping[str, Any]) -> dict[str, Any]:
    left, right = first.column("win_rate"), second.column("win_rate")
    found = stats.agreement(left, right, rng=rng_for(config["seed"], "agreement"), groups=groups_of(first))
    differ = stats.sides_differ(left, right, _sets_behind(first), _sets_behind(second))
    by_gap = np.argsort(-np.abs(left - right), kind="stable")
    named = [first.ids[index] for index in by_gap if differ[index]][:N_NAMED]
    values = (
        found.gap,
        None if found.gap_ci is None else list(found.gap_ci),
        found.p_crosses,
        found.crosses_threshold,
        found.same_taxonomy,
        found.rank_correlation,
        stats.ceiling(_reliability(first), _reliability(second)),
        float(differ.mean()),
        named,
    )
    return dict(zip(_AGREEMENT, values, strict=True))


def _sets_behind(outcomes: Outcomes) -> NDArray[np.float64]:
    """Random sets behind each win rate; a null of all sets there are leaves no doubt, as one of very many would."""
    return np.where(outcomes.flag("exact"), _NO_DOUBT, outcomes.column("m"))


def _reliability(outcomes: Outcomes) -> float | None:
    return stats.reliability(outcomes.column("first_half"), outcomes.column("second_half"))


def robustness(grouped: Grouped, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """For every attribution one word on all its operators: robust, operator-dependent or inconclusive."""
    for head, by_operator in _by_operator(grouped):
        shared = _shared(list(by_operator.values()))
        if len(by_operator) < 2:
            continue
        record = {**_named(head, config), "operators": list(by_operator), "n": len(shared[0])}
        if not len(shared[0]):
            yield {**record, "word": None, "spread": None, "sides": None}
            continue
        rates = np.stack([outcomes.column("win_rate") for outcomes in shared], axis=1)
        found = stats.robustness(rates, rng=rng_for(config["seed"], "agreement"), groups=groups_of(shared[0]))
        yield {**record, "word": found.word, "spread": found.spread, "sides": list(found.sides)}


def kappas(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Agreement of every pair of operators on the taxonomy's word, over the configurations that both have."""
    words: dict[str, dict[tuple[Any, ...], str]] = {}
    for line in lines:
        if line["operator"] != ALL and line["taxonomy"] is not None:
            place = tuple(line.get(name) for name in _PLACE)
            words.setdefault(line["operator"], {})[place] = line["taxonomy"]
    found = []
    for first, second in itertools.combinations(words, 2):
        shared = [place for place in words[first] if place in words[second]]
        kappa = stats.kappa([words[first][p] for p in shared], [words[second][p] for p in shared])
        found.append({"operators": [first, second], "n_configurations": len(shared), "kappa": kappa})
    return found


_PLACE = ("run", "model", "task", "attribution", "direction", "k", "null")
"""What names a configuration beside its operator; several runs are told apart by a number."""


def _by_operator(grouped: Grouped) -> Iterator[tuple[Configuration, dict[str, Outcomes]]]:
    """The outcomes of every attribution, null, direction and k under each operator by itself."""
    found: dict[Configuration, dict[str, Outcomes]] = {}
    for cell, outcomes in grouped.items():
        if cell.operator != ALL:
            found.setdefault(cell._replace(operator=""), {})[cell.operator] = outcomes
    yield from found.items()


def _shared(several: Sequence[Outcomes]) -> list[Outcomes]:
    """The examples that none of the operators failed on."""
    sound = np.logical_and.reduce([outcomes.sound for outcomes in several])
    return [outcomes.select(sound) for outcomes in several]


def _named(head: Configuration, config: Mapping[str, Any]) -> dict[str, Any]:
    values = head._asdict()
    order = ("attribution", "k", "direction", "null")
    return {"model": config["model"], "task": config["task"], **{name: values[name] for name in order}}
