"""The examples of a run: as records, or as columns for the statistics."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ice_eval.rationales import Share, rationale_size
from ice_eval.records import NOT_SET, Answer, Ids, Span
from ice_eval.stats import Groups

_SPAN = pa.struct([("field", pa.string()), ("start", pa.int32()), ("end", pa.int32())])
_COUNTS = [(name, pa.int32()) for name in ("tokens", "n_named", "n_absent")]
_ANSWER = pa.struct([("text", pa.string()), *_COUNTS, ("problem", pa.string())])
_FILL = pa.struct([("operator", pa.string()), ("draw", pa.int32()), ("texts", pa.list_(pa.string()))])
INPUTS = pa.schema(
    [
        pa.field("example_id", pa.string(), nullable=False),
        pa.field("fields", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("spans", pa.list_(_SPAN), nullable=False),
        pa.field("gold", pa.int32()),
        pa.field("target", pa.int32()),
        pa.field("group", pa.string()),
        pa.field("human", pa.list_(_SPAN), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("n_cut", pa.int32(), nullable=False),
        pa.field("skip_reason", pa.string()),
        pa.field("attributions", pa.map_(pa.string(), pa.list_(pa.float64())), nullable=False),
        pa.field("answers", pa.map_(pa.string(), _ANSWER), nullable=False),
        pa.field("fills", pa.list_(_FILL), nullable=False),
    ]
)
"""Columns of the file; `InputRow` describes them."""


def groups_among(ids: Iterable[str], groups: Iterable[str | None]) -> Groups:
    """Return a label for each example, equal for those of one group; None if no two share a group."""
    labels = [(group, name if group is None else "") for name, group in zip(ids, groups, strict=True)]
    return labels if len(set(labels)) < len(labels) else None


class FillTexts(NamedTuple):
    """Texts that one operator writes in place of each unit of an example."""

    operator: str
    draw: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class InputRow:
    """One example as evaluated."""

    example_id: str
    """`id` of the example, else its row, counted from 0."""
    fields: Mapping[str, str]
    """Field of the prompt -> text; with `--scope prompt` also `whole prompt` or `whole pair`."""
    spans: tuple[Span, ...] = ()
    """Characters of each unit; `end` is exclusive."""
    gold: int | None = None
    """Index of the right label."""
    target: int | None = None
    """Index of the explained label; null for skipped examples."""
    group: str | None = None
    """Name that examples share which are not independent."""
    human: tuple[Span, ...] = ()
    """Characters that a person marked as decisive."""
    n_cut: int = 0
    """Number of units that were cut off the ends of fields."""
    skip_reason: str | None = None
    """Null for evaluated examples."""
    attributions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Attribution -> a number per unit, NaN where it has none."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """Attribution -> answer of the model, for attributions that ask it."""
    fills: tuple[FillTexts, ...] = ()
    """Texts that operators write in place of units."""

    @property
    def truncated(self) -> bool:
        """True if a field lost its end to fit."""
        return self.n_cut > 0


def inputs_table(rows: Sequence[InputRow]) -> pa.Table:
    """Return examples as an Arrow table, as stored in `inputs/`."""
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in INPUTS.names}
    columns |= {name: [list(each.items()) for each in columns[name]] for name in ("fields", "attributions", "answers")}
    return pa.table(columns, schema=INPUTS)


def input_rows(tables: Sequence[pa.Table]) -> list[InputRow]:
    """Return the examples of a part; later tables add attributions and fills to earlier ones."""
    found: dict[str, InputRow] = {}
    for table in tables:
        for row in map(_input_row, table.to_pylist()):
            before = found.get(row.example_id, row)
            fills = {(fill.operator, fill.draw): fill for fill in (*before.fills, *row.fills)}
            found[row.example_id] = replace(
                row,
                attributions={**before.attributions, **row.attributions},
                answers={**before.answers, **row.answers},
                fills=tuple(fills.values()),
            )
    return list(found.values())


def _input_row(record: dict[str, Any]) -> InputRow:
    changed: dict[str, Any] = {name: tuple(Span(**span) for span in record[name]) for name in ("spans", "human")}
    changed["fields"] = dict(record["fields"])
    changed["attributions"] = {name: tuple(values) for name, values in record["attributions"]}
    changed["answers"] = {name: Answer(**answer) for name, answer in record["answers"]}
    changed["fills"] = tuple(FillTexts(**{**fill, "texts": tuple(fill["texts"])}) for fill in record["fills"])
    del record["truncated"]
    return InputRow(**{**record, **changed})


_Vectors = Mapping[str, Mapping[int, NDArray[np.float64]]]
"""Attribution -> example -> its numbers, where it has some."""


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of some parts as columns."""

    ids: tuple[str, ...]
    n_units: Ids
    target: Ids
    """Index of the explained label; `NOT_SET` for skipped examples."""
    gold: Ids
    n_cut: Ids
    """Number of units of each text that were cut off."""
    groups: tuple[str | None, ...]
    skip_reasons: Mapping[int, str]
    problems: Mapping[tuple[int, str], str]
    """(example, attribution) -> reason why the model's answer explains nothing."""
    _vectors: _Vectors = field(repr=False)

    @classmethod
    def of(cls, rows: Sequence[InputRow]) -> "Examples":
        return cls.read([inputs_table(rows)])

    @classmethod
    def read(cls, tables: Sequence[pa.Table]) -> "Examples":
        """Return the examples of a part; later tables add attributions to earlier ones."""
        last = tables[-1]
        vectors, problems = dict[str, Mapping[int, NDArray[np.float64]]](), dict[tuple[int, str], str]()
        for table in tables:
            vectors |= _vectors_in(table)
            problems |= _problems_in(table)
        reasons = enumerate(last.column("skip_reason").to_pylist())
        return cls(
            ids=tuple(last.column("example_id").to_pylist()),
            n_units=np.diff(_one(last, "spans").offsets.to_numpy()).astype(np.int64),
            target=_numbers(last, "target"),
            gold=_numbers(last, "gold"),
            n_cut=_numbers(last, "n_cut"),
            groups=tuple(last.column("group").to_pylist()),
            skip_reasons={place: reason for place, reason in reasons if reason is not None},
            problems=problems,
            _vectors=vectors,
        )

    @classmethod
    def join(cls, parts: "Sequence[Examples]") -> "Examples":
        if len(parts) == 1:
            return parts[0]
        start, reasons, problems = 0, dict[int, str](), dict[tuple[int, str], str]()
        vectors: dict[str, dict[int, NDArray[np.float64]]] = {}
        for part in parts:
            reasons |= {start + place: why for place, why in part.skip_reasons.items()}
            problems |= {(start + place, name): why for (place, name), why in part.problems.items()}
            for name, own in part._vectors.items():
                vectors.setdefault(name, {}).update({start + place: values for place, values in own.items()})
            start += len(part)
        numbers = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("n_units", "target", "gold", "n_cut")
        }
        return cls(
            ids=tuple(name for part in parts for name in part.ids),
            **numbers,
            groups=tuple(group for part in parts for group in part.groups),
            skip_reasons=reasons,
            problems=problems,
            _vectors=vectors,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def vector(self, attribution: str, place: int) -> NDArray[np.float64]:
        """Return the numbers of an attribution for one example; empty if it has none."""
        return self._vectors.get(attribution, {}).get(place, np.zeros(0))

    def sizes(self, attribution: str, k: Share | None, *, magnitude: bool) -> Ids:
        """Return the number of units in each rationale; 0 if there is none (see `reason`)."""
        sizes = np.zeros(len(self), dtype=np.int64)
        for place, values in self._vectors.get(attribution, {}).items():
            out = self.target[place] == NOT_SET or place in self.skip_reasons or (place, attribution) in self.problems
            if not out and np.isfinite(values).all():
                sizes[place] = rationale_size(values, k, magnitude=magnitude)
        return np.where(sizes < self.n_units, sizes, 0)

    def reason(self, attribution: str, place: int) -> str:
        """Return the reason why an example has no rationale of an attribution."""
        if place in self.skip_reasons:
            return self.skip_reasons[place]
        named, values = f"the attribution '{attribution}'", self.vector(attribution, place)
        if (place, attribution) in self.problems:
            return f"{named}: {self.problems[place, attribution]}"
        if place not in self._vectors.get(attribution, {}):
            return f"{named} gave nothing"
        if not np.isfinite(values).all():
            return f"{named} is not finite"
        return f"{named} marks {'every' if (values > 0).any() else 'no'} unit of the text"


def _one(table: pa.Table, name: str) -> Any:
    """Return a column as one array."""
    found = table.column(name).combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _numbers(table: pa.Table, name: str) -> Ids:
    values: Ids = table.column(name).fill_null(NOT_SET).to_numpy().astype(np.int64)
    return values


def _vectors_in(table: pa.Table) -> _Vectors:
    column = _one(table, "attributions")
    lists, names = column.items, column.keys.to_pylist()
    values, ends = lists.values.to_numpy(zero_copy_only=False), lists.offsets.to_numpy().tolist()
    examples = np.repeat(np.arange(len(table)), np.diff(column.offsets.to_numpy())).tolist()
    found: dict[str, dict[int, NDArray[np.float64]]] = {}
    for name, example, (start, stop) in zip(names, examples, itertools.pairwise(ends), strict=True):
        found.setdefault(name, {})[example] = values[start:stop]
    return found


def _problems_in(table: pa.Table) -> dict[tuple[int, str], str]:
    column = _one(table, "answers")
    if not len(column.keys):
        return {}
    answers = ((place, name, answer) for place, said in enumerate(column.to_pylist()) for name, answer in said)
    return {(place, name): answer["problem"] for place, name, answer in answers if answer["problem"] is not None}
