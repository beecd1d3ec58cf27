"""Explanations in files of JSON, compressed by gzip or not: with our own keys, or in ERASER's format."""

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from ice_eval.errors import DataError
from ice_eval.files import json_in, readable
from ice_eval.interop._base import Explanation, Format, TextPart, explanation_format, numbers, placed
from ice_eval.tasks import numbered_rows

_SHAPES = '"tokens" and "scores", "words" and "scores", "spans", "weights", or "scores" alone'
_CONTENT = {"scores", "spans", "weights", "values", "word_attributions"}  # an explanation has one of these keys
_SOFT, _HARD = "soft_rationale_predictions", "hard_rationale_predictions"
_GZIP = b"\x1f\x8b"  # the first bytes of a compressed file, whatever its name
_INSEQ = (b"__instance_type__", b"FeatureAttributionOutput")  # among the first bytes of a file that inseq wrote


def _ending_of(path: Path) -> str:
    """Return the type of a file by its name: `.json` for `out.json` and for `out.json.gz`."""
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return bare.suffix.lower()


def _bytes_of(path: Path, *, most: int = -1) -> bytes:
    """Return the bytes of a file, or the first of them; uncompressed."""
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if compressed else path.open("rb") as content:
            return content.read(most)
    except (OSError, EOFError, zlib.error) as exc:
        raise DataError(f"{path} cannot be read: {getattr(exc, 'strerror', None) or exc}.") from exc


def _text_of(path: Path) -> str:
    with readable(path):
        text = _bytes_of(path).decode("utf-8-sig")
    return text


def json_of(path: Path) -> Any:
    return json_in(_text_of(path), path)


def _rows_of(path: Path) -> Sequence[tuple[str, Any]]:
    """Return the objects of a JSON-lines file, or of one JSON list, each after the position that errors name."""
    if _ending_of(path) == ".json":
        content = json_of(path)
        several = content if isinstance(content, list) and not is_pairs(content) else [content]
        return [(f"{path}, explanation {place}", row) for place, row in enumerate(several)]
    return [(f"{path}, line {line}", row) for line, row in numbered_rows(_text_of(path).split("\n"), str(path))]


def is_of_inseq(source: object) -> bool:
    """Return True if a file was written by inseq."""
    if not isinstance(source, Path) or _ending_of(source) != ".json":
        return False
    try:
        head = _bytes_of(source, most=4096)
    except DataError:  # a broken file; reading it raises the error
        return False
    return all(mark in head for mark in _INSEQ)


def _listed(value: object, name: str, expected: str = "a list is expected") -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise DataError(f"{name} is {value!r:.60}; {expected}.")
    return value


def _keyed(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{name} is {value!r:.60}; an object is expected.")
    return value


def is_pairs(value: object) -> bool:
    """Return True for a list of (word, score), as LIME and transformers-interpret return it."""
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value)
        and all(isinstance(word, str) and isinstance(score, Real) for word, score in value)
    )


@explanation_format("jsonl")
class JsonLines(Format):
    """One object per line: id or text, and tokens or words with scores, spans, or a score per unit."""

    def reads(self, source: object) -> bool:
        if isinstance(source, Mapping):
            return bool(_CONTENT & set(source))
        if is_pairs(source):
            return True
        is_file = isinstance(source, Path) and _ending_of(source) in {".jsonl", ".json", ".ndjson"}
        return is_file and not Eraser().reads(source) and not is_of_inseq(source)

    def explanations(self, source: Any) -> Iterator[Explanation]:
        rows = _rows_of(source) if isinstance(source, Path) else [("the record", source)]
        if not rows:
            raise DataError(f"{source} holds no explanations; at least one is needed.")
        for where, row in rows:
            with placed(where):
                found = list(_explanations(row))
            yield from found


def _explanations(content: Any) -> Iterator[Explanation]:
    """Yield the explanations in a JSON value: one, or a dictionary of them by id, or the arrays of a whole library."""
    if is_pairs(content):
        yield _weighted(content)
        return
    row = _keyed(content, "an explanation")
    named = row.get("output_names", row.get("classes"))
    if "values" in row and "data" in row:
        yield from of_shap(row["values"], row["data"], named)
    elif not _CONTENT & set(row) and row and all(is_pairs(e) or isinstance(e, Mapping) for e in row.values()):
        for identity, each in row.items():
            with placed(f"'{identity}'"):
                yield from (replace(found, id=str(identity)) for found in _explanations(each))
    else:
        yield explanation_of(row)


def of_shap(values: Any, data: Any, names: Any) -> Iterator[Explanation]:
    """Yield explanations from the arrays of a `shap.Explanation`: of one text or several, of all classes or of one."""
    if data is None:
        raise DataError("an Explanation of shap without its tokens (`data` is None, as after `.abs` or `.mean`).")
    one = len(data) > 0 and isinstance(data[0], str)
    texts, scores = ([data], [values]) if one else (data, values)
    if len(texts) != len(scores):
        raise DataError(f'{len(texts)} texts in "data" and {len(scores)} in "values"; give one each.')
    given = [str(name) for name in ((names,) if isinstance(names, str) else () if names is None else names)]
    made_up = [re.fullmatch(r"Output (\d+)", name) for name in given]  # by shap: the index of the class
    named = tuple(int(match[1]) if match else name for name, match in zip(given, made_up, strict=True))
    for text, each in zip(texts, scores, strict=True):
        found = numbers(each)
        classes = named if (len(named) == 1 if found.ndim <= 1 else not all(made_up)) else ()
        pieces = tuple(TextPart(str(piece)) for piece in _listed(list(text), '"data"'))
        yield Explanation(found, pieces, classes=classes)


def _weighted(weights: Any) -> Explanation:
    """Return an explanation from words with their weights, in any order."""
    pairs = list(weights.items()) if isinstance(weights, Mapping) else weights
    if not is_pairs(pairs):
        raise DataError(f'"weights" is {weights!r:.60}; words with their scores are expected, as in {{"good": 0.5}}.')
    scores = numbers([score for _, score in pairs])
    return Explanation(scores, tuple(TextPart(str(word)) for word, _ in pairs), any_order=True)


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    text, classes = row.get("text"), row.get("classes")
    return replace(
        _content(row),
        id=None if row.get("id") is None else str(row["id"]),
        text=row.get("fields") if text is None else text,
        classes=tuple(map(str, _listed(() if classes is None else classes, '"classes"'))),
    )


def _content(row: Mapping[str, Any]) -> Explanation:
    if "weights" in row:
        return _weighted(row["weights"])
    if "word_attributions" in row:  # a `VisualizationDataRecord` of captum
        row = {"tokens": row.get("raw_input_ids"), "scores": row["word_attributions"]}
    if "spans" in row:
        return _spans(_listed(row["spans"], '"spans"', "[[start, end, score], …] is expected"), row.get("scores"))
    if "scores" not in row:
        raise DataError(f"{_SHAPES} is expected, and the object has {', '.join(map(str, row)) or 'nothing'}.")
    tokens = row.get("tokens", row.get("words"))
    if tokens is None:
        return Explanation(numbers(row["scores"]))
    pieces = [
        TextPart(token, field=field)
        for field, each in (tokens if isinstance(tokens, Mapping) else {None: tokens}).items()
        for token in _listed(each, '"tokens"', "a list of texts is expected")
    ]
    return Explanation(numbers(row["scores"]), tuple(pieces))


def _spans(spans: Sequence[Any], scores: Any) -> Explanation:
    given = [_span(span) for span in spans]
    pieces = tuple(piece for piece, _ in given)
    found = [score for _, score in given] if scores is None else _listed(scores, '"scores"')
    if all(score is None for score in found):
        return Explanation(np.ones(len(found)), pieces, is_set=True)
    if any(score is None for score in found):
        raise DataError("a span without a score among others; [start, end, score] is expected.")
    return Explanation(numbers(found), pieces)


def _span(span: Any) -> tuple[TextPart, Any]:
    if isinstance(span, Mapping):
        piece = TextPart(span.get("text"), span.get("start"), span.get("end"), span.get("field"))
        score = span.get("score")
    elif len(_listed(span, "a span", "[start, end, score] is expected")) in {2, 3}:
        piece, score = TextPart(None, span[0], span[1]), span[2] if len(span) == 3 else None
    else:
        raise DataError(f"the span {span!r:.60}; [start, end, score] is expected.")
    if type(piece.start) is not int or type(piece.end) is not int:
        raise DataError(f"the span {span!r:.60} has no whole numbers for start and end.")
    return piece, score


@explanation_format("eraser")
class Eraser(Format):
    """ERASER's annotations (evidences) and predictions (soft or hard rationales), over words between spaces.

    Human rationales are `evidences`; predicted ones are `rationales`, soft (a number per word) or hard (spans of
    words). Where both are given, the soft ones are used. Spans are sets: rationales of their own size (DeYoung et al.,
    2020).
    """

    def reads(self, source: object) -> bool:
        """Return True if the first object of a file is an annotation or a prediction."""
        if not isinstance(source, Path) or _ending_of(source) not in {".jsonl", ".json"}:
            return False
        try:
            row = next((row for _, row in _rows_of(source)), None)
        except DataError:  # a broken file; reading it raises the error
            return False
        return isinstance(row, Mapping) and bool({"evidences", "rationales"} & set(row))

    def explanations(self, source: Path) -> Iterator[Explanation]:
        for where, row in _rows_of(source):
            with placed(where):
                found = eraser_explanation(_keyed(row, "an explanation"))
            yield found


def eraser_explanation(row: Mapping[str, Any]) -> Explanation:
    identity = row.get("annotation_id", row.get("id"))
    documents = [_keyed(each, "a rationale") for each in _listed(row.get("rationales", ()), '"rationales"')]
    scored = [pair for document in documents for pair in _predicted(document)]
    for group in _listed(row.get("evidences", ()), '"evidences"'):  # groups of spans, or spans
        spans = [group] if isinstance(group, Mapping) else _listed(group, "a group of evidences")
        scored += [(_word_span(_keyed(span, "an evidence")), 1.0) for span in spans]
    return Explanation(
        numbers([score for _, score in scored]),
        tuple(piece for piece, _ in scored),
        id=None if identity is None else str(identity),
        is_set=not any(document.get(_SOFT) is not None for document in documents),
    )


def _predicted(document: Mapping[str, Any]) -> Iterator[tuple[TextPart, Any]]:
    if document.get(_SOFT) is not None:
        for place, score in enumerate(_listed(document[_SOFT], _SOFT)):
            yield TextPart(None, place, place + 1, _field(document.get("docid")), counted="words"), score
    elif _HARD in document:
        for span in _listed(document[_HARD], _HARD):
            yield _word_span({**_keyed(span, "a span"), "docid": document.get("docid")}), 1.0
    else:
        raise DataError(f"neither {_SOFT} nor {_HARD}; the rationale has {', '.join(document)}.")


def _word_span(span: Mapping[str, Any]) -> TextPart:
    start, end = span.get("start_token"), span.get("end_token")
    if type(start) is not int or type(end) is not int:
        raise DataError(f"the span {span!r:.80} has no whole numbers for start_token and end_token.")
    return TextPart(span.get("text"), start, end, _field(span.get("docid")), counted="words")


def _field(docid: object) -> str | None:
    """Return the field of a document: `4705_premise` is the premise; None for other names."""
    ending = str(docid).rpartition("_")[2]
    return ending if ending in {"premise", "hypothesis"} else None
