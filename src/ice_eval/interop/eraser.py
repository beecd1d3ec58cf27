"""Rationales in the format of the ERASER benchmark (DeYoung et al., 2020).

Spans count the words of a document, which spaces separate. Human rationales are `evidences`; predicted ones are
`rationales`, soft (a number per word) or hard (spans). Where both are given, the soft ones are taken. Spans are sets:
rationales of their own size.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ice_eval.errors import DataError
from ice_eval.interop._checked import keyed, listed, placed
from ice_eval.interop._files import ending_of, first_row, rows_of
from ice_eval.interop._formats import Format, explanation_format
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece

_SOFT, _HARD = "soft_rationale_predictions", "hard_rationale_predictions"


def is_eraser(source: object) -> bool:
    """Whether a file holds ERASER's annotations or predictions."""
    row = first_row(source) if isinstance(source, Path) and ending_of(source) in {".jsonl", ".json"} else None
    return isinstance(row, Mapping) and bool({"evidences", "rationales"} & set(row))


@explanation_format("eraser")
class Eraser(Format):
    """ERASER's annotations (evidences) and predictions (soft or hard rationales), over words between spaces."""

    def reads(self, source: object) -> bool:
        return is_eraser(source)

    def explanations(self, source: Path) -> Iterator[Explanation]:
        for where, row in rows_of(source):
            with placed(where):
                found = explanation(keyed(row, "an explanation"))
            yield found


def explanation(row: Mapping[str, Any]) -> Explanation:
    """One line.

    Raises:
        DataError: It is not as ERASER has it.
    """
    identity = row.get("annotation_id", row.get("id"))
    documents = [keyed(each, "a rationale") for each in listed(row.get("rationales", ()), '"rationales"')]
    scored = [
        *(pair for document in documents for pair in _predicted(document)),
        *((_words(span), 1.0) for span in _flat(listed(row.get("evidences", ()), '"evidences"'))),
    ]
    return Explanation(
        numbers([score for _, score in scored]),
        tuple(piece for piece, _ in scored),
        id=None if identity is None else str(identity),
        is_set=not any(document.get(_SOFT) is not None for document in documents),
    )


def _predicted(document: Mapping[str, Any]) -> Iterator[tuple[Piece, Any]]:
    field = _field(document.get("docid"))
    if document.get(_SOFT) is not None:
        for place, score in enumerate(listed(document[_SOFT], _SOFT)):
            yield Piece(None, place, place + 1, field, counted="words"), score
    elif _HARD in document:
        for span in listed(document[_HARD], _HARD):
            yield _words({**keyed(span, "a span"), "docid": document.get("docid")}), 1.0
    else:
        raise DataError(f"neither {_SOFT} nor {_HARD}; the rationale has {', '.join(document)}.")


def _words(span: Mapping[str, Any]) -> Piece:
    start, end = span.get("start_token"), span.get("end_token")
    if type(start) is not int or type(end) is not int:
        raise DataError(f"the span {span!r:.80} has no whole numbers for start_token and end_token.")
    return Piece(span.get("text"), start, end, _field(span.get("docid")), counted="words")


def _flat(evidences: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Evidences come in groups of spans, or as spans."""
    for each in evidences:
        group = [each] if isinstance(each, Mapping) else listed(each, "a group of evidences")
        yield from (keyed(span, "an evidence") for span in group)


def _field(docid: object) -> str | None:
    """The field of a document: `4705_premise` is the premise; other names say nothing."""
    ending = str(docid).rpartition("_")[2]
    return ending if ending in {"premise", "hypothesis"} else None
