"""Rows one by one: tests may loop where models and the ledger must not."""

import pyarrow as pa

from ice_eval.nulls import SIZE
from ice_eval.records import Inputs, Kind
from ice_eval.results.ledger import LEDGER, NO_NAMES, Ledger


def each_row(batch):
    """Every row as inputs of its own."""
    return [batch.take([index]) for index in range(len(batch))]


def join(rows):
    """One batch of rows that are inputs of their own."""
    return Inputs.join(list(rows))


def ledger_rows(folder, part=None, *, probes=True):
    """The rows of a run folder, or of one of its parts, as records, with or without probes."""
    parts = folder.parts() if part is None else [part]
    rows = [row for each in parts for row in folder.ledger(each, NO_NAMES, inputs=True).records()]
    return [row for row in rows if probes or row.key.kind not in (Kind.PROBE, Kind.ERASER, Kind.LEAVE_ONE_OUT)]


def ledger_of(records, names):
    """The ledger of some rows; `names` as in `Ledger.read`."""
    rows = []
    for row in records:
        segments = row.segment_ids or (0,) * len(row.input_ids)
        rows.append({**row._asdict(), **row.key._asdict(), "kind": row.key.kind.label, "segment_ids": segments})
    return Ledger.read(pa.Table.from_pylist(rows, schema=LEDGER), names)


def name_of(row):
    """What a row is in one word: `full`, `rationale:attention`, `random`, `random:position:attention`, `probe:lime`."""
    key = row.key
    null = None if key.null == SIZE else key.null
    return ":".join(part for part in (key.kind.label, null, key.attribution) if part)
