"""All tables and notes of some runs, whatever their kind: what the command line and the page show."""

from collections.abc import Sequence

from ice_eval.report.chains import cot_notes, cot_tables
from ice_eval.report.notes import explanation_notes
from ice_eval.report.summaries import explanation_tables
from ice_eval.report.tables import Table
from ice_eval.results import Summary


def tables(summaries: Sequence[Summary]) -> list[Table]:
    """All tables of some runs that have a row; what is said of chains comes first."""
    return [*cot_tables(*summaries), *explanation_tables(summaries)]


def notes(*summaries: Summary) -> list[str]:
    """What a reader must know beside the numbers, each thing once."""
    return [*cot_notes(*summaries), *explanation_notes(*summaries)]
