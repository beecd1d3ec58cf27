"""From a row of data to an `Example`: which fields it needs, its gold label, and what people marked in it."""

import numbers
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ice_eval._controls import is_broken
from ice_eval.errors import DataError
from ice_eval.records import Example, Span

Row = Mapping[str, Any]
_MOST_DIGITS = 10
"""No index of a label has as many, and Python refuses to read numbers of thousands."""


def example_of(row: Row, index: int, fields: Sequence[str], labels: Sequence[str], origin: str) -> Example:
    """What a row says, checked.

    Raises:
        DataError: A field is missing or no text, or the label, the group or the rationale is not as expected.
    """
    where = f"{origin}, example {index}"
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: fields with names are expected, as {{'text': …}}, not {type(row).__name__}.")
    missing = [name for name in fields if row.get(name) is None]
    if missing:
        raise DataError(
            f"{where}: the prompt needs the field '{missing[0]}', and the example has "
            f"{', '.join(map(str, row)) or 'no field'}."
        )
    for name in fields:
        if not isinstance(row[name], str):
            raise DataError(f"{where}: the field '{name}' holds {type(row[name]).__name__}, and text is expected.")
    for name in (*fields, "id", "group"):
        if is_broken(str(row.get(name))):
            raise DataError(f"{where}: the field '{name}' holds half of a character (a lone surrogate); mend the text.")
    identity = row.get("id")
    return Example(
        id=str(index if identity is None else identity),
        fields={name: row[name] for name in fields},
        gold=_gold(row.get("label"), labels, where),
        group=None if row.get("group") is None else str(row["group"]),
        human=_human(fields, row, where),
    )


def _gold(label: object, labels: Sequence[str], where: str) -> int | None:
    """The index of a label given by name or by index."""
    if label is None:
        return None
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    folded = [name.casefold() for name in labels]
    if isinstance(label, str) and folded.count(label.strip().casefold()) == 1:
        return folded.index(label.strip().casefold())
    index = int(label) if isinstance(label, str) and label.isdecimal() and len(label) < _MOST_DIGITS else label
    if isinstance(index, numbers.Integral) and not isinstance(index, bool) and 0 <= int(index) < len(labels):
        return int(index)
    raise DataError(
        f"{where}: the label {label!r} is none of {', '.join(labels)}, nor an index below {len(labels)}; see --labels."
    )


def _human(fields: Sequence[str], row: Row, where: str) -> tuple[Span, ...]:
    """Human rationales: characters of `rationale`, or the words of a field F that `highlights_F` counts.

    `rationale` is `[[start, end], …]` in the first field or `[[field, start, end], …]`. Highlights are places of words
    between spaces, from 0; they are read where there is no rationale.
    """
    spans = row.get("rationale")
    if not isinstance(spans, list | tuple):
        return tuple(span for name in fields for span in _highlighted(name, row, where))
    found = [_span(span, fields) for span in spans]
    for span, given in zip(found, spans, strict=True):
        if span is None or span.field not in fields or not 0 <= span.start < span.end <= len(row[span.field]):
            field = fields[0] if span is None else span.field
            raise DataError(
                f"{where}: the rationale span {given!r} does not lie in the text of '{field}'; [start, end] in the "
                "prompt's first field is expected, or [field, start, end]."
            )
    return tuple(span for span in found if span is not None)


def _highlighted(name: str, row: Row, where: str) -> list[Span]:
    """The words of a field that people marked, by their places."""
    places = row.get(f"highlights_{name}")
    if not isinstance(places, list | tuple):
        return []
    words = [match.span() for match in re.finditer(r"\S+", row[name])]
    for place in places:
        if type(place) is not int or not 0 <= place < len(words):
            raise DataError(
                f"{where}: 'highlights_{name}' holds {place!r}, and the place of one of the {len(words)} words of "
                f"'{name}' is expected, counted from 0."
            )
    return [Span(name, *words[place]) for place in places]


def _span(given: object, fields: Sequence[str]) -> Span | None:
    """A span as it is written in a file, or None where it is none."""
    if not isinstance(given, list | tuple) or len(given) not in {2, 3}:
        return None
    name, start, end = given if len(given) == 3 else (fields[0], *given)
    return Span(name, start, end) if type(start) is int and type(end) is int else None


def check_ids(examples: Sequence[Example], origin: str) -> None:
    """Every example needs a name of its own.

    Raises:
        DataError: Two have the same.
    """
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise DataError(
                f"{origin}: two examples have the id '{example.id}'; ids must be unique (leave them out to count rows)."
            )
        seen.add(example.id)
