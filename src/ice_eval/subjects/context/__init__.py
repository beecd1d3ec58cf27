"""Answers that cite sources: passages, claims and their citations. `subject` makes them the subject of a run."""

from ice_eval.subjects.context.answers import CitedAnswer, Claim, Passage
from ice_eval.subjects.context.tasks import CitationTask

__all__ = ["CitationTask", "CitedAnswer", "Claim", "Passage"]
