"""Agreement of attributions: rank correlation, and overlap of rationales."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from ice_eval.analysis._runs import (
    above_chance,
    explained,
    groups_of,
    interval_off_scale,
    rationales_of,
    vectors_of,
)
from ice_eval.analysis.measures._base import Found, Measure, Missing, Part, measure
from ice_eval.analysis.measures.plausibility import chance_iou, overlap
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.seeding import rng_for
from ice_eval.table import Column

_PAIR = (Column("first", "attribution", "text"), Column("second", "and", "text"))
_RANKS = (
    *_PAIR,
    Column("n", "n", "count"),
    Column("mean", "rank correlation", "signed"),
    Column("mean_ci", "95 % CI", "signed interval"),
)
_OVERLAP = (
    *_PAIR,
    Column("k", "k", "share"),
    Column("n", "n", "count"),
    Column("mean", "IoU"),
    Column("mean_ci", "95 % CI", "interval"),
    Column("chance", "chance"),
    Column("above_chance", "above chance", "signed"),
    Column("above_chance_ci", "95 % CI of it", "signed interval"),
)


@measure("agreement")
@dataclass(frozen=True, kw_only=True)
class Agreement(Measure):
    """Rank correlation and overlap of rationales between each two attributions."""

    needs = "two attributions"

    def of(self, folder: RunFolder) -> Found | Missing:
        config = folder.manifest().config
        if len(config.attributions) < 2:
            return Missing("the run has one attribution, and agreement needs two; add one with --attributions")
        rows = list(explained(folder))
        parts = (
            Part("Agreement of attributions", _RANKS, tuple(_rank_lines(rows, config))),
            Part("Overlap of rationales", _OVERLAP, tuple(_overlap_lines(folder, rows, config.seed))),
        )
        found = tuple(part for part in parts if part.lines)
        return Found(found) if found else Missing("no example has two attributions that rank its units")


def _rank_lines(rows: Sequence[InputRow], config: RunSettings) -> Iterator[dict[str, Any]]:
    """Yield Spearman's rho of each two attributions; constant magnitudes have no ranks."""
    vectors = {
        name: {row.example_id: vector for row, vector in vectors_of(name, rows, config) if np.ptp(np.abs(vector)) > 0}
        for name in config.attributions
    }
    for first, second in itertools.combinations(vectors, 2):
        used = [row for row in rows if row.example_id in vectors[first] and row.example_id in vectors[second]]
        if not used:
            continue
        pairs = [(vectors[first][row.example_id], vectors[second][row.example_id]) for row in used]
        values = np.array([float(spearmanr(a, b).statistic) for a, b in pairs])
        rng = rng_for(config.seed, "agreement", first, second)
        interval = interval_off_scale(values, rng=rng, groups=groups_of(used))
        yield {"first": first, "second": second, "n": len(used), "mean": float(values.mean()), "mean_ci": interval}


def _overlap_lines(folder: RunFolder, rows: Sequence[InputRow], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the overlap of each two rationales of the same k; those with their own size are compared with every k."""
    by_example = {row.example_id: row for row in rows}
    for ((first, k), one), ((second, other_k), other) in itertools.combinations(rationales_of(folder).items(), 2):
        used = [example for example in one if example in other]
        if not used or first == second or (k != other_k and k is not None and other_k is not None):
            continue
        sets = [(len(by_example[example].spans), set(one[example]), set(other[example])) for example in used]
        found = above_chance(
            np.array([overlap(len(a & b), len(a), len(b)) for _, a, b in sets]),
            np.array([chance_iou(n_units, len(a), len(b)) for n_units, a, b in sets]),
            rng=rng_for(seed, "overlap", first, second, str(k), str(other_k)),
            groups=groups_of([by_example[example] for example in used]),
        )
        yield {"first": first, "second": second, "k": other_k if k is None else k, "n": len(used), **found}
