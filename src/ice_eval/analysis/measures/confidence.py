"""Confidence of the model, predicted from its attributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.analysis._runs import as_list, confidences_of, explained, groups_of, vectors_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.analysis.measures.compactness import entropy
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.seeding import rng_for
from ice_eval.stats import Groups
from ice_eval.table import Column

FEWEST = 20
"""Fewest examples for five folds of a regression with six features."""
_FOLDS = 5
_COLUMNS = (
    Column("attribution", "attribution", "text"),
    Column("n", "n", "count"),
    Column("error", "mean error", "number"),
    Column("baseline", "of the mean", "number"),
    Column("gain", "gain", "signed"),
    Column("gain_ci", "95 % CI", "signed interval"),
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
@dataclass(frozen=True, kw_only=True)
class Confidence(Measure):
    """How well an attribution's numbers predict the model's confidence, against a guess of the mean."""

    needs = f"{FEWEST} examples"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        confidences = confidences_of(folder)
        rows = [row for row in explained(folder) if row.example_id in confidences]
        if np.ptp([confidences[row.example_id] for row in rows] or [0.0]) == 0:
            return Missing("the model is equally sure of every example")
        lines = [line for name in config.attributions if (line := _line(name, rows, confidences, config))]
        if not lines:
            return Missing(f"no attribution has {FEWEST} examples (of {_FOLDS} groups, if grouped); raise --n")
        return Found((Part("Confidence from attributions", _COLUMNS, tuple(lines)),))


def _line(
    name: str, rows: Sequence[InputRow], confidences: Mapping[str, float], config: RunSettings
) -> dict[str, Any] | None:
    used = vectors_of(name, rows, config)
    groups = groups_of([row for row, _ in used])
    if len(used) < FEWEST or (groups is not None and len(set(groups)) < _FOLDS):
        return None
    x = np.array([features(vector) for _, vector in used])
    y = np.array([confidences[row.example_id] for row, _ in used])
    predicted, guessed = _predictions(x, y, _folds(len(y), groups, seed=config.seed))
    error, baseline = np.abs(predicted - y), np.abs(guessed - y)
    interval = stats.difference_interval(baseline, error, rng=rng_for(config.seed, "confidence", name), groups=groups)
    return {
        "attribution": name,
        "n": len(used),
        "error": float(error.mean()),
        "baseline": float(baseline.mean()),
        "gain": float((baseline - error).mean()),
        "gain_ci": as_list(interval),
    }


def _predictions(
    x: NDArray[np.float64], y: NDArray[np.float64], fold_of: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the predictions of a ridge regression on the other folds, and of their mean, for every example."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    predicted, guessed = np.empty_like(y), np.empty_like(y)
    for fold in range(_FOLDS):
        held_out = fold_of == fold
        fitted = make_pipeline(StandardScaler(), Ridge()).fit(x[~held_out], y[~held_out])
        predicted[held_out] = np.clip(fitted.predict(x[held_out]), 0, 1)
        guessed[held_out] = y[~held_out].mean()
    return predicted, guessed


def _folds(n: int, groups: Groups, *, seed: int) -> NDArray[np.int64]:
    """Return the fold of every example; a group is in one fold."""
    labels = list(range(n)) if groups is None else [list(dict.fromkeys(groups)).index(group) for group in groups]
    order = rng_for(seed, "confidence", "folds").permutation(max(labels) + 1)
    return order[labels] % _FOLDS
