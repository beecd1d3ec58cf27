"""Values that several analyses read from a run folder, and their means and intervals."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.rationales import Share, Units
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.stats import Groups

_ALIKE = 1e-9
"""Largest difference of equal drops: scores are stored in single precision."""


def explained(folder: RunFolder) -> Iterator[InputRow]:
    """Yield the examples that were not skipped; raise `ConfigError` for an unfinished run."""
    folder.require_complete()
    for part in folder.parts():
        yield from (row for row in folder.inputs(part) if row.skip_reason is None)


def rationales_of(folder: RunFolder) -> dict[tuple[str, Share | None], dict[str, Units]]:
    """Return the rationales of all examples by attribution and k (None: size of their own)."""
    found: dict[tuple[str, Share | None], dict[str, Units]] = defaultdict(dict)
    for line in folder.examples():
        if line.error is None:
            found[line.attribution, line.k][line.example_id] = line.rationale
    return found


def confidences_of(folder: RunFolder) -> dict[str, float]:
    """Return the probability of the target label on the full text of every evaluated example."""
    return {line.example_id: line.score_full for line in folder.examples() if line.error is None}


def ranked(attribution: str, row: InputRow, config: RunSettings) -> PerUnit:
    """Return an attribution's vector as its rationale was chosen: by magnitude, where the run did so."""
    vector = np.asarray(row.attributions[attribution], dtype=np.float64)
    return np.abs(vector) if attribution in config.by_magnitude else vector


def vectors_of(attribution: str, rows: Sequence[InputRow], config: RunSettings) -> list[tuple[InputRow, PerUnit]]:
    """Return the examples for which an attribution has two or more numbers, all finite, and their ranked vectors."""
    having = [row for row in rows if len(row.attributions.get(attribution, ())) > 1]
    found = [(row, ranked(attribution, row, config)) for row in having]
    return [(row, vector) for row, vector in found if np.isfinite(vector).all()]


def group_label(row: InputRow) -> Hashable:
    """Return a label that is equal for examples that share a passage, and unique for one without a group."""
    return row.group, row.example_id if row.group is None else ""


def groups_of(rows: Sequence[InputRow]) -> Groups:
    """Return the label of every example; None if all are different."""
    labels = [group_label(row) for row in rows]
    return labels if len(set(labels)) < len(labels) else None


def as_list(interval: Sequence[float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def mean_with_interval(
    values: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups, field: str = "mean"
) -> dict[str, Any]:
    """Return the mean of values in [0, 1] and its interval, as fields of a line."""
    interval = stats.mean_interval(values, rng=rng, groups=groups)
    return {field: float(values.mean()), f"{field}_ci": as_list(interval)}


def interval_off_scale(values: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups) -> list[float] | None:
    """Return the interval of the mean of differences or correlations; None where all are alike, also at 0 and 1."""
    return None if np.ptp(values) <= _ALIKE else as_list(stats.mean_interval(values, rng=rng, groups=groups))


def above_chance(
    values: NDArray[np.float64], chance: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups
) -> dict[str, Any]:
    """Return the means of values in [0, 1] and of chance, and their paired difference, as fields of a line."""
    mean = mean_with_interval(values, rng=rng, groups=groups)
    difference: Sequence[float] | None
    if np.ptp(values) == 0 and mean["mean_ci"] is not None:
        # Resamples would vary with chance alone: not one match in ten examples would be surely fewer than by chance.
        difference = [limit - float(chance.mean()) for limit in mean["mean_ci"]]
    else:
        difference = stats.difference_interval(values, chance, rng=rng, groups=groups)
    return {
        **mean,
        "chance": float(chance.mean()),
        "above_chance": float((values - chance).mean()),
        "above_chance_ci": as_list(difference),
    }
