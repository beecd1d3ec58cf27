"""Values out of a JSON file, asked for by kind; what is of another kind is told, not tripped over."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ice_eval.errors import DataError


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Errors of what is read inside name the place in the file."""
    try:
        yield
    except DataError as exc:
        raise DataError(f"{where}: {exc}") from exc


def listed(value: object, name: str, expected: str = "a list is expected") -> Sequence[Any]:
    """A list.

    Raises:
        DataError: It is none.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise DataError(f"{name} is {value!r:.60}; {expected}.")
    return value


def keyed(value: object, name: str) -> Mapping[str, Any]:
    """An object.

    Raises:
        DataError: It is none.
    """
    if not isinstance(value, Mapping):
        raise DataError(f"{name} is {value!r:.60}; an object is expected.")
    return value
