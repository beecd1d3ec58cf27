"""Plug-in interface of measures: from a run folder to lines of numbers, or the reason why there are none."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ice_eval._registry import Registry
from ice_eval.results import RunFolder
from ice_eval.table import Column


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


def measured(asked: Mapping[str, Measure], folders: Sequence[RunFolder]) -> list[Measured]:
    """Apply every measure to every run, and to all of them together where there are several."""
    results = []
    for name, each in asked.items():
        of_runs = tuple(_of_run(each, folder) for folder in folders)
        found = [of_run for of_run in of_runs if isinstance(of_run, Found)]
        across = each.across(found, folders) if len(folders) > 1 else None
        if across is not None and not found:  # a measure of several runs alone has no result for each
            of_runs = tuple(across if isinstance(across, Missing) else Found(()) for _ in folders)
        results.append(Measured(name, of_runs, across if isinstance(across, Found) else None))
    return results


def _of_run(measure: Measure, folder: RunFolder) -> Found | Missing:
    if len(folder.manifest().labels) == 1:
        return Missing("measures are about probabilities of labels, and this run scores a given text")
    return measure.of(folder)
