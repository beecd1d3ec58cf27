"""Outcomes as columns of numbers: a few hundred bytes for an example, however many there are."""

from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ice_eval.results.outcomes import Outcome

Groups = Sequence[Hashable] | None
"""The group of each example; None where no two share one."""

_NUMBERS = (
    "predicted", "gold", "m", "exact", "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "effect",
    "effect_size", "nsr", "score", "score_full", "score_empty", "signal",
)  # fmt: skip
_HALVES = ("first_half", "second_half")
_SMALL = np.iinfo(np.uint16).max


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The examples of a run under one configuration."""

    ids: Sequence[str]
    groups: Sequence[str | None]
    sound: NDArray[np.bool_]
    """False for examples without numbers."""
    _numbers: dict[str, NDArray[np.float64]] = field(repr=False)
    _members: NDArray[np.integer] = field(repr=False)
    """Families end to end, as twice the number of members that each member beats, ties one half."""
    _sizes: NDArray[np.int64] = field(repr=False)
    """Members of each family."""

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[np.float64]:
        """One number of every outcome; NaN where there is none."""
        return self._numbers[name]

    def known(self, name: str) -> NDArray[np.float64]:
        """The numbers of a column that are there."""
        values = self._numbers[name]
        return values[~np.isnan(values)]

    def flag(self, name: str) -> NDArray[np.bool_]:
        """A column of yes and no."""
        return np.equal(self._numbers[name], 1)

    def families(self) -> list[NDArray[np.float64]]:
        """Win rates of all scored sets of each example, the rationale's first."""
        ends = np.cumsum(self._sizes)
        rates = self._members.astype(np.float64) / 2 / np.repeat(self._sizes - 1, self._sizes)
        return [rates[end - size : end] for end, size in zip(ends, self._sizes, strict=True) if size]

    def select(self, chosen: NDArray[np.bool_]) -> "Outcomes":
        """Some of the outcomes."""
        if chosen.all():
            return self
        return Outcomes(
            [name for name, take in zip(self.ids, chosen, strict=True) if take],
            [group for group, take in zip(self.groups, chosen, strict=True) if take],
            self.sound[chosen],
            {name: values[chosen] for name, values in self._numbers.items()},
            self._members[np.repeat(chosen, self._sizes)],
            self._sizes[chosen],
        )


class Gathering:
    """Outcomes of one configuration, as they come."""

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._ids: list[str] = []
        self._groups: list[str | None] = []
        self._sound = array("b")
        self._numbers = {name: array("d") for name in (*_NUMBERS, *_HALVES)}
        self._members = array("H")
        self._sizes = array("q")
        for outcome in outcomes:
            self.append(outcome)

    def append(self, outcome: Outcome) -> None:
        """Take the numbers of an outcome."""
        self._ids.append(outcome.example_id)
        self._groups.append(outcome.group)
        self._sound.append(outcome.error is None)
        for name in _NUMBERS:
            value = getattr(outcome, name)
            self._numbers[name].append(np.nan if value is None else value)
        for name, value in zip(_HALVES, outcome.halves, strict=True):
            self._numbers[name].append(value)
        self._add_family(np.zeros(0) if outcome.family is None else outcome.family)

    def outcomes(self) -> Outcomes:
        """What was gathered."""
        return Outcomes(
            self._ids,
            self._groups,
            np.array(self._sound, dtype=np.bool_),
            {name: np.array(values, dtype=np.float64) for name, values in self._numbers.items()},
            np.array(self._members),
            np.array(self._sizes, dtype=np.int64),
        )

    def _add_family(self, family: NDArray[np.float64]) -> None:
        """A member beats a whole number of half members: two bytes are enough, and nothing is rounded."""
        twice = np.rint(2 * (family.size - 1) * family)
        assert np.array_equal(twice / 2 / max(family.size - 1, 1), family), "a family of win rates"
        if twice.max(initial=0) > _SMALL and self._members.typecode == "H":
            self._members = array("I", self._members)
        self._members.extend(twice.astype(np.int64).tolist())
        self._sizes.append(family.size)


def groups_of(used: Outcomes) -> Groups:
    """Which examples share a passage; one without a group stands for itself."""
    if all(group is None for group in used.groups):
        return None
    labels = [(group, name if group is None else "") for name, group in zip(used.ids, used.groups, strict=True)]
    return labels if len(set(labels)) < len(labels) else None
