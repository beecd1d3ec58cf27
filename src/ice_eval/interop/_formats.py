"""The seam that every format fills, and how what a user has becomes explanations of examples."""

import unicodedata
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ice_eval._registry import Registry
from ice_eval.errors import DataError
from ice_eval.interop._numbers import numbers
from ice_eval.interop._records import Explanation
from ice_eval.records import Example

_Class = TypeVar("_Class", bound="type[Format]")
_Text = str | frozenset[tuple[str, str]]  # a text, or fields with their texts
_SHOWN = 3


class Format(ABC):
    """A way in which explanations are written: in files, or as objects of a library."""

    @abstractmethod
    def reads(self, source: object) -> bool:
        """Whether a file (a `Path` that is there) or an object looks like this format; nothing heavy is imported."""

    @abstractmethod
    def explanations(self, source: Any) -> Iterator[Explanation]:
        """What the file or the object holds.

        Raises:
            DataError: It is not as it should be; the message says where.
        """


formats: Registry[type[Format]] = Registry("format", "ice_eval.interop")


def explanation_format(name: str) -> Callable[[_Class], _Class]:
    """Register a format; the first line of its docstring describes it."""

    def register(cls: _Class) -> _Class:
        formats.add(name, cls)
        return cls

    return register


def is_from(source: object, library: str, *names: str) -> bool:
    """Whether an object is of one of a library's classes, by name, so that the library need not be imported."""
    return any(cls.__name__ in names and cls.__module__.partition(".")[0] == library for cls in type(source).__mro__)


def read(source: object) -> Iterator[Explanation]:
    """The explanations in a file, in an object of a known library, or in a sequence or mapping of such or of numbers.

    Raises:
        DataError: There is no such file, or nothing that is known.
    """
    if isinstance(source, Explanation):
        yield source
        return
    if isinstance(source, str | Path):
        source = _existing(Path(source))
    found = next((known() for _, known in formats.items() if known().reads(source)), None)
    if found is not None:
        yield from found.explanations(source)
    elif isinstance(source, Path):
        raise DataError(f"{source} is in no known format. Known: {_known()}.")
    elif isinstance(source, Mapping):
        for identity, each in source.items():
            yield replace(_one(each), id=str(identity))
    elif isinstance(source, Sequence) or (isinstance(source, np.ndarray) and source.ndim > 1):
        yield from map(_one, source)
    else:
        raise DataError(f"{type(source).__name__} is no explanation. Known: {_known()}, numbers, or a function.")


class Matched(NamedTuple):
    """Explanations, and whose they are."""

    by_id: dict[str, Explanation]
    """By example id; of examples that are not among those asked about too."""
    n_given: int
    """All there were, those whose text is that of no example included."""


def of_examples(source: object, examples: Sequence[Example], *, name: str) -> Matched:
    """The explanations by example id: each belongs to the example with its id, else with its text, else at its place.

    Raises:
        DataError: Two are of one example, a text is that of several, or not one belongs to an example.
    """
    ids_of = _by_text(examples)
    found: dict[str, Explanation] = {}
    given = list(read(source))
    for place, each in enumerate(given):
        where = f"the attribution '{name}', explanation {place}"
        if each.id is not None:
            identity = each.id
        elif each.text is not None:
            owners = ids_of.get(_text(each.text), [])
            if len(owners) > 1:
                raise DataError(f"{where}: {len(owners)} examples have its text; give ids.")
            if not owners:
                continue  # a file may hold more than the run asks for; what is missing is found later
            [identity] = owners
        elif place < len(examples):
            identity = examples[place].id
        else:
            raise DataError(
                f"the attribution '{name}' has more explanations than the data have examples ({len(examples)}); "
                "give ids or texts."
            )
        if identity in found:
            raise DataError(f"{where}: a second one of example '{identity}'; one per example is expected.")
        found[identity] = each
    if given and not any(example.id in found for example in examples):
        raise DataError(
            f"the attribution '{name}': none of its {len(given)} explanations belongs to an example. Theirs: "
            f"{', '.join(map(_named, given[:_SHOWN]))}; ours: {', '.join(repr(e.id) for e in examples[:_SHOWN])}. Give "
            "the ids or the texts of the examples; where ids stand in a column of another name, --columns id=NAME."
        )
    return Matched(found, len(given))


def _named(explanation: Explanation) -> str:
    """How a message calls an explanation: by its id, or by how its text begins."""
    if explanation.id is not None:
        return repr(explanation.id)
    text = explanation.text or ""
    return f"{_joined(text if isinstance(text, str) else ' '.join(text.values())):.40}…"


def _one(source: object) -> Explanation:
    """A single explanation: of a known library, or numbers."""
    if isinstance(source, Explanation):
        return source
    if isinstance(source, np.ndarray) or not any(known().reads(source) for _, known in formats.items()):
        return Explanation(numbers(source))
    several = list(read(source))
    if len(several) != 1:
        raise DataError(f"{type(source).__name__} holds {len(several)} explanations, where one is expected.")
    return several[0]


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"no such file: {path}. A file with explanations is expected ({_known()}).")
    return path


def _known() -> str:
    return ", ".join(formats.names())


def _by_text(examples: Sequence[Example]) -> dict[_Text, list[str]]:
    """The ids of the examples with a text: with its fields by name, or with all of them one after another."""
    found: dict[_Text, list[str]] = defaultdict(list)
    for example in examples:
        found[_text(example.fields)].append(example.id)
        found[_text(" ".join(example.fields.values()))].append(example.id)
    return found


def _text(given: str | Mapping[str, str]) -> _Text:
    """What two explained texts must share to be the same; the order of fields is nothing to them."""
    return _joined(given) if isinstance(given, str) else frozenset((name, _joined(t)) for name, t in given.items())


def _joined(text: str) -> str:
    """However its spaces and accents are written."""
    return " ".join(unicodedata.normalize("NFC", text).split())
