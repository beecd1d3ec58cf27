"""A local page for many run folders: index, reports, comparisons, and what-if questions to the model of a run."""

from ice_eval.view.index import RunEntry, RunIndex
from ice_eval.view.what_if import WhatIf

__all__ = ["RunEntry", "RunIndex", "WhatIf"]
