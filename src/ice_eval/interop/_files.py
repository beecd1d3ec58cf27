"""Readers of files, compressed by gzip or not, and of values in them; `DataError` names file and position."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ice_eval.errors import DataError
from ice_eval.files import why_no_json
from ice_eval.tasks import numbered_rows

_GZIP = b"\x1f\x8b"
"""First bytes of a compressed file, whatever its name."""


def ending_of(path: Path) -> str:
    """Return the type of a file by its name: `.json` for `out.json` and for `out.json.gz`."""
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return bare.suffix.lower()


def bytes_of(path: Path, *, most: int = -1) -> bytes:
    """Return the bytes of a file, or the first of them; uncompressed."""
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if compressed else path.open("rb") as content:
            return content.read(most)
    except (OSError, EOFError, zlib.error) as exc:
        raise DataError(f"{path} cannot be read: {getattr(exc, 'strerror', None) or exc}.") from exc


def _text_of(path: Path) -> str:
    try:
        return bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DataError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); save it as UTF-8.") from exc


def json_of(path: Path) -> Any:
    try:
        return json.loads(_text_of(path))
    except (ValueError, RecursionError) as exc:
        raise DataError(f"{path} is not JSON ({why_no_json(exc)}).") from exc


def rows_of(path: Path) -> Sequence[tuple[str, Any]]:
    """Return the objects of a JSON-lines file, or of one JSON list, each after the position that errors name."""
    if ending_of(path) == ".json":
        content = json_of(path)
        several = content if isinstance(content, list) else [content]
        return [(f"{path}, explanation {place}", row) for place, row in enumerate(several)]
    return [(f"{path}, line {line}", row) for line, row in numbered_rows(_text_of(path).split("\n"), str(path))]


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Prefix errors raised in this context with the position in a file."""
    try:
        yield
    except DataError as exc:
        raise DataError(f"{where}: {exc}") from exc


def listed(value: object, name: str, expected: str = "a list is expected") -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise DataError(f"{name} is {value!r:.60}; {expected}.")
    return value


def keyed(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{name} is {value!r:.60}; an object is expected.")
    return value
