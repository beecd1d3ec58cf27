"""Outcomes as columns of numbers: about a hundred bytes for an example and configuration, however many there are."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ice_eval.results.examples import Examples
from ice_eval.results.log_odds import WEAK_SIGNAL
from ice_eval.stats import Families, Matrix

Groups = Sequence[Hashable] | None
"""The group of each example; None where no two share one."""
Column = NDArray[np.float64]

_MOST_CODES = np.iinfo(np.uint16).max


@dataclass(frozen=True, eq=False)
class _Packed:
    """A column with few different numbers, such as rates and counts: a code for each, and the numbers."""

    codes: NDArray[np.uint16]
    numbers: Column

    @classmethod
    def of(cls, column: Column) -> "_Packed | Column":
        numbers, codes = np.unique(column, return_inverse=True)
        return column if len(numbers) > _MOST_CODES else cls(codes.astype(np.uint16), numbers)

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
    """Example -> why it has none."""
    rationales: Sequence[tuple[int, ...]] = field(repr=False)
    """Units of the rationale of each sound example; empty where they were not read."""
    _numbers: Mapping[str, "_Packed | Column"] = field(repr=False)
    _families: Families = field(repr=False)
    _known: dict[str, Column] = field(default_factory=dict, repr=False)
    """Columns that are asked for often."""

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
        """Return the outcomes of examples.

        Args:
            examples: All of them.
            sound: Which have numbers.
            numbers: Columns of the sound ones.
            families: Win rates of all scored sets of the sound ones, the rationale's first.
            members: Number of these sets.
            errors: Why others have no numbers.
            rationales: Units of the rationales of the sound ones.
            shared: Columns that are the same under all configurations.
        """
        columns: dict[str, _Packed | Column] = {}
        for name, values in numbers.items():
            wide = np.full(len(examples), np.nan)
            wide[sound] = values
            columns[name] = _Packed.of(wide) if name in _FEW else wide
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

    @classmethod
    def join(cls, parts: "Sequence[Outcomes]", known: dict[tuple[int, ...], Any] | None = None) -> "Outcomes":
        """Return the outcomes of several parts, in order; what was joined before (by identity) is not joined again."""
        if len(parts) == 1:
            return parts[0]
        done = {} if known is None else known

        def joined(pieces: Sequence[Any], how: Any) -> Any:
            key = tuple(map(id, pieces))
            if key not in done:
                done[key] = how(pieces)
            return done[key]

        shifts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        return cls(
            ids=joined([part.ids for part in parts], _chained),
            groups=joined([part.groups for part in parts], _chained),
            sound=np.concatenate([part.sound for part in parts]),
            errors={
                shift + place: why
                for shift, part in zip(shifts, parts, strict=False)
                for place, why in part.errors.items()
            },
            rationales=[each for part in parts for each in part.rationales],
            _numbers={
                name: joined([part._numbers[name] for part in parts], _joined_columns) for name in parts[0]._numbers
            },
            _families=Families.join([part._families for part in parts]),
        )

    def without_rationales(self) -> "Outcomes":
        """Return what statistics need: units of rationales are written, and then no longer held."""
        return replace(self, rationales=())

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Column:
        """Return one number of every outcome; NaN where there is none."""
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
        found = self._numbers[name]
        return found.column() if isinstance(found, _Packed) else found

    def known(self, name: str) -> Column:
        """Return the numbers of a column that are there."""
        values = self.column(name)
        return values[~np.isnan(values)]

    def flag(self, name: str) -> NDArray[np.bool_]:
        """Return a column of yes and no."""
        return np.equal(self.column(name), 1)

    @property
    def families(self) -> Families:
        """Win rates of all scored sets of each sound example, the rationale's first."""
        return self._families

    def select(self, chosen: NDArray[np.bool_]) -> "Outcomes":
        """Return some of the outcomes."""
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
"""Columns with few different numbers."""


def _chosen(column: "_Packed | Column", chosen: NDArray[np.bool_]) -> "_Packed | Column":
    return _Packed(column.codes[chosen], column.numbers) if isinstance(column, _Packed) else column[chosen]


def _chained(pieces: Sequence[Sequence[Any]]) -> list[Any]:
    return [each for piece in pieces for each in piece]


def _joined_columns(pieces: Sequence["_Packed | Column"]) -> "_Packed | Column":
    if not all(isinstance(piece, _Packed) for piece in pieces):
        plain = [piece.column() if isinstance(piece, _Packed) else piece for piece in pieces]
        return np.concatenate(plain)
    packed = [piece for piece in pieces if isinstance(piece, _Packed)]
    numbers, codes = np.unique(np.concatenate([piece.numbers for piece in packed]), return_inverse=True)
    if len(numbers) > _MOST_CODES:
        return np.concatenate([piece.column() for piece in packed])
    ends = np.cumsum([len(piece.numbers) for piece in packed])
    own = np.split(codes.astype(np.uint16), ends[:-1])
    return _Packed(np.concatenate([new[piece.codes] for new, piece in zip(own, packed, strict=True)]), numbers)


def groups_of(used: Outcomes) -> Groups:
    """Return which examples share a passage; one without a group stands for itself."""
    if all(group is None for group in used.groups):
        return None
    labels = [(group, name if group is None else "") for name, group in zip(used.ids, used.groups, strict=True)]
    return labels if len(set(labels)) < len(labels) else None
