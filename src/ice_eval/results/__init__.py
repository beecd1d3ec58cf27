"""The run folder: manifest, inputs, ledger; and all statistics, computed from it without a model."""

from ice_eval.results.examples import InputRow
from ice_eval.results.folder import RunFolder
from ice_eval.results.identity import (
    RunDifference,
    WinRateDifference,
    content_hash,
    content_hash_of_all,
    differences,
    now,
    numbers_hash,
    slug,
    stored_run,
    versions_of,
)
from ice_eval.results.ledger import LedgerRow, RowKey
from ice_eval.results.planning import Choice, Plan, plan
from ice_eval.results.records import SCHEMA, Configuration, ExampleOutcome, Manifest, RunSettings, Summary, SummaryLine
from ice_eval.results.summary import rescore
from ice_eval.results.view import ComparedOutcome, ExampleView, view_example

__all__ = [
    "SCHEMA", "Choice", "ComparedOutcome", "Configuration", "ExampleOutcome", "ExampleView", "InputRow", "LedgerRow",
    "Manifest", "Plan", "RowKey", "RunDifference", "RunFolder", "RunSettings", "Summary", "SummaryLine",
    "WinRateDifference", "content_hash", "content_hash_of_all", "differences", "now", "numbers_hash",
    "plan", "rescore", "slug", "stored_run", "versions_of", "view_example",
]  # fmt: skip
