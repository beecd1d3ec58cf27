"""The run folder: manifest, inputs, ledger; and all statistics, computed from it without a model."""

from ice_eval.results.files import write_atomically, write_json
from ice_eval.results.folder import RunFolder
from ice_eval.results.schema import SCHEMA, InputRow, LedgerRow, RowKey
from ice_eval.results.summary import rescore

__all__ = ["SCHEMA", "InputRow", "LedgerRow", "RowKey", "RunFolder", "rescore", "write_atomically", "write_json"]
