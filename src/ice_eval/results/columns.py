"""Outcomes as columns of numbers: about a hundred bytes per example and configuration."""

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.results.examples import Examples
from ice_eval.results.log_odds import WEAK_SIGNAL
from ice_eval.results.records import Configuration
from ice_eval.stats import Families, Matrix

Groups = Sequence[Hashable] | None
"""The group of each example; None where no two share one."""
Column = NDArray[np.float64]

_MOST_CODES = np.iinfo(np.uint16).max
_BLOCK_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class _Packed:
    """A column with few distinct numbers, stored as codes into `numbers`."""

    codes: NDArray[np.uint16]
    numbers: Column

    def column(self) -> Column:
        return self.numbers[self.codes]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The examples of a run under one configuration."""

    ids: Sequence[str]
    groups: Sequence[str | None]
    sound: NDArray[np.bool_]
    """False for examples without numbers."""
    errors: Mapping[int, str] = field(repr=False)
    """Example -> reason why it has no numbers."""
    rationales: Sequence[tuple[int, ...]] = field(repr=False)
    """Units of the rationale of each sound example; empty where they were not read."""
    _numbers: Mapping[str, "_Packed | Column"] = field(repr=False)
    _families: Families = field(repr=False)
    _known: dict[str, Column] = field(default_factory=dict, repr=False)
    """Cache of columns that are read often."""

    @classmethod
    def of(
        cls,
        examples: Examples,
        sound: NDArray[np.bool_],
        numbers: Mapping[str, Column],
        families: Matrix,
        members: NDArray[np.int64],
        errors: Mapping[int, str],
        rationales: Sequence[tuple[int, ...]],
        shared: Mapping[str, Column],
    ) -> "Outcomes":
        """Return the outcomes of `examples`.

        `numbers`, `families` (win rates of all scored sets, that of the rationale first), `members` (their numbers) and
        `rationales` cover the sound examples only. `shared` are columns of all examples that do not depend on the
        configuration.
        """
        columns: dict[str, _Packed | Column] = {}
        for name, values in numbers.items():
            wide = np.full(len(examples), np.nan)
            wide[sound] = values
            columns[name] = wide
        sizes = np.zeros(len(examples), dtype=np.int32)
        sizes[sound] = members
        return cls(
            ids=examples.ids,
            groups=examples.groups,
            sound=sound,
            errors=errors,
            rationales=rationales,
            _numbers={**columns, **shared},
            _families=Families.of(families, members, sizes),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Column:
        """Return one number of every outcome; NaN where it is missing."""
        if name in self._known:
            return self._known[name]
        found = self._derived(name)
        if name == "win_rate":
            self._known[name] = found
        return found

    def _derived(self, name: str) -> Column:
        if name == "signal":
            return self.column("score_full") - self.column("score_empty")
        if name == "nsr":
            signal = self.column("signal")
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = (self.column("score") - self.column("score_empty")) / signal
            return np.where(np.abs(signal) < WEAK_SIGNAL, np.nan, ratio)
        return _plain(self._numbers[name])

    def known(self, name: str) -> Column:
        """Return the numbers of a column that are not NaN."""
        values = self.column(name)
        return values[~np.isnan(values)]

    def flag(self, name: str) -> NDArray[np.bool_]:
        """Return a column as booleans."""
        return np.equal(self.column(name), 1)

    @property
    def families(self) -> Families:
        """Win rates of all scored sets of each sound example, that of the rationale first."""
        return self._families

    def select(self, chosen: NDArray[np.bool_]) -> "Outcomes":
        if chosen.all():
            return self
        places = np.flatnonzero(chosen).tolist()
        of_sound: dict[int, Any] = dict(zip(np.flatnonzero(self.sound).tolist(), self.rationales, strict=False))
        return Outcomes(
            [self.ids[place] for place in places],
            [self.groups[place] for place in places],
            self.sound[chosen],
            {new: self.errors[old] for new, old in enumerate(places) if old in self.errors},
            [of_sound[place] for place in places if place in of_sound],
            {name: _chosen(column, chosen) for name, column in self._numbers.items()},
            self._families.select(chosen),
        )


_FEW = {
    "m", "exact", "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "first_half", "second_half",
}  # fmt: skip
"""Columns with few distinct numbers."""


def _chosen(column: "_Packed | Column", chosen: NDArray[np.bool_]) -> "_Packed | Column":
    return _Packed(column.codes[chosen], column.numbers) if isinstance(column, _Packed) else column[chosen]


class _Blocks:
    """An array that grows by blocks of a megabyte; many small arrays would fragment memory."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[Any]] = []
        self._n_free = 0

    def add(self, values: NDArray[Any]) -> None:
        while len(values):
            if not self._n_free or self._blocks[-1].dtype != values.dtype:
                self._close()
                self._blocks.append(np.empty(_BLOCK_BYTES // values.itemsize, values.dtype))
                self._n_free = len(self._blocks[-1])
            start, n = len(self._blocks[-1]) - self._n_free, min(self._n_free, len(values))
            self._blocks[-1][start : start + n] = values[:n]
            values, self._n_free = values[n:], self._n_free - n

    def joined(self) -> NDArray[Any]:
        """Return the array and close it: nothing can be added afterwards."""
        self._close()
        found = np.concatenate(self._blocks) if self._blocks else np.zeros(0)
        self._blocks.clear()
        return found

    def _close(self) -> None:
        if self._n_free:
            self._blocks[-1] = self._blocks[-1][: -self._n_free]
            self._n_free = 0


class _GrowingColumn:
    """A column of floats that is filled part by part; stored as codes while it has few distinct numbers."""

    def __init__(self, *, few: bool) -> None:
        self._blocks, self._codes = _Blocks(), dict[int, int]()
        self._few = few

    def add(self, values: Column) -> None:
        if self._few:
            numbers, codes = np.unique(values, return_inverse=True)
            # Bit patterns as keys: NaN is not equal to itself.
            own = [self._codes.setdefault(bits, len(self._codes)) for bits in numbers.view(np.int64).tolist()]
            if len(self._codes) <= _MOST_CODES:
                self._blocks.add(np.array(own, dtype=np.uint16)[codes])
                return
            self._few, held = False, self._packed()
            self._blocks.add(held.column())
        self._blocks.add(values)

    def _packed(self) -> _Packed:
        codes = self._blocks.joined().astype(np.uint16, copy=False)
        return _Packed(codes, np.array(list(self._codes), dtype=np.int64).view(np.float64))

    def column(self) -> "_Packed | Column":
        """Return the whole column and close it: nothing can be added afterwards."""
        return self._packed() if self._few else self._blocks.joined()


class GrowingOutcomes:
    """Outcomes of a run under all configurations, collected some examples at a time, without rationales."""

    def __init__(self) -> None:
        self._ids, self._groups = list[str](), list[str | None]()
        self._shared: dict[str, _GrowingColumn] = {}
        self._own: dict[Configuration, _OwnColumns] = {}

    def add(self, outcomes: Mapping[Configuration, Outcomes]) -> None:
        """Append the next examples, under every configuration."""
        if not outcomes:  # a run of chains may have no explanation
            return
        first, *others = outcomes.values()
        shared = {
            name: values
            for name, values in first._numbers.items()
            if all(each._numbers[name] is values for each in others)
        }
        for name, values in shared.items():
            self._shared.setdefault(name, _GrowingColumn(few=name in _FEW)).add(_plain(values))
        for cell, found in outcomes.items():
            self._own.setdefault(cell, _OwnColumns()).add(found, start=len(self._ids), skip=shared)
        self._ids += first.ids
        self._groups += first.groups

    def joined(self) -> dict[Configuration, Outcomes]:
        """Return the outcomes of all examples and close: nothing can be added afterwards."""
        shared = {name: column.column() for name, column in self._shared.items()}
        return {cell: self._own.pop(cell).joined(self._ids, self._groups, shared) for cell in list(self._own)}


class _OwnColumns:
    """Growing outcomes of one configuration."""

    def __init__(self) -> None:
        self._sound, self._beaten, self._sizes = _Blocks(), _Blocks(), _Blocks()
        self._numbers: dict[str, _GrowingColumn] = {}
        self._errors: dict[int, str] = {}

    def add(self, outcomes: Outcomes, *, start: int, skip: Container[str]) -> None:
        self._sound.add(outcomes.sound)
        self._beaten.add(outcomes.families.beaten)
        self._sizes.add(outcomes.families.sizes)
        self._errors |= {start + place: why for place, why in outcomes.errors.items()}
        for name, values in outcomes._numbers.items():
            if name not in skip:
                self._numbers.setdefault(name, _GrowingColumn(few=name in _FEW)).add(_plain(values))

    def joined(
        self, ids: Sequence[str], groups: Sequence[str | None], shared: Mapping[str, "_Packed | Column"]
    ) -> Outcomes:
        numbers = {name: column.column() for name, column in self._numbers.items()}
        families = Families(self._beaten.joined(), self._sizes.joined())
        sound = self._sound.joined().astype(bool, copy=False)
        return Outcomes(ids, groups, sound, self._errors, (), {**numbers, **shared}, families)


def _plain(values: "_Packed | Column") -> Column:
    return values.column() if isinstance(values, _Packed) else values


def groups_of(used: Outcomes) -> Groups:
    """Return the group of each example; an example without one is its own group. None if no two share a group."""
    if all(group is None for group in used.groups):
        return None
    labels = [(group, name if group is None else "") for name, group in zip(used.ids, used.groups, strict=True)]
    return labels if len(set(labels)) < len(labels) else None
