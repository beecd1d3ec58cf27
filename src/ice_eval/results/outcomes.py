"""Outcomes of single examples as tables and records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ice_eval.rationales import DYNAMIC
from ice_eval.results.columns import Outcomes
from ice_eval.results.log_odds import WEAK_SIGNAL
from ice_eval.results.records import Configuration, ExampleOutcome

ALL = "all"
"""Operator name of the average over operators."""
TIE_FLAG = 0.01
"""Tie rates above this are flagged: every tie lowers a strict win rate."""


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
        pa.field("example_id", _NAME, nullable=False),
        *(pa.field(name, _NAME, nullable=False) for name in ("attribution", "operator", "direction")),
        pa.field("k", pa.string()),  # a share, `dynamic`, or null: set by the attribution
        pa.field("null", _NAME, nullable=False),
        pa.field("n_units", pa.int32(), nullable=False),
        pa.field("target", pa.int32()),
        pa.field("gold", pa.int32()),
        pa.field("error", pa.string()),  # reason for missing numbers
        pa.field("predicted", pa.int32()),
        pa.field("m", pa.int32()),  # random sets used
        pa.field("exact", pa.bool_()),  # true if they are all sets of the size
        *(pa.field(name, pa.float64()) for name in _REAL),
        *(pa.field(name, pa.bool_()) for name in FLAGS),
        pa.field("rationale", pa.list_(pa.int32())),
    ]
)


def outcome_table(grouped: Mapping[Configuration, Outcomes]) -> pa.Table:
    """Return outcomes as a table, example by example, each under all configurations."""
    if not grouped:
        return OUTCOMES.empty_table()
    cells, several = list(grouped), list(grouped.values())
    n_examples, n_cells = len(several[0]), len(cells)
    columns: dict[str, Any] = {"example_id": _named(np.repeat(np.arange(n_examples), n_cells), several[0].ids)}
    for name in ("attribution", "operator", "direction", "null"):
        own = [getattr(cell, name) for cell in cells]
        known = list(dict.fromkeys(own))
        columns[name] = _named(np.tile([known.index(value) for value in own], n_examples), known)
    shares = [None if cell.k is None else str(cell.k) for cell in cells]
    columns["k"] = pa.array(shares * n_examples, pa.string())
    sound = np.stack([each.sound for each in several], axis=1).ravel()
    for name in (*_WHOLE, *_REAL):
        values = np.stack([each.column(name) for each in several], axis=1).ravel()
        kind = OUTCOMES.field(name).type
        missing = np.isnan(values) if name in _OF_ALL else np.isnan(values) | ~sound
        filled = np.where(missing, 0, values)
        columns[name] = pa.array(filled.astype(np.int32) if name in _WHOLE else filled, kind, mask=missing)
    exact = np.stack([each.flag("exact") for each in several], axis=1).ravel()
    for name, raised in {"exact": exact, **_flags(several)}.items():
        columns[name] = pa.array(raised, pa.bool_(), mask=~sound)
    columns["error"] = pa.array(_interleaved(several, lambda each: each.errors), pa.string())
    columns["rationale"] = pa.array(_interleaved(several, _rationales), pa.list_(pa.int32()))
    return pa.table([columns[name] for name in OUTCOMES.names], schema=OUTCOMES)


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


def _named(codes: NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(names), pa.string()))


def _flags(several: Sequence[Outcomes]) -> dict[str, NDArray[np.bool_]]:
    signal, ties = (
        np.stack([each.column(name) for each in several], axis=1).ravel() for name in ("signal", "tie_rate")
    )
    with np.errstate(invalid="ignore"):
        return {"weak_signal": np.abs(signal) < WEAK_SIGNAL, "negative_signal": signal < 0, "ties": ties > TIE_FLAG}


def _rationales(outcomes: Outcomes) -> dict[int, tuple[int, ...]]:
    return dict(zip(np.flatnonzero(outcomes.sound).tolist(), outcomes.rationales, strict=True))


def _interleaved(several: Sequence[Outcomes], values_of: Any) -> list[Any]:
    """Return a value per example and configuration, None where it is missing."""
    found: list[Any] = [None] * (len(several[0]) * len(several))
    for place, outcomes in enumerate(several):
        for example, value in values_of(outcomes).items():
            found[example * len(several) + place] = value
    return found
