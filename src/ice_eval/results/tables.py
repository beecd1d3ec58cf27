"""Rows and examples as tables of parquet files, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ice_eval.records import Answer, Span
from ice_eval.results.schema import INPUTS, LEDGER, InputRow, LedgerRow, RowKey


def ledger_table(rows: Sequence[LedgerRow]) -> pa.Table:
    """Rows as the ledger of a part holds them."""
    records = [{**row.key._asdict(), **{name: getattr(row, name) for name in LedgerRow._fields[1:]}} for row in rows]
    return pa.Table.from_pylist(records, schema=LEDGER)


def ledger_row(record: Mapping[str, Any]) -> LedgerRow:
    """A row of it again; what was not read is empty."""
    return LedgerRow(
        key=RowKey(**{name: record[name] for name in RowKey._fields}),
        kept=tuple(record["kept"]),
        input_ids=tuple(record.get("input_ids") or ()),
        segment_ids=tuple(record.get("segment_ids") or ()),
        scores=tuple(record["scores"]),
        text=record.get("text"),
    )


def inputs_table(rows: Sequence[InputRow]) -> pa.Table:
    """Examples as the inputs of a part hold them."""
    records = [
        {
            **{name: getattr(row, name) for name in INPUTS.names},
            "fields": list(row.fields.items()),
            "spans": [span._asdict() for span in row.spans],
            "human": [span._asdict() for span in row.human],
            "attributions": list(row.attributions.items()),
            "answers": [(name, answer._asdict()) for name, answer in row.answers.items()],
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=INPUTS)


def input_row(record: dict[str, Any]) -> InputRow:
    """An example of it again."""
    spans = {name: tuple(Span(**span) for span in record[name]) for name in ("spans", "human")}
    vectors = {name: tuple(values) for name, values in record["attributions"]}
    # Folders of earlier versions know of no answers.
    answers = {name: Answer(**answer) for name, answer in record.get("answers") or ()}
    return InputRow(
        **{**record, **spans, "fields": dict(record["fields"]), "attributions": vectors, "answers": answers}
    )
