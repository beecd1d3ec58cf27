"""What several measures read of a run folder."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._seeding import rng_for
from ice_eval.results import InputRow, RunFolder
from ice_eval.results.columns import Groups


def explained(folder: RunFolder) -> Iterator[InputRow]:
    """The examples that took part, with the vectors of all attributions.

    Raises:
        ConfigError: The run is not finished.
    """
    folder.require_complete()
    for part in folder.parts():
        yield from (row for row in folder.inputs(part) if row.skip_reason is None)


def groups_of(rows: Sequence[InputRow]) -> Groups:
    """Which examples share a passage; one without a group stands for itself; None where no two share one."""
    labels = [(row.group, row.example_id if row.group is None else "") for row in rows]
    return labels if len(set(labels)) < len(labels) else None


def mean_with_interval(
    values: NDArray[np.float64], *, seed: int, keys: Sequence[str], groups: Groups
) -> dict[str, float | list[float] | None]:
    """`mean` and `ci` of values in [0, 1], as fields of a line; the resamples depend on the seed and the keys alone."""
    found = stats.mean_interval(values, rng=rng_for(seed, "measures", *keys), groups=groups)
    return {"mean": float(values.mean()), "ci": None if found is None else list(found)}
