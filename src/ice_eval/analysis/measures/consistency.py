"""Consistency: examples that the model treats alike should be explained alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ice_eval import stats
from ice_eval.analysis._runs import confidences_of, explained, groups_of, vectors_of
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.seeding import rng_for
from ice_eval.table import Column

FEWEST = 10
"""Fewest examples: below, the order of pairs is mostly chance."""
MOST = 300
"""Number of first examples whose pairs are compared: pairs grow with the square of examples."""
_PERMUTATIONS = 999
_GRID = np.linspace(0, 1, 21)[1:]
_TINY = 1e-12
"""Probabilities are clipped this far from 0 and 1: log-odds stay finite."""
_COLUMNS = (
    Column("attribution", "attribution", "text"),
    Column("n", "n", "count"),
    Column("pairs", "pairs", "count"),
    Column("rho", "rho", "signed"),
    Column("p_value", "p", "p-value"),
)


def concentration(vector: PerUnit) -> NDArray[np.float64]:
    """Return the share of the magnitude that the top 5 %, 10 %, … 100 % of the units hold; 0 where there is none."""
    magnitudes = np.sort(np.abs(vector))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(magnitudes)]) / max(float(magnitudes.sum()), np.finfo(np.float64).tiny)
    return np.interp(_GRID, np.linspace(0, 1, vector.size + 1), shares)


@measure("consistency")
@dataclass(frozen=True, kw_only=True)
class Consistency(Measure):
    """Whether examples that the model is equally sure of get attributions that are equally concentrated."""

    needs = f"{FEWEST} examples with the same target"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        confidences = confidences_of(folder)
        rows = [row for row in explained(folder) if row.example_id in confidences]
        lines = [line for name in config.attributions if (line := _line(name, rows, confidences, config))]
        if not lines:
            return Missing(
                f"no attribution and confidence differ over {FEWEST} examples with the same target; raise --n"
            )
        part = Part("Consistency of confidence and attribution", _COLUMNS, tuple(lines))
        grouped = "examples of a group are not exchangeable one by one: rho is a description, without a p-value"
        return Found((part,), (grouped,) if groups_of(rows) is not None else ())


def _line(
    name: str, rows: Sequence[InputRow], confidences: Mapping[str, float], config: RunSettings
) -> dict[str, Any] | None:
    used = [(row, vector) for row, vector in vectors_of(name, rows, config) if vector.any()][:MOST]
    targets = np.array([-1 if row.target is None else row.target for row, _ in used])
    if not used or np.bincount(targets + 1).max() < FEWEST:
        return None
    profiles = np.array([concentration(vector) for _, vector in used])
    sure = _logit(np.clip([confidences[row.example_id] for row, _ in used], _TINY, 1 - _TINY))
    found = pair_correlation(
        np.abs(profiles[:, None] - profiles[None]).mean(axis=2),
        np.abs(np.subtract.outer(sure, sure)),
        targets,
        rng=rng_for(config.seed, "consistency", name),
    )
    if found is None:
        return None
    # Exchanging single examples of a group would call most groups significant.
    p_value = found["p_value"] if groups_of([row for row, _ in used]) is None else None
    return {"attribution": name, "n": len(used), **found, "p_value": p_value}


def pair_correlation(
    first: NDArray[np.float64], second: NDArray[np.float64], classes: NDArray[np.int64], *, rng: np.random.Generator
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


def _logit(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(probability) - np.log1p(-probability)
