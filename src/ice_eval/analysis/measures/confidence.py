"""Attributions beside the confidence of the model: how well they predict it, and whether both vary together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ice_eval import stats
from ice_eval.analysis.examples import Values, confidences_of, explained, groups_of, vectors_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.analysis.measures.explanations import entropy
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.seeding import rng_for
from ice_eval.stats import Groups
from ice_eval.table import N, columns, estimate, naming

FEWEST, _FOLDS = 20, 5
"""Fewest examples for five folds of a regression with six features."""
_ERRORS = (
    *naming("attribution"),
    *N,
    *columns("number", error="mean error", baseline="of the mean"),
    *estimate("gain", "gain", "signed"),
)


def features(vector: PerUnit) -> list[float]:
    """Return maximum, its lead over the second, mean, spread, share of the largest magnitude, and entropy."""
    # None of them grows with the length of a text by its definition, as a sum would.
    second, first = np.sort(vector)[-2:]
    magnitudes = np.abs(vector)
    largest = float(magnitudes.max() / magnitudes.sum()) if magnitudes.any() else 0.0
    spread = entropy(vector) if magnitudes.any() else 0.0
    return [float(first), float(first - second), float(vector.mean()), float(vector.std()), largest, spread]


@measure("confidence")
class Confidence(Measure):
    """How well an attribution's numbers predict the model's confidence, against a guess of the mean."""

    needs = f"{FEWEST} examples"

    def of(self, folder: RunFolder) -> Found | Missing:
        config, confidences = folder.manifest().config, confidences_of(folder)
        rows = [row for row in explained(folder) if row.example_id in confidences]
        if np.ptp([confidences[row.example_id] for row in rows] or [0.0]) == 0:
            return Missing("the model is equally sure of every example")
        lines = [line for name in config.attributions if (line := _gain(name, rows, confidences, config))]
        if not lines:
            return Missing(f"no attribution has {FEWEST} examples (of {_FOLDS} groups, if grouped); raise --n")
        return Found((Part("Confidence from attributions", _ERRORS, lines),))


def _gain(
    name: str, rows: Sequence[InputRow], confidences: Mapping[str, float], config: RunSettings
) -> dict[str, Any] | None:
    """Return the errors of a ridge regression on the other folds, and of their mean; None for too few examples."""
    used = vectors_of(name, rows, config)
    groups = groups_of([row for row, _ in used])
    if len(used) < FEWEST or (groups is not None and len(set(groups)) < _FOLDS):
        return None
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.array([features(vector) for _, vector in used])
    y = np.array([confidences[row.example_id] for row, _ in used])
    folds = PredefinedSplit(_folds(len(y), groups, seed=config.seed))
    predicted = np.clip(cross_val_predict(make_pipeline(StandardScaler(), Ridge()), x, y, cv=folds), 0, 1)
    guessed = cross_val_predict(DummyRegressor(), x, y, cv=folds)
    error, baseline = np.abs(predicted - y), np.abs(guessed - y)
    interval = stats.paired_difference(error, baseline, groups=groups).interval
    means = {"error": float(error.mean()), "baseline": float(baseline.mean()), "gain": float((baseline - error).mean())}
    return {"attribution": name, "n": len(used), **means, "gain_ci": interval}


def _folds(n: int, groups: Groups, *, seed: int) -> NDArray[np.int64]:
    """Return the fold of every example; a group is in one fold."""
    labels = list(range(n)) if groups is None else [list(dict.fromkeys(groups)).index(group) for group in groups]
    order = rng_for(seed, "confidence", "folds").permutation(max(labels) + 1)
    return order[labels] % _FOLDS


# --- consistency --------------------------------------------------------------------------------------------------

FEWEST_PAIRED = 10
"""Fewest examples with the same target: below, the order of pairs is mostly chance."""
_MOST = 300
"""Number of first examples whose pairs are compared: pairs grow with the square of examples."""
_PERMUTATIONS = 999
_GRID = np.linspace(0, 1, 21)[1:]
_TINY = 1e-12
"""Probabilities are clipped this far from 0 and 1: log-odds stay finite."""
_NUMBERS = (*columns("count", pairs="pairs"), *columns("signed", rho="rho"), *columns("p-value", p_value="p"))


def concentration(vector: PerUnit) -> Values:
    """Return the share of the magnitude that the top 5 %, 10 %, … 100 % of the units hold; 0 where there is none."""
    magnitudes = np.sort(np.abs(vector))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(magnitudes)]) / max(float(magnitudes.sum()), np.finfo(np.float64).tiny)
    return np.interp(_GRID, np.linspace(0, 1, vector.size + 1), shares)


@measure("consistency")
class Consistency(Measure):
    """Whether examples that the model is equally sure of get attributions that are equally concentrated."""

    needs = f"{FEWEST_PAIRED} examples with the same target"

    def of(self, folder: RunFolder) -> Found | Missing:
        config, confidences = folder.manifest().config, confidences_of(folder)
        rows = [row for row in explained(folder) if row.example_id in confidences]
        lines = [line for name in config.attributions if (line := _correlation(name, rows, confidences, config))]
        if not lines:
            return Missing(
                f"no attribution and confidence differ over {FEWEST_PAIRED} examples with the same target; raise --n"
            )
        grouped = "examples of a group are not exchangeable one by one: rho is a description, without a p-value"
        part = Part("Consistency of confidence and attribution", (*naming("attribution"), *N, *_NUMBERS), lines)
        return Found((part,), (grouped,) if groups_of(rows) is not None else ())


def _correlation(
    name: str, rows: Sequence[InputRow], confidences: Mapping[str, float], config: RunSettings
) -> dict[str, Any] | None:
    used = [(row, vector) for row, vector in vectors_of(name, rows, config) if vector.any()][:_MOST]
    targets = np.array([-1 if row.target is None else row.target for row, _ in used])
    if not used or np.bincount(targets + 1).max() < FEWEST_PAIRED:
        return None
    profiles = np.array([concentration(vector) for _, vector in used])
    sure = np.clip([confidences[row.example_id] for row, _ in used], _TINY, 1 - _TINY)
    log_odds = np.log(sure) - np.log1p(-sure)
    found = pair_correlation(
        np.abs(profiles[:, None] - profiles[None]).mean(axis=2),
        np.abs(np.subtract.outer(log_odds, log_odds)),
        targets,
        rng=rng_for(config.seed, "consistency", name),
    )
    if found is None:
        return None
    # Exchanging single examples of a group would call most groups significant.
    p_value = found["p_value"] if groups_of([row for row, _ in used]) is None else None
    return {"attribution": name, "n": len(used), **found, "p_value": p_value}


def pair_correlation(
    first: Values, second: Values, classes: NDArray[np.int64], *, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Return Spearman's rho of two matrices of distances, over pairs of one class, with its two-sided p-value."""
    # Pairs share examples, so the p-value comes from exchanging whole examples within their class (Mantel, 1967).
    # None where one kind of distance is constant.
    rows, columns = np.nonzero(np.triu(np.equal.outer(classes, classes), k=1))
    x, y = rankdata(first[rows, columns]), rankdata(second[rows, columns])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    ranks = np.zeros_like(second)
    ranks[rows, columns] = ranks[columns, rows] = y
    members = [np.flatnonzero(classes == each) for each in np.unique(classes)]
    null, order = np.empty(_PERMUTATIONS), np.empty(classes.size, dtype=np.int64)
    for draw in range(_PERMUTATIONS):
        for places in members:
            order[places] = rng.permutation(places)
        null[draw] = (x * ranks[order[rows], order[columns]]).mean()
    rho = float((x * y).mean())
    return {"pairs": rows.size, "rho": rho, "p_value": stats.upper_pvalue(abs(rho), np.abs(null))}
