"""Explanations with one JSON object per line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval.errors import DataError
from ice_eval.interop._files import ending_of, rows_of
from ice_eval.interop._formats import Format, explanation_format, numbers
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
        rows = [source] if isinstance(source, Mapping) else rows_of(source)
        origin = "the record" if isinstance(source, Mapping) else str(source)
        if not rows:
            raise DataError(f"{origin} holds no explanations; at least one is needed.")
        for place, row in enumerate(rows):
            yield explanation(row, f"{origin}, explanation {place}")


def explanation(row: Any, where: str) -> Explanation:
    """One line.

    Raises:
        DataError: It has not the keys that are needed, or they do not go together.
    """
    if not isinstance(row, Mapping):
        raise DataError(f'{where}: an object is expected, as {{"id": …, "tokens": …}}, not {type(row).__name__}.')
    try:
        found = _content(row, where)
    except DataError as exc:
        message = str(exc)
        raise exc if message.startswith(where) else DataError(f"{where}: {message}") from exc
    if found.pieces is not None and len(found.pieces) != len(found.scores):
        raise DataError(f"{where}: {len(found.pieces)} tokens and {len(found.scores)} scores; give one each.")
    text = row.get("text", row.get("fields"))
    return replace(
        found,
        id=None if row.get("id") is None else str(row["id"]),
        text=text if isinstance(text, str | Mapping) else None,
        classes=tuple(map(str, row.get("classes", ()))),
    )


def _content(row: Mapping[str, Any], where: str) -> Explanation:
    if "spans" in row:
        return _spans(row["spans"], row.get("scores"), where)
    if "scores" not in row:
        raise DataError(f"{where}: {_SHAPES} is expected, and the object has {', '.join(map(str, row)) or 'nothing'}.")
    scores = numbers(row["scores"])
    tokens = row.get("tokens", row.get("words"))
    if tokens is None:
        return Explanation(scores)
    if isinstance(tokens, Mapping):  # by field
        return Explanation(scores, tuple(Piece(str(t), field=field) for field, each in tokens.items() for t in each))
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise DataError(f'{where}: "tokens" is {tokens!r:.60}; a list of texts is expected.')
    return Explanation(scores, tuple(Piece(str(token)) for token in tokens))


def _spans(spans: Any, scores: Any, where: str) -> Explanation:
    if not isinstance(spans, Sequence) or isinstance(spans, str):
        raise DataError(f'{where}: "spans" is {spans!r:.60}; [[start, end, score], …] is expected.')
    given = [_span(span, where) for span in spans]
    pieces = tuple(piece for piece, _ in given)
    found = [score for _, score in given] if scores is None else scores
    if found and all(score is None for score in found):
        return Explanation(np.ones(len(found)), pieces, is_set=True)
    if any(score is None for score in found):
        raise DataError(f"{where}: a span without a score among others; [start, end, score] is expected.")
    return Explanation(numbers(found).reshape(len(found)), pieces)


def _span(span: Any, where: str) -> tuple[Piece, Any]:
    if isinstance(span, Mapping):
        piece = Piece(span.get("text"), span.get("start"), span.get("end"), span.get("field"))
        score = span.get("score")
    elif isinstance(span, Sequence) and len(span) in {2, 3}:
        piece, score = Piece(None, span[0], span[1]), span[2] if len(span) == 3 else None
    else:
        raise DataError(f"{where}: the span {span!r:.60}; [start, end, score] is expected.")
    if type(piece.start) is not int or type(piece.end) is not int:
        raise DataError(f"{where}: the span {span!r:.60} has no whole numbers for start and end.")
    return piece, score
