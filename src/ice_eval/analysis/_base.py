"""Form of the results of analyses, and values of single examples of a run folder."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ice_eval import stats
from ice_eval._registry import Registry
from ice_eval.records import PerUnit
from ice_eval.results import InputRow, RunFolder, RunSettings
from ice_eval.results.examples import groups_among
from ice_eval.results.view import is_open
from ice_eval.stats import Groups
from ice_eval.table import CellKind, Column, estimate

Record = TypeVar("Record")


@dataclass(frozen=True)
class Part:
    """One table of a measure."""

    title: str
    columns: tuple[Column, ...]
    """Columns without model and task, which are added where there are several."""
    lines: Sequence[Mapping[str, Any]]
    """Plain values, as written to JSON; fields without a column are not printed in tables."""


def filled(*parts: Part) -> tuple[Part, ...]:
    """Return the parts that have lines."""
    return tuple(part for part in parts if part.lines)


def fields_of(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def grouped_by(records: Iterable[Record], *names: str) -> list[tuple[dict[str, Any], list[Record]]]:
    """Return groups of records that have the same values of some fields, and these values."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(fields_of(record, *names).values()), []).append(record)
    return [(fields_of(group[0], *names), group) for group in groups.values()]


@dataclass(frozen=True)
class Found:
    """The result of a measure on a run."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON has it; parts by their titles."""
        return {"parts": {part.title: list(part.lines) for part in self.parts}, "notes": list(self.notes)}


@dataclass(frozen=True)
class Missing:
    """The reason why a measure does not apply to a run."""

    reason: str
    """Missing data and how to get them, as one sentence without its full stop."""

    def as_dict(self) -> dict[str, Any]:
        return {"missing": self.reason}


def listed(
    title: str, columns: tuple[Column, ...], lines: Sequence[Mapping[str, Any]], missing: str, *notes: str
) -> Found | Missing:
    """Return one table, or without lines the reason."""
    return Found((Part(title, columns, lines),), notes) if lines else Missing(missing)


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """An analysis of finished runs, without a model."""

    needs: ClassVar[str]
    """Data that a run must have, in a few words."""

    @abstractmethod
    def of(self, folder: RunFolder) -> Found | Missing:
        """Apply the measure to one run."""

    def across(self, found: Sequence[Found], folders: Sequence[RunFolder]) -> Found | Missing | None:
        """Combine the results of several runs, or compare all runs; None where there is nothing to combine."""
        return None


measures: Registry[type[Measure]] = Registry("measure", "ice_eval.analysis.measures")
measure = measures.register


@dataclass(frozen=True)
class Measured:
    """The results of one measure on some runs."""

    name: str
    of_runs: tuple[Found | Missing, ...]
    across: Found | None

    def as_dict(self) -> dict[str, Any]:
        across = None if self.across is None else self.across.as_dict()
        return {"measure": self.name, "runs": [found.as_dict() for found in self.of_runs], "across": across}


_OF_LABELS = Missing("measures are about probabilities of labels, and this run scores a given text")


def measured(asked: Mapping[str, Measure], folders: Sequence[RunFolder]) -> list[Measured]:
    """Apply every measure to every run, and to all of them together where there are several."""
    results = []
    for name, each in asked.items():
        of_runs = tuple(_OF_LABELS if is_open(folder.manifest().labels) else each.of(folder) for folder in folders)
        found = [of_run for of_run in of_runs if isinstance(of_run, Found)]
        across = each.across(found, folders) if len(folders) > 1 else None
        if across is not None and not found:  # a measure of several runs alone has no result for each
            of_runs = tuple(across if isinstance(across, Missing) else Found(()) for _ in folders)
        results.append(Measured(name, of_runs, across if isinstance(across, Found) else None))
    return results


# --- single examples ------------------------------------------------------------------------------------------------

Values = NDArray[np.float64]  # (n,)
ALIKE = 1e-9
"""Largest difference of equal drops of a probability."""


def ranked(attribution: str, row: InputRow, config: RunSettings) -> PerUnit:
    """Return an attribution's vector as its rationale was chosen: by magnitude, where the run did so."""
    vector = np.asarray(row.attributions[attribution], dtype=np.float64)
    return np.abs(vector) if attribution in config.by_magnitude else vector


def vectors_of(attribution: str, rows: Sequence[InputRow], config: RunSettings) -> list[tuple[InputRow, PerUnit]]:
    """Return the examples for which an attribution has two or more numbers, all finite, and their ranked vectors."""
    having = [row for row in rows if len(row.attributions.get(attribution, ())) > 1]
    found = [(row, ranked(attribution, row, config)) for row in having]
    return [(row, vector) for row, vector in found if np.isfinite(vector).all()]


def groups_of(rows: Sequence[InputRow]) -> Groups:
    """Return the group of each example; None if no two share a group."""
    return groups_among([row.example_id for row in rows], [row.group for row in rows])


def mean_of(
    values: Values, rows: Sequence[InputRow], *, field: str = "mean", scale: tuple[float, float] = (0.0, 1.0)
) -> dict[str, Any]:
    """Return the mean of a value of every example and its interval, as fields of a line."""
    interval = stats.mean_interval(values, groups=groups_of(rows), scale=scale)
    return {field: float(values.mean()), f"{field}_ci": interval}


def above_chance(values: Values, chance: Values, rows: Sequence[InputRow]) -> dict[str, Any]:
    """Return the means of values in [0, 1] and of chance, and their paired difference, as fields of a line."""
    found = stats.paired_difference(chance, values, groups=groups_of(rows))
    above = {"above_chance": found.difference, "above_chance_ci": found.interval}
    return {**mean_of(values, rows), "chance": float(chance.mean()), **above}


def above_chance_columns(header: str, kind: CellKind = "number") -> tuple[Column, ...]:
    """Return the columns of `above_chance`."""
    difference = estimate("above_chance", "above chance", "signed", "95 % CI of it")
    return *estimate("mean", header, kind), Column("chance", "chance", kind), *difference


def shares(values: Values, n_bins: int) -> Values:
    """Return the share of values in [0, 1] in every bin; a limit belongs to the bin below, 0 to the first."""
    places = np.clip(np.ceil(values * n_bins - 1e-9).astype(int) - 1, 0, n_bins - 1)
    return np.bincount(places, minlength=n_bins) / max(values.size, 1)


def shares_by_chance(n_sets: Values, n_bins: int) -> Values:
    """Return expected shares of p-values if all m + 1 ranks are equally likely, averaged over examples."""
    sizes, counts = np.unique(n_sets.astype(int), return_counts=True)
    expected = [count * shares(np.arange(1, m + 2) / (m + 1), n_bins) for m, count in zip(sizes, counts, strict=True)]
    return np.asarray(np.sum(expected, axis=0) / counts.sum())


def quantiles(values: Values, levels: Sequence[float]) -> list[float] | list[None]:
    """Return quantiles at some levels; None each where there are no values."""
    return np.quantile(values, list(levels)).tolist() if values.size else [None] * len(levels)
