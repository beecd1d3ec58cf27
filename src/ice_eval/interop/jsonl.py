"""Explanations with one JSON object per line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval.errors import DataError
from ice_eval.interop._checked import keyed, listed, placed
from ice_eval.interop._files import ending_of, rows_of
from ice_eval.interop._formats import Format, explanation_format
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation, Piece

_KEYS = {"id", "text", "fields", "tokens", "words", "spans", "scores", "classes"}
_SHAPES = '"tokens" and "scores", "words" and "scores", "spans", or "scores" alone'


@explanation_format("jsonl")
class JsonLines(Format):
    """One object per line: id or text, and tokens with scores, spans with or without scores, or a score per unit."""

    def reads(self, source: object) -> bool:
        from ice_eval.interop.eraser import is_eraser
        from ice_eval.interop.inseq import is_saved

        if isinstance(source, Mapping):
            return bool(_KEYS & {"scores", "spans"} & set(source))
        is_file = isinstance(source, Path) and ending_of(source) in {".jsonl", ".json", ".ndjson"}
        return is_file and not is_eraser(source) and not is_saved(source)

    def explanations(self, source: Any) -> Iterator[Explanation]:
        rows = [("the record", source)] if isinstance(source, Mapping) else rows_of(source)
        if not rows:
            raise DataError(f"{source} holds no explanations; at least one is needed.")
        for where, row in rows:
            with placed(where):
                found = explanation(keyed(row, "an explanation"))
            yield found


def explanation(row: Mapping[str, Any]) -> Explanation:
    """One line.

    Raises:
        DataError: It has not the keys that are needed, or they do not go together.
    """
    text, classes = row.get("text"), row.get("classes")
    return replace(
        _content(row),
        id=None if row.get("id") is None else str(row["id"]),
        text=row.get("fields") if text is None else text,
        classes=tuple(map(str, listed(() if classes is None else classes, '"classes"'))),
    )


def _content(row: Mapping[str, Any]) -> Explanation:
    if "spans" in row:
        return _spans(listed(row["spans"], '"spans"', "[[start, end, score], …] is expected"), row.get("scores"))
    if "scores" not in row:
        raise DataError(f"{_SHAPES} is expected, and the object has {', '.join(map(str, row)) or 'nothing'}.")
    tokens = row.get("tokens", row.get("words"))
    if tokens is None:
        return Explanation(numbers(row["scores"]))
    by_field = tokens if isinstance(tokens, Mapping) else {None: tokens}
    pieces = [
        Piece(token, field=field)
        for field, each in by_field.items()
        for token in listed(each, '"tokens"', "a list of texts is expected")
    ]
    return Explanation(numbers(row["scores"]), tuple(pieces))


def _spans(spans: Sequence[Any], scores: Any) -> Explanation:
    given = [_span(span) for span in spans]
    pieces = tuple(piece for piece, _ in given)
    found = [score for _, score in given] if scores is None else listed(scores, '"scores"')
    if all(score is None for score in found):
        return Explanation(np.ones(len(found)), pieces, is_set=True)
    if any(score is None for score in found):
        raise DataError("a span without a score among others; [start, end, score] is expected.")
    return Explanation(numbers(found), pieces)


def _span(span: Any) -> tuple[Piece, Any]:
    if isinstance(span, Mapping):
        piece = Piece(span.get("text"), span.get("start"), span.get("end"), span.get("field"))
        score = span.get("score")
    elif len(listed(span, "a span", "[start, end, score] is expected")) in {2, 3}:
        piece, score = Piece(None, span[0], span[1]), span[2] if len(span) == 3 else None
    else:
        raise DataError(f"the span {span!r:.60}; [start, end, score] is expected.")
    if type(piece.start) is not int or type(piece.end) is not int:
        raise DataError(f"the span {span!r:.60} has no whole numbers for start and end.")
    return piece, score
