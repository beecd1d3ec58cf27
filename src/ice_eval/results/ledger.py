"""The ledger: every scored row, as arrays in memory and as one Arrow table per part, and log-odds of its scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ice_eval.records import DIRECTIONS, NOT_SET, ROW, Ids, Inputs, Kind, LogScores, Rows

Values = NDArray[np.float64]

WEAK_SIGNAL = 0.05
"""Signals `s(x) - s(∅)` below this size are too small to divide by."""
_CODED = {name: name for name in ("kind", "attribution", "null", "operator", "direction")} | {"example": "example_id"}
"""Column of `ROW` -> column of the file."""
_NUMBERS = ("size", "set", "draw")
_KIND_NAMES = tuple(kind.label for kind in Kind)


_NAMES_8, _NAMES_16, _NAMES_32 = (pa.dictionary(kind, pa.string()) for kind in (pa.int8(), pa.int16(), pa.int32()))
LEDGER = pa.schema(
    [
        pa.field("example_id", _NAMES_32, nullable=False),
        pa.field("kind", _NAMES_8, nullable=False),
        pa.field("attribution", _NAMES_16),
        pa.field("null", _NAMES_16),
        pa.field("operator", _NAMES_16),
        pa.field("direction", _NAMES_8),
        pa.field("size", pa.int32()),
        pa.field("set", pa.int32()),
        pa.field("draw", pa.int32()),
        pa.field("kept", pa.list_(pa.int32()), nullable=False),
        pa.field("input_ids", pa.list_(pa.int64()), nullable=False),
        pa.field("segment_ids", pa.list_(pa.int8())),
        pa.field("scores", pa.list_(pa.float64()), nullable=False),
        pa.field("text", pa.string()),
    ]
)
"""Columns of the file; `RowKey` and `LedgerRow` describe them."""


class Names(NamedTuple):
    """Names of the codes in rows."""

    examples: tuple[str, ...]
    attributions: tuple[str, ...]
    nulls: tuple[str, ...]
    operators: tuple[str, ...]

    def of(self, column: str) -> tuple[str, ...]:
        fixed: dict[str, tuple[str, ...]] = {"kind": _KIND_NAMES, "direction": DIRECTIONS}
        return fixed.get(column) or getattr(self, f"{column}s")


class RowKey(NamedTuple):
    """The names that identify one row."""

    example_id: str
    """`id` of the example, else its row, counted from 0."""
    kind: Kind
    """Purpose of the row: a kind of the list below."""
    operator: str | None = None
    """Null where none changed the input: `full`, and `empty` but for `--protocol released`."""
    direction: str | None = None
    """`sufficiency`: the set is kept; `necessity`: it is removed."""
    size: int | None = None
    """Number of units in the set."""
    set: int | None = None
    """Place of a random set in its null; of a rationale, of the equal random set; of a probe, number or unit."""
    draw: int | None = None
    """Fill, from 0. Rationales have a row for each; random set j has fill j modulo their number."""
    attribution: str | None = None
    """Owner of a rationale, probe or null; null where all share a null."""
    null: str | None = None
    """Null of a random set, as `size`."""


class LedgerRow(NamedTuple):
    """One row in readable form."""

    key: RowKey
    kept: tuple[int, ...]
    """Units that the input keeps, ascending; of chains in the order shown."""
    scores: tuple[float, ...]
    """Log-probability of each label, normalised over the labels, in the manifest's order."""
    input_ids: tuple[int, ...] = ()
    """Tokens that the model read."""
    segment_ids: tuple[int, ...] = ()
    """1 for the second text of a pair, 2 for the tokens of a claim; null for models that read one text."""
    text: str | None = None
    """Reply, or a text with fills of its own; other texts follow from `kept`, `spans` and `fills`."""


NO_NAMES = Names((), (), (), ())
"""With these, codes follow the order in which a table lists its names."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """Rows and their log-scores."""

    names: Names
    head: NDArray[Any]
    """(rows,) of `ROW`."""
    scores: LogScores
    """(rows, labels)"""
    kept: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Units that rows keep, end to end; read only with `inputs`."""
    n_kept: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    inputs: Inputs = field(default_factory=lambda: Inputs.join([]))
    """Token ids that the model read; loaded only on demand."""
    texts: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Names, rows: Rows, scores: LogScores) -> "Ledger":
        return cls(names, rows.head, scores, rows.kept, rows.n_kept, rows.inputs, rows.texts)

    def __len__(self) -> int:
        return len(self.head)

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table, as stored in `ledger/`."""
        columns: dict[str, pa.Array] = {}
        for name, column in _CODED.items():
            codes, kind = self.head[name], LEDGER.field(column).type
            places = pa.array(codes, mask=codes == NOT_SET, type=kind.index_type)
            columns[column] = pa.DictionaryArray.from_arrays(places, pa.array(self.names.of(name), pa.string()))
        for name in _NUMBERS:
            columns[name] = pa.array(self.head[name], mask=self.head[name] == NOT_SET, type=pa.int32())
        n_rows, n_labels = self.scores.shape
        columns["kept"] = _lists(self.kept, np.append(0, np.cumsum(self.n_kept)), pa.int32())
        columns["input_ids"] = _lists(self.inputs.ids, self.inputs.offsets, pa.int64())
        columns["segment_ids"] = pa.nulls(n_rows, pa.list_(pa.int8()))
        if self.inputs.segments.any():
            columns["segment_ids"] = _lists(self.inputs.segments, self.inputs.offsets, pa.int8())
        columns["scores"] = _lists(self.scores.ravel(), np.arange(n_rows + 1) * n_labels, pa.float64())
        texts = [self.texts.get(row) for row in range(n_rows)] if self.texts else pa.nulls(n_rows, pa.string())
        return pa.table({**columns, "text": texts}, schema=LEDGER)

    @classmethod
    def read(cls, table: pa.Table, names: Names) -> "Ledger":
        """Return the rows of a table; codes are indices into `names`, extended by new ones."""
        head = np.full(len(table), NOT_SET, dtype=ROW)
        for name, column in _CODED.items():
            head[name], known = _codes(table.column(column), names.of(name))
            names = names._replace(**{f"{name}s": known}) if f"{name}s" in names._fields else names
        for name in _NUMBERS:
            head[name] = table.column(name).fill_null(NOT_SET).to_numpy()
        scores, ends = _flat(table.column("scores"))
        widths = np.diff(ends)
        if widths.size and not (widths[0] > 0 and (widths == widths[0]).all()):
            raise ValueError("the rows of `scores` differ in length, or are empty")
        if (head["kind"] >= len(_KIND_NAMES)).any() or (head["direction"] >= len(DIRECTIONS)).any():
            raise ValueError("an unknown kind of row or direction")
        if (head["example"] < 0).any() or (head["kind"] < 0).any():
            raise ValueError("a row without an example or a kind")
        found: dict[str, Any] = {}
        if "kept" in table.column_names:
            kept, offsets = _flat(table.column("kept"))
            found |= {"kept": kept.astype(np.int64), "n_kept": np.diff(offsets).astype(np.int64)}
        if "input_ids" in table.column_names:
            ids, offsets = _flat(table.column("input_ids"))
            pairs, _ = _flat(table.column("segment_ids"))
            if len(pairs) not in (0, len(ids)):
                raise ValueError("`segment_ids` and `input_ids` differ in length")
            segments = pairs.astype(np.int64) if len(pairs) else np.zeros(len(ids), dtype=np.int64)
            found["inputs"] = Inputs(ids.astype(np.int64), segments, offsets.astype(np.int64))
        if "text" in table.column_names:
            texts = table.column("text")
            listed = texts.to_pylist() if texts.null_count < len(texts) else []
            found["texts"] = {row: text for row, text in enumerate(listed) if text is not None}
        return cls(names, head, scores.reshape(len(table), len(scores) // max(len(table), 1)), **found)

    @classmethod
    def join(cls, ledgers: "Sequence[Ledger]", names: Names) -> "Ledger":
        """Return the rows of ledgers that share their codes."""
        rows = Rows.join([each.rows() for each in ledgers])
        scores = [each.scores for each in ledgers if len(each)]
        return cls.of(names, rows, np.concatenate(scores) if scores else np.zeros((0, 0)))

    @classmethod
    def empty(cls, names: Names) -> "Ledger":
        return cls.of(names, Rows.join([]), np.zeros((0, 0)))

    def take(self, rows: Ids) -> "Ledger":
        return Ledger.of(self.names, self.rows().take(rows), self.scores[rows])

    def rows(self) -> Rows:
        """Return the rows without their scores."""
        return Rows(self.head, self.kept, self.n_kept, self.inputs, self.texts)

    def records(self, rows: Ids | None = None) -> list[LedgerRow]:
        """Return all or some rows as records."""
        return [self._record(row) for row in (range(len(self)) if rows is None else rows.tolist())]

    def units(self, row: int) -> Ids:
        """Return the units that a row keeps; none where they were not read."""
        return self.kept[self._ends[row] - self.n_kept[row] : self._ends[row]] if len(self.n_kept) else self.kept

    def masks(self, rows: Ids, n_units: int) -> NDArray[np.bool_]:
        """Return the units that some rows of one example keep, (rows, units)."""
        counts, found = self.n_kept[rows], np.zeros((len(rows), n_units), dtype=np.bool_)
        starts = np.repeat(self._ends[rows] - np.cumsum(counts), counts)
        found[np.repeat(np.arange(len(rows)), counts), self.kept[starts + np.arange(counts.sum())]] = True
        return found

    @cached_property
    def _ends(self) -> Ids:
        """(rows,): where the units of each row end in `kept`."""
        return np.cumsum(self.n_kept)

    def _record(self, row: int) -> LedgerRow:
        head, numbers = self.head[row], dict[str, Any]()
        for name, column in _CODED.items():
            numbers[column] = None if head[name] == NOT_SET else self.names.of(name)[head[name]]
        numbers |= {name: None if head[name] == NOT_SET else int(head[name]) for name in _NUMBERS}
        numbers["kind"] = Kind(head["kind"])
        has_inputs = len(self.inputs) == len(self)
        seen = slice(*self.inputs.offsets[row : row + 2]) if has_inputs else slice(0, 0)
        return LedgerRow(
            RowKey(**numbers),
            tuple(self.units(row).tolist()),
            tuple(self.scores[row].tolist()),
            tuple(self.inputs.ids[seen].tolist()),
            tuple(self.inputs.segments[seen].tolist()),
            self.texts.get(row),
        )


def _lists(values: NDArray[Any], offsets: NDArray[Any], kind: pa.DataType) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, kind))


def _flat(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[Any]]:
    lists = column.combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) and lists.num_chunks else lists
    offsets = lists.offsets.to_numpy(zero_copy_only=False)
    return lists.flatten().to_numpy(zero_copy_only=False), offsets - (offsets[0] if len(offsets) else 0)


def _codes(column: pa.ChunkedArray, names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the index of each value in `names` (`NOT_SET` if null), and `names` extended by new ones."""
    coded = column.unify_dictionaries().combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    known = {name: place for place, name in enumerate(names)}
    own = [known.setdefault(name, len(known)) for name in coded.dictionary.to_pylist()]
    places = np.array([*own, NOT_SET], dtype=np.int64)
    return places[coded.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)], tuple(known)


def log_odds(scores: LogScores, target: Ids | int, *, versus: int | None = None) -> Values:
    """Return `z_y - logsumexp(z_others)` of every row: ordered as the probability, without its saturation.

    `scores` is (rows, labels); a negative target gives NaN. With `versus`, that label alone is the others. The
    score of a single label, a log-probability among all texts, has no others to compare with, and is returned as it is.
    """
    labels = np.broadcast_to(np.asarray(target, dtype=np.int64), len(scores))
    if scores.shape[1] == 1:
        return np.where(labels >= 0, scores[:, 0], np.nan)
    rows, chosen = np.arange(len(scores)), np.maximum(labels, 0)
    others = scores.copy()
    others[rows, chosen] = -np.inf
    if versus is not None:
        others[:, np.arange(scores.shape[1]) != versus] = -np.inf
    top = others.max(axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):  # scores that are not finite give NaN, the caller reports them
        rest = top + np.log(np.exp(others - top[:, None]).sum(axis=1))
        result: Values = np.where(labels >= 0, scores[rows, chosen] - rest, np.nan)
    return result


def sigmoid(log_odds: Values) -> Values:
    """Return the probability for log-odds, without overflow."""
    with np.errstate(invalid="ignore"):
        result: Values = np.exp(-np.logaddexp(0.0, -log_odds))
    return result


def logit(probability: Values) -> Values:
    """Return the log-odds of a probability; infinite at 0 and 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Values = np.log(probability) - np.log1p(-probability)
    return result


def clipped_nsr(probability: Values, full: Values, empty: Values) -> Values:
    """Return `(s - s(∅)) / (s(x) - s(∅))` as in the released package: clipped to [-2, 2], and 0 for a weak signal.

    `probability` is (examples, rows); `full` and `empty` are (examples,).
    """
    signal = (full - empty)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip((probability - empty[:, None]) / signal, -2.0, 2.0)
    return np.where(np.abs(signal) < WEAK_SIGNAL, np.where(np.isnan(probability), np.nan, 0.0), ratio)
