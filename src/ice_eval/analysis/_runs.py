"""What several analyses read of a run folder, and how they average it."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval.rationales import Share, Units
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.results.columns import Groups

_ALIKE = 1e-9
"""Scores are kept in single precision: drops that differ by less are the same."""


def explained(folder: RunFolder) -> Iterator[InputRow]:
    """The examples that took part, with the vectors of all attributions.

    Raises:
        ConfigError: The run is not finished.
    """
    folder.require_complete()
    for part in folder.parts():
        yield from (row for row in folder.inputs(part) if row.skip_reason is None)


def rationales_of(folder: RunFolder) -> dict[tuple[str, Share | None], dict[str, Units]]:
    """By attribution and k (None: sizes of their own), the rationale of every example that has one."""
    found: dict[tuple[str, Share | None], dict[str, Units]] = defaultdict(dict)
    for line in folder.examples():
        if line.error is None:
            found[line.attribution, line.k][line.example_id] = line.rationale
    return found


def confidences_of(folder: RunFolder) -> dict[str, float]:
    """The probability of the target label of every example that was evaluated, on its full text."""
    return {line.example_id: line.score_full for line in folder.examples() if line.error is None}


def ranked(attribution: str, row: InputRow, config: RunSettings) -> PerUnit:
    """An attribution's vector as its rationale was chosen from it: by magnitude, where the run did so."""
    vector = np.asarray(row.attributions[attribution], dtype=np.float64)
    return np.abs(vector) if attribution in config.by_magnitude else vector


def group_label(row: InputRow) -> Hashable:
    """Equal for examples that share a passage; one without a group stands for itself."""
    return row.group, row.example_id if row.group is None else ""


def groups_of(rows: Sequence[InputRow]) -> Groups:
    """The label of every example; None where no two share one."""
    labels = [group_label(row) for row in rows]
    return labels if len(set(labels)) < len(labels) else None


def mean_with_interval(
    values: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups, field: str = "mean"
) -> dict[str, Any]:
    """Mean of values in [0, 1] and its interval, as fields of a line."""
    found = stats.mean_interval(values, rng=rng, groups=groups)
    return {field: float(values.mean()), f"{field}_ci": None if found is None else list(found)}


def interval_off_scale(values: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups) -> list[float] | None:
    """Interval of the mean of differences or correlations; None where all are alike, also at 0 and 1."""
    if np.ptp(values) <= _ALIKE:
        return None
    found = stats.mean_interval(values, rng=rng, groups=groups)
    return None if found is None else list(found)


def above_chance(
    values: NDArray[np.float64], chance: NDArray[np.float64], *, rng: np.random.Generator, groups: Groups
) -> dict[str, Any]:
    """Mean of values in [0, 1], the mean of what chance gives, and their paired difference, as fields of a line."""
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
        "above_chance_ci": None if difference is None else list(difference),
    }
