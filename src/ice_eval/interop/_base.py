"""Explanations of other tools, the interface of formats, and the matching of explanations with examples."""

import itertools
import unicodedata
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ice_eval._registry import Registry
from ice_eval.errors import DataError
from ice_eval.records import Example

_Text = str | frozenset[tuple[str, str]]  # a text, or fields with their texts


def numbers(values: Any) -> NDArray[np.float64]:
    """Return an array from an array, a list, or a tensor on any device; raise `DataError` for anything else."""
    if isinstance(values, Mapping):
        raise DataError(
            f"numbers are expected, not the dictionary {' '.join(repr(values).split()):.60} (give LIME's `Explanation` "
            'itself: `as_map` has positions without words; words with scores are {"weights": {word: score}}).'
        )
    try:
        if hasattr(values, "detach"):  # a tensor, perhaps in bfloat16, which NumPy does not support
            values = values.detach().cpu().double().numpy()
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError, RuntimeError) as exc:
        raise DataError(f"numbers are expected, not {' '.join(repr(values).split()):.80} ({exc}).") from exc


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Prefix errors raised in this context with the position in a file."""
    try:
        yield
    except DataError as exc:
        raise DataError(f"{where}: {exc}") from exc


def one_text(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of one text without a dimension for the text and one for the width, which is summed.

    Libraries return (1, tokens) and (1, tokens, width) for a text.
    """
    if values.ndim > 1 and values.shape[0] == 1:
        values = values[0]
        return values if values.ndim == 1 else values.sum(axis=tuple(range(1, values.ndim)))
    return values


class TextPart(NamedTuple):
    """A part of an example's text, by its spelling, its position, or both."""

    text: str | None = None
    start: int | None = None
    end: int | None = None
    """Exclusive."""
    field: str | None = None
    """None: the only field, or all of them one after another."""
    counted: Literal["characters", "words"] = "characters"
    """Unit of `start` and `end`; words are separated by spaces."""


@dataclass(frozen=True)
class Explanation:
    """Explanation of one example, checked; every format produces it."""

    scores: NDArray[np.float64]
    """(pieces,) or (pieces, classes)"""
    pieces: tuple[TextPart, ...] | None = None
    """None: the scores are one per unit, or one per token of the model's input."""
    id: str | None = None
    """Id of the example; without it `text` identifies the example, and without both the position does."""
    text: str | Mapping[str, str] | None = None
    """The text that was explained, or the fields by name."""
    classes: tuple[str | int, ...] = ()
    """Classes of the columns of `scores`, or the one class of a single score per piece, where the tool names them: by
    name, or by index in the model's output."""
    is_set: bool = False
    """True if the pieces are a rationale of its own size, possibly empty; their scores are 1 then."""
    any_order: bool = False
    """True if pieces that do not spell the text are words of it in any order: every occurrence has the score."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", numbers(self.scores))
        if self.scores.ndim not in {1, 2} or 0 in self.scores.shape[1:]:
            raise DataError(
                f"the scores have the shape {self.scores.shape}; a list with a number for each piece is expected, or "
                "with a list of numbers, one per class."
            )
        if self.pieces is not None and len(self.pieces) != len(self.scores):
            raise DataError(f"{len(self.pieces)} tokens and {len(self.scores)} scores; give one each.")
        for text, start, end, field, _ in self.pieces or ():
            if not all(isinstance(each, str | None) for each in (text, field)):
                raise DataError(f"a piece has {text!r:.60} for a text and {field!r:.60} for a field, not texts.")
            if not all(isinstance(place, int | np.integer | None) for place in (start, end)):
                raise DataError(f"a piece begins at {start!r:.60} and ends at {end!r:.60}, not at whole numbers.")
            if text is None and (start is None or end is None):
                raise DataError("a piece has neither a text nor a start and an end.")
        if self.scores.ndim == 2 and self.classes and len(self.classes) != self.scores.shape[1]:
            named = f"{len(self.classes)} classes are named, {list(self.classes)!r:.60}"
            raise DataError(f"{named}, and each piece has scores of {self.scores.shape[1]}.")
        texts = self.text.values() if isinstance(self.text, Mapping) else [self.text or ""]
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"the explained text is {self.text!r:.60}; a text is expected, or an object with texts.")


class Format(ABC):
    """A format of explanations: in files, or as objects of a library."""

    @abstractmethod
    def reads(self, source: object) -> bool:
        """Return True if a file (a `Path` that exists) or an object looks like this format; import nothing heavy."""

    @abstractmethod
    def explanations(self, source: Any) -> Iterator[Explanation]:
        """Yield the explanations in the file or the object; raise `DataError` that names the faulty position."""


formats: Registry[type[Format]] = Registry("format", "ice_eval.interop")
explanation_format = formats.register
"""Register a format under a name; the first line of its docstring describes it."""


def read(source: object) -> Iterator[Explanation]:
    """Yield the explanations in a file, in an object of a known library, or in a collection of such or of numbers."""
    if isinstance(source, Explanation):
        yield source
        return
    known = ", ".join(formats.names())
    if isinstance(source, str | Path):
        source = Path(source)
        if not source.is_file():
            raise DataError(f"no such file: {source}. A file with explanations is expected ({known}).")
    found = _format_of(source)
    if found is not None:
        yield from found.explanations(source)
    elif isinstance(source, Path):
        raise DataError(f"{source} is in no known format. Known: {known}.")
    elif isinstance(source, Mapping):
        for identity, each in source.items():
            yield replace(_one(each), id=str(identity))
    elif isinstance(source, Sequence) or (isinstance(source, np.ndarray) and source.ndim > 1):
        yield from map(_one, source)
    else:
        raise DataError(f"{type(source).__name__} is not a known explanation. Known: {known}, numbers, or a function.")


def _format_of(source: object) -> Format | None:
    return next((each() for _, each in formats.items() if each().reads(source)), None)


def _one(source: object) -> Explanation:
    if isinstance(source, Explanation):
        return source
    if isinstance(source, np.ndarray) or _format_of(source) is None:
        return Explanation(one_text(numbers(source)))
    several = list(read(source))
    if len(several) != 1:
        raise DataError(f"{type(source).__name__} holds {len(several)} explanations, where one is expected.")
    return several[0]


class Matched(NamedTuple):
    by_id: dict[str, Explanation]  # by example id, those of examples that are not evaluated included
    n_given: int  # number of explanations, those whose text matches no example included


def of_examples(source: object, examples: Sequence[Example], *, name: str) -> Matched:
    """Match explanations with examples by id, else by text, else by position."""
    ids_of: dict[_Text, list[str]] = defaultdict(list)
    for example in examples:  # a text is given as fields by name, or as all of them one after another
        ids_of[_comparable(example.fields)].append(example.id)
        ids_of[_comparable(" ".join(example.fields.values()))].append(example.id)
    found: dict[str, Explanation] = {}
    given = list(read(source))
    for place, each in enumerate(given):
        where = f"the attribution '{name}', explanation {place}"
        if each.id is not None:
            identity = each.id
        elif each.text is not None:
            owners = ids_of.get(_comparable(each.text), [])
            if len(owners) > 1:
                raise DataError(f"{where}: {len(owners)} examples have its text; give ids.")
            if not owners:
                continue  # a file may hold more than the run needs; missing explanations are found later
            [identity] = owners
        elif place < len(examples):
            identity = examples[place].id
        else:
            surplus = f"has more explanations than the data have examples ({len(examples)}); give ids or texts."
            raise DataError(f"the attribution '{name}' {surplus}")
        if identity in found:
            raise DataError(f"{where}: a second one of example '{identity}'; one per example is expected.")
        found[identity] = each
    if given and not any(example.id in found for example in examples):
        texts = (
            (each.text or "") if isinstance(each.text, str | None) else " ".join(each.text.values()) for each in given
        )
        shown = [f"{_one_line(text):.40}…" for text in itertools.islice(texts, 3)]
        theirs = [text if each.id is None else repr(each.id) for each, text in zip(given, shown, strict=False)]
        raise DataError(
            f"the attribution '{name}': none of its {len(given)} explanations belongs to an example. Theirs: "
            f"{', '.join(theirs)}; ours: {', '.join(repr(e.id) for e in examples[:3])}. Give "
            "the ids or the texts of the examples; if the column of ids has another name, give --columns id=NAME."
        )
    return Matched(found, len(given))


def _comparable(text: str | Mapping[str, str]) -> _Text:
    """Return a text for comparison; the order of fields does not count."""
    return _one_line(text) if isinstance(text, str) else frozenset((name, _one_line(t)) for name, t in text.items())


def _one_line(text: str) -> str:
    """Return a text in one line and one Unicode form."""
    return " ".join(unicodedata.normalize("NFC", text).split())
