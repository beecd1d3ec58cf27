"""What the files of a run folder hold. The version moves only when a file's format does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ice_eval.nulls import SIZE
from ice_eval.protocols import Protocol
from ice_eval.records import Answer, ModelInput, Span

SCHEMA = 1
SHARED_NULL = "random"
"""`kind` of the random sets that all attributions are compared with."""
PROBE = "probe:"
"""How the `kind` of rows begins that no rationale is compared with."""
LEAVE_ONE_OUT = f"{PROBE}leave-one-out"
"""`kind` of the rows that each remove one unit, for ERASER's measures."""
_ERASER = f"{PROBE}eraser:"

LEDGER = pa.schema(
    [
        pa.field("example_id", pa.string(), nullable=False),
        pa.field("operator", pa.string()),  # null for the rows no operator touched: full and empty
        pa.field("size", pa.int32()),  # units in the set
        pa.field("kind", pa.string(), nullable=False),  # full, empty, rationale:NAME, random, probe:NAME, …
        pa.field("direction", pa.string()),
        pa.field("set_index", pa.int32()),  # place of a random set in its order, or of a probe
        pa.field("draw", pa.int32()),  # which fill, where an operator needs one
        pa.field("kept", pa.list_(pa.int32()), nullable=False),  # units that the input keeps
        pa.field("input_ids", pa.list_(pa.int64()), nullable=False),
        pa.field("segment_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("scores", pa.list_(pa.float64()), nullable=False),  # log-probability of each label, manifest order
        pa.field("text", pa.string()),  # the content as the model saw it, decoded
    ]
)
_SPAN = pa.struct([("field", pa.string()), ("start", pa.int32()), ("end", pa.int32())])
_ANSWER = pa.struct(
    [
        ("text", pa.string()),
        ("tokens", pa.int32()),
        ("n_named", pa.int32()),
        ("n_absent", pa.int32()),
        ("problem", pa.string()),
    ]
)
INPUTS = pa.schema(
    [
        pa.field("example_id", pa.string(), nullable=False),
        pa.field("fields", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("spans", pa.list_(_SPAN), nullable=False),  # one per unit
        pa.field("gold", pa.int32()),
        pa.field("target", pa.int32()),  # the label that is explained; null for skipped examples
        pa.field("group", pa.string()),
        pa.field("human", pa.list_(_SPAN), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("skip_reason", pa.string()),
        pa.field("attributions", pa.map_(pa.string(), pa.list_(pa.float64())), nullable=False),
        pa.field("answers", pa.map_(pa.string(), _ANSWER)),  # attribution -> what the model said; null in old files
    ]
)


class RowKey(NamedTuple):
    """What makes a logical row unique within a run."""

    example_id: str
    kind: str
    operator: str | None = None
    direction: str | None = None
    size: int | None = None
    set_index: int | None = None
    draw: int | None = None


class LedgerRow(NamedTuple):
    """One row that was scored."""

    key: RowKey
    kept: tuple[int, ...]
    input_ids: tuple[int, ...]
    segment_ids: tuple[int, ...]
    scores: tuple[float, ...]
    text: str | None = None

    @property
    def input(self) -> ModelInput:
        """What the model saw."""
        return ModelInput(np.array(self.input_ids, dtype=np.int64), np.array(self.segment_ids, dtype=np.int64))


@dataclass(frozen=True)
class InputRow:
    """One example, as it went into the run."""

    example_id: str
    fields: Mapping[str, str]
    spans: tuple[Span, ...] = ()
    gold: int | None = None
    target: int | None = None
    group: str | None = None
    human: tuple[Span, ...] = ()
    truncated: bool = False
    skip_reason: str | None = None
    """Why the example takes no part; None for those that do."""
    attributions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Attribution -> a number per unit."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """Attribution -> what the model said, where it was asked."""


def null_kind(attribution: str, null: str, protocol: Protocol) -> str:
    """`kind` of the rows that an attribution is compared with.

    Sets of equal size are the same for all attributions, unless the protocol says otherwise; sets that are matched with
    a rationale in other ways too are its own.
    """
    if null != SIZE:
        return f"random:{null}:{attribution}"
    return f"random:{attribution}" if protocol.own_null else SHARED_NULL


def rationale_kind(attribution: str) -> str:
    """`kind` of the row that keeps an attribution's top-k."""
    return f"rationale:{attribution}"


def probe_kind(attribution: str) -> str:
    """`kind` of the rows that an attribution asked for; no rationale is compared with them."""
    return f"{PROBE}{attribution}"


def eraser_kind(attribution: str) -> str:
    """`kind` of the rows that keep or remove an attribution's rationale for ERASER's measures."""
    return f"{_ERASER}{attribution}"


def is_probe(kind: str) -> bool:
    """Whether a row was asked for by an attribution."""
    return kind.startswith(PROBE) and kind != LEAVE_ONE_OUT and not kind.startswith(_ERASER)
