"""The interface of measures: a run folder in, lines of numbers out, or the reason why there are none."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from ice_eval._registry import Registry
from ice_eval.results import RunFolder

_Class = TypeVar("_Class", bound="type[Measure]")
Kind = Literal[
    "text", "count", "share", "percent", "number", "signed", "p-value", "interval", "percent interval",
    "signed interval", "points", "points interval",
]  # fmt: skip
"""How a value is written: a share of units as `0.2` (`own` if None), a rate in percent, a number with or without a
sign, a difference of rates in percentage points, an interval of any of these, a p-value. None is a dash."""


class Column(NamedTuple):
    """One number, or word, of every line of a part."""

    field: str
    """Its name in the lines, and so in JSON."""
    header: str
    """Its name in tables."""
    kind: Kind = "number"


def naming(*fields: str) -> tuple[Column, ...]:
    """Return text columns that identify a line, headed by the names of their fields."""
    return tuple(Column(field, field, "share" if field == "k" else "text") for field in fields)


@dataclass(frozen=True)
class Part:
    """One table of a measure."""

    title: str
    columns: tuple[Column, ...]
    """Without model and task: they are added where there are several."""
    lines: tuple[Mapping[str, Any], ...]
    """Plain values, as they are written to JSON; fields without a column are not printed in tables."""


@dataclass(frozen=True)
class Found:
    """The result of a measure for one run."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    """Remarks for the reader of the numbers, a sentence each."""


@dataclass(frozen=True)
class Missing:
    """The reason why a measure has no result for a run."""

    reason: str
    """Names what the folder lacks and how a run gets it, as one sentence without its full stop."""


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A question that finished runs can answer, without a model."""

    needs: ClassVar[str]
    """Requirement of a run, in a few words."""

    @abstractmethod
    def of(self, folder: RunFolder) -> Found | Missing:
        """Return the result for one run."""

    def across(self, found: Sequence[Found]) -> Found | None:
        """Return the result over several runs, given those of each; None where there is none."""
        return None


measures: Registry[type[Measure]] = Registry("measure", "ice_eval.analysis.measures")


def measure(name: str) -> Callable[[_Class], _Class]:
    """Register a measure class under `name`."""

    def register(cls: _Class) -> _Class:
        measures.add(name, cls)
        return cls

    return register
