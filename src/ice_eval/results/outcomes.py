"""Outcomes of single examples: as columns of numbers, as the table of `examples.parquet`, and as records."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ice_eval.rationales import DYNAMIC
from ice_eval.results.examples import Examples, groups_among
from ice_eval.results.ledger import WEAK_SIGNAL
from ice_eval.results.records import Configuration, ExampleOutcome
from ice_eval.stats import Families, Groups, Interval, Matrix, mean_interval

ALL = "all"
"""Operator name of the average over operators."""
TIE_FLAG = 0.01
"""Tie rates above this are flagged: every tie lowers a strict win rate."""

Column = NDArray[np.float64]
_FEW = {
    "m", "exact", "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "first_half", "second_half",
}  # fmt: skip
"""Columns with few distinct numbers."""
_MOST_CODES = np.iinfo(np.uint16).max


@dataclass(frozen=True, eq=False)
class _Packed:
    """A column with few distinct numbers, stored as codes into `numbers`."""

    codes: NDArray[np.uint16]
    numbers: Column

    def __getitem__(self, chosen: Any) -> "_Packed":
        return _Packed(self.codes[chosen], self.numbers)


def _plain(values: _Packed | Column) -> Column:
    return values.numbers[values.codes] if isinstance(values, _Packed) else values


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The examples of a run under one configuration: about a hundred bytes per example."""

    ids: Sequence[str]
    groups: Sequence[str | None]
    sound: NDArray[np.bool_]
    """False for examples without numbers."""
    errors: Mapping[int, str]
    """Example -> reason why it has no numbers."""
    rationales: Mapping[int, tuple[int, ...]]
    """Example -> units of its rationale, if it is sound and they were read."""
    _numbers: Mapping[str, _Packed | Column]
    families: Families
    """Win rates of all scored sets of each sound example, that of the rationale first."""

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
        columns = {name: np.full(len(examples), np.nan) for name in numbers}
        for name, values in numbers.items():
            columns[name][sound] = values
        sizes = np.zeros(len(examples), dtype=np.int32)
        sizes[sound] = members
        held = Families.of(families, members, sizes)
        units = dict(zip(np.flatnonzero(sound).tolist(), rationales, strict=False))
        return cls(examples.ids, examples.groups, sound, errors, units, {**columns, **shared}, held)

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Column:
        """Return one number of every outcome; NaN where it is missing."""
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

    def select(self, chosen: NDArray[np.bool_]) -> "Outcomes":
        if chosen.all():
            return self
        places = np.flatnonzero(chosen).tolist()
        return Outcomes(
            [self.ids[place] for place in places],
            [self.groups[place] for place in places],
            self.sound[chosen],
            {new: self.errors[old] for new, old in enumerate(places) if old in self.errors},
            {new: self.rationales[old] for new, old in enumerate(places) if old in self.rationales},
            {name: column[chosen] for name, column in self._numbers.items()},
            self.families.select(chosen),
        )


class _GrowingColumn:
    """A column that is filled part by part, in one buffer: many small arrays would fragment memory.

    One of a `few` distinct numbers is stored as codes, until there are too many of them.
    """

    def __init__(self, *, few: bool) -> None:
        self._few, self._codes, self._buffer = few, dict[int, int](), bytearray()
        self._kind: np.dtype[Any] = np.dtype(np.bool_)

    def add(self, values: NDArray[Any]) -> None:
        if self._few:
            numbers, codes = np.unique(values, return_inverse=True)
            # Bit patterns as keys: NaN is not equal to itself.
            own = [self._codes.setdefault(bits, len(self._codes)) for bits in numbers.view(np.int64).tolist()]
            if len(self._codes) <= _MOST_CODES:
                values = np.array(own, dtype=np.uint16)[codes]
            else:
                held = _plain(self.column())
                self._few, self._buffer, self._kind = False, bytearray(held.tobytes()), held.dtype
        kind = np.promote_types(self._kind, values.dtype)
        if kind != self._kind:
            self._buffer = bytearray(np.frombuffer(self._buffer, self._kind).astype(kind).tobytes())
            self._kind = kind
        self._buffer += values.astype(kind, copy=False).tobytes()

    def column(self) -> Any:
        """Return the whole column; nothing can be added afterwards."""
        values = np.frombuffer(self._buffer, self._kind)
        return _Packed(values, np.array(list(self._codes), dtype=np.int64).view(np.float64)) if self._few else values


class GrowingOutcomes:
    """Outcomes of a run under all configurations, collected some examples at a time, without rationales."""

    def __init__(self) -> None:
        self._ids, self._groups = list[str](), list[str | None]()
        self._errors: dict[Configuration, dict[int, str]] = {}
        self._columns: dict[tuple[Configuration | None, str], _GrowingColumn] = {}
        """By configuration, or None for those that all share, and name."""

    def add(self, outcomes: Mapping[Configuration, Outcomes]) -> None:
        """Append the next examples, under every configuration."""
        if not outcomes:  # a run of chains may have no explanation
            return
        first, *others = outcomes.values()
        columns = first._numbers.items()
        shared = {name for name, values in columns if all(each._numbers[name] is values for each in others)}
        for cell, found in outcomes.items():
            errors = {len(self._ids) + place: why for place, why in found.errors.items()}
            self._errors.setdefault(cell, {}).update(errors)
            families = {"sound": found.sound, **vars(found.families)}
            for name, values in {**found._numbers, **families}.items():
                if name not in shared or found is first:
                    owner = None if name in shared else cell
                    column = self._columns.setdefault((owner, name), _GrowingColumn(few=name in _FEW))
                    column.add(_plain(values))
        self._ids += first.ids
        self._groups += first.groups

    def joined(self) -> dict[Configuration, Outcomes]:
        """Return the outcomes of all examples and close: nothing can be added afterwards."""
        columns = {key: column.column() for key, column in self._columns.items()}
        found = {}
        for cell, errors in self._errors.items():
            own = {name: column for (owner, name), column in columns.items() if owner in (None, cell)}
            sound, families = own.pop("sound"), Families(own.pop("beaten"), own.pop("sizes"))
            found[cell] = Outcomes(self._ids, self._groups, sound, errors, {}, own, families)
        return found


def groups_of(used: Outcomes) -> Groups:
    """Return the group of each example; None if no two share a group."""
    return None if all(group is None for group in used.groups) else groups_among(used.ids, used.groups)


def mean_of(values: Sequence[float], groups: Groups = None) -> tuple[float | None, Interval | None]:
    """Return the mean of rates with its interval; None for both without a value."""
    rates = np.array(values, dtype=np.float64)
    return (float(rates.mean()), mean_interval(rates, groups=groups)) if rates.size else (None, None)


_NAME = pa.dictionary(pa.int32(), pa.string())
_WHOLE = {"n_units", "target", "gold", "predicted", "m"}
_OF_ALL = {"n_units", "target", "gold"}
"""Columns that examples without numbers have as well."""
_REAL = (
    "win_rate", "win_rate_strict", "tie_rate", "p_value", "p_lower", "effect", "effect_size", "nsr", "score",
    "score_full", "score_empty",
)  # fmt: skip
FLAGS = ("weak_signal", "negative_signal", "ties")
OUTCOMES = pa.schema(
    [
        *(pa.field(name, _NAME, nullable=False) for name in ("example_id", "attribution", "operator", "direction")),
        pa.field("k", pa.string()),
        pa.field("null", _NAME, nullable=False),
        pa.field("n_units", pa.int32(), nullable=False),
        pa.field("target", pa.int32()),
        pa.field("gold", pa.int32()),
        pa.field("error", pa.string()),
        pa.field("predicted", pa.int32()),
        pa.field("m", pa.int32()),
        pa.field("exact", pa.bool_()),
        pa.field("m_effective", pa.float64()),
        *(pa.field(name, pa.float64()) for name in _REAL),
        *(pa.field(name, pa.bool_()) for name in FLAGS),
        pa.field("rationale", pa.list_(pa.int32())),
    ]
)
"""Columns of the file; `ExampleOutcome` describes them, and each flag has a column."""


def outcome_table(grouped: Mapping[Configuration, Outcomes]) -> pa.Table:
    """Return outcomes as a table, example by example, each under all configurations."""
    if not grouped:
        return OUTCOMES.empty_table()
    cells, several = list(grouped), list(grouped.values())
    n_examples, n_cells = len(several[0]), len(cells)

    def numbers(name: str) -> Column:
        return np.stack([each.column(name) for each in several], axis=1).ravel()

    columns: dict[str, Any] = {"example_id": _named(np.repeat(np.arange(n_examples), n_cells), several[0].ids)}
    for name in ("attribution", "operator", "direction", "null"):
        own = [getattr(cell, name) for cell in cells]
        known = list(dict.fromkeys(own))
        columns[name] = _named(np.tile([known.index(value) for value in own], n_examples), known)
    columns["k"] = [None if cell.k is None else str(cell.k) for cell in cells] * n_examples
    sound = np.stack([each.sound for each in several], axis=1).ravel()
    for name in (*_WHOLE, *_REAL, "m_effective"):
        found = numbers(name)
        missing = np.isnan(found) if name in _OF_ALL else np.isnan(found) | ~sound
        filled = np.where(missing, 0, found)
        columns[name] = pa.array(filled.astype(np.int32) if name in _WHOLE else filled, mask=missing)
    signal = numbers("signal")
    flags = dict(zip(FLAGS, (np.abs(signal) < WEAK_SIGNAL, signal < 0, numbers("tie_rate") > TIE_FLAG), strict=True))
    for name, raised in {"exact": numbers("exact") == 1, **flags}.items():
        columns[name] = pa.array(raised, mask=~sound)
    places = list(itertools.product(range(n_examples), several))
    columns["error"] = [each.errors.get(example) for example, each in places]
    columns["rationale"] = [each.rationales.get(example) for example, each in places]
    return pa.table(columns, schema=OUTCOMES)


def _named(codes: NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(names), pa.string()))


def outcome_lines(table: pa.Table) -> Iterator[ExampleOutcome]:
    """Yield the outcomes of a table as records; missing numbers get the defaults of the record."""
    for line in table.to_pylist():
        known = {name: value for name, value in line.items() if value is not None and name not in FLAGS}
        yield ExampleOutcome(
            **{name: None for name in ("k", "target", "gold")}
            | known
            | {
                "k": line["k"] if line["k"] in (None, DYNAMIC) else float(line["k"]),
                "flags": tuple(name for name in FLAGS if line[name]),
                "rationale": tuple(line["rationale"] or ()),
            }
        )
